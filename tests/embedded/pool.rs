//! A pool of sessions: what they share, and what each session has for itself.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use lockkeeper::error::ConnectError;
use lockkeeper::manager::Health;
use lockkeeper::{ConnectionPool, Error, MultiLock, Mutex, MutexGuard, ZnodePath};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

const SIZE: usize = 4;

/// So many paths that every session has some.
const PATHS: usize = 24;

/// More than any test waits.
const LONG: Duration = Duration::from_secs(600);

async fn pool(server_fixture: &ServerFixture, session: Duration) -> ConnectionPool {
    builder(&server_fixture.server.connect_string())
        .session_timeout(session)
        .connect_pool(u32::try_from(SIZE).unwrap())
        .await
        .unwrap()
}

fn paths() -> impl Iterator<Item = String> {
    (0..PATHS).map(|number| format!("/locks/{number}"))
}

async fn take_all(pool: &ConnectionPool) -> Result<Vec<MutexGuard>, Error> {
    try_join_all(paths().map(async |path| {
        let mutex = Mutex::new(pool.for_path(&path), path)?;
        mutex.acquire().await
    }))
    .await
}

/// The session of the holder of `path`.
async fn session_of(server_fixture: &ServerFixture, path: &str) -> i64 {
    let seen = Mutex::new(&server_fixture.rival, path).unwrap().inspect().await.unwrap();
    seen.holders().next().unwrap().session()
}

/// The index of a path's manager in the pool.
fn index(pool: &ConnectionPool, path: &str) -> usize {
    pool.managers().position(|manager| manager.is_same_as(pool.for_path(path))).unwrap()
}

#[tokio::test]
async fn a_path_has_one_session_of_a_pool_and_the_paths_have_them_all() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let pool = pool(&server_fixture, LONG).await;
    let sessions: BTreeSet<i64> = server_fixture.sessions_of_actor().into_iter().collect();
    assert_eq!((sessions.len(), pool.managers().count()), (SIZE, SIZE));

    let _held = take_all(&pool).await.unwrap();
    let mut used = vec![BTreeSet::new(); SIZE];
    for path in paths() {
        used[index(&pool, &path)].insert(session_of(&server_fixture, &path).await);
        // A parsed path has the same manager as its text.
        assert!(pool.for_path(path.parse::<ZnodePath>().unwrap()).is_same_as(pool.for_path(&path)));
        assert!(pool.clone().for_path(&path).is_same_as(pool.for_path(path)));
    }
    assert!(used.iter().all(|sessions| sessions.len() == 1), "{used:?}");
    assert_eq!(used.into_iter().flatten().collect::<BTreeSet<_>>(), sessions);
    assert_eq!(pool.health().iter().map(|health| health.held as usize).sum::<usize>(), PATHS);
    assert!(pool.health().iter().all(Health::is_ready));
    assert_eq!(format!("{pool:?}").matches("Connected(Epoch(1))").count(), SIZE, "{pool:?}");
}

#[tokio::test]
async fn when_one_session_of_a_pool_expires_only_its_locks_are_lost() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let pool = pool(&server_fixture, Duration::from_secs(20)).await;
    let held = take_all(&pool).await.unwrap();
    let victim = index(&pool, "/locks/0");
    assert!(server_fixture.server.expire(session_of(&server_fixture, "/locks/0").await));

    let mut lost = 0;
    for (path, guard) in paths().zip(&held) {
        if index(&pool, &path) == victim {
            within("the loss", guard.lost()).await.unwrap();
            lost += 1;
        }
    }
    assert!(lost > 0 && lost < PATHS);
    for (path, guard) in paths().zip(held) {
        let is_unaffected = index(&pool, &path) != victim;
        assert_eq!(guard.is_valid(), is_unaffected, "{path}");
        // The server agrees.
        assert_eq!(guard.release().await.is_ok(), is_unaffected, "{path}");
    }
    // The locks are acquired again in its next session.
    within("all locks again", take_all(&pool)).await.unwrap().unwrap();
    let epochs: Vec<u64> = pool.health().iter().map(|health| health.epoch.unwrap().as_u64()).collect();
    for (number, epoch) in epochs.into_iter().enumerate() {
        assert_eq!(epoch, if number == victim { 2 } else { 1 });
    }
}

#[tokio::test]
async fn a_pool_that_is_shut_down_closes_every_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let pool = pool(&server_fixture, LONG).await;
    let held = take_all(&pool).await.unwrap();
    within("the end", pool.shutdown()).await.unwrap().unwrap();
    assert_eq!(server_fixture.sessions_of_actor(), Vec::<i64>::new());
    assert!(held.iter().all(|guard| !guard.is_valid()));
    assert!(pool.health().iter().all(|health| health.is_closing));
}

#[tokio::test]
async fn an_orderly_shutdown_of_a_pool_waits_for_the_holders_of_each_session_and_counts_the_lost_ones() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let first = pool(&server_fixture, LONG).await;
    let held = take_all(&first).await.unwrap();
    let ending = tokio::spawn({
        let pool = first.clone();
        async move { pool.shutdown_within(LONG).await }
    });
    // From now on no session grants a lock.
    for manager in first.managers() {
        within("the beginning of the end", manager.closing()).await.unwrap();
    }
    assert!(!ending.is_finished() && held.iter().all(|guard| guard.is_valid()));
    for guard in held {
        guard.release().await.unwrap();
    }
    assert_eq!(within("the end", ending).await.unwrap().unwrap().unwrap(), 0);

    let second = pool(&server_fixture, LONG).await;
    let held = take_all(&second).await.unwrap();
    assert_eq!(second.shutdown_within(Duration::from_secs(4)).await.unwrap() as usize, PATHS);
    assert_eq!(server_fixture.sessions_of_actor(), Vec::<i64>::new());
    drop(held);
}

#[tokio::test]
async fn a_pool_that_shuts_down_grants_nothing_by_a_hand_off_of_any_of_its_sessions() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let pool = pool(&server_fixture, LONG).await;
    let held = take_all(&pool).await.unwrap();
    let mut waiting = Box::pin(join_all(paths().map(async |path| {
        let mutex = Mutex::new(pool.for_path(&path), path).unwrap();
        mutex.acquire().await
    })));
    let queued = server_fixture.server.wait_until(|machine| {
        let sessions = machine.sessions();
        sessions.iter().map(|session| machine.tree().ephemerals(*session).count()).sum::<usize>() == 2 * PATHS
    });
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("all are held"),
        _ = within("a node of each waiter", queued) => {}
    }
    let ending = tokio::spawn({
        let pool = pool.clone();
        async move { pool.shutdown_within(LONG).await }
    });
    for manager in pool.managers() {
        within("the beginning of the end", manager.closing()).await.unwrap();
    }
    drop(held);
    let results = within("an answer", waiting).await.unwrap();
    assert!(results.iter().all(|result| matches!(result, Err(error) if error.is_closed())), "{results:?}");
    assert_eq!(within("the end", ending).await.unwrap().unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_pool_with_a_session_that_cannot_be_opened_leaves_no_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let refused =
        server_fixture.server.fault(When::op(Op::Auth).nth(3), Fault::Refuse(ErrorCode::AuthFailed));
    let connect =
        builder(&server_fixture.server.connect_string()).session_timeout(LONG).digest_auth("a", "b");
    let error =
        within("an answer", connect.connect_pool(u32::try_from(SIZE).unwrap())).await.unwrap().unwrap_err();
    assert!(matches!(error, ConnectError::AuthFailed { .. }), "{error}");
    assert_eq!(refused.hits(), 1);
    // The rival's session, and the refused one, which the client cannot close: it expires.
    within(
        "the end of all others",
        server_fixture.server.wait_until(|machine| machine.sessions().len() <= 2),
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn several_locks_of_a_pool_are_acquired_through_one_of_its_managers() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let pool = pool(&server_fixture, LONG).await;
    let of_another = |path: &String| !pool.for_path(path).is_same_as(pool.for_path("/locks/0"));
    let (first, second) = ("/locks/0".to_owned(), paths().find(of_another).unwrap());
    let by_path = [&first, &second].map(|path| Mutex::new(pool.for_path(path), path).unwrap());
    let mixed = MultiLock::builder().lock(&by_path[0]).lock(&by_path[1]).build().unwrap_err();
    assert!(matches!(&mixed, Error::Config(_)) && mixed.to_string().contains("first path"), "{mixed}");

    let by_first = [&first, &second].map(|path| Mutex::new(pool.for_path(&first), path).unwrap());
    let both = MultiLock::builder().lock(&by_first[0]).lock(&by_first[1]).build().unwrap();
    let guard = both.acquire().await.unwrap();
    // The contender of a single member is excluded, whichever session it uses.
    for mutex in &by_path {
        assert!(mutex.try_acquire().await.unwrap().is_none());
    }
    guard.release().await.unwrap();
    let alone = by_path[1].acquire().await.unwrap();
    assert!(both.try_acquire().await.unwrap().is_none());
    alone.release().await.unwrap();
    assert!(within("both", both.acquire()).await.unwrap().is_ok());
}
