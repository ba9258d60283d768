use futures::future::try_join_all;
use lockkeeper_core::{ConnectionManager, Deadline, Error, Kind, Label, LockQueue, Role, Rule};
use lockkeeper_testserver::TestServer;
use turnstile::{TURN, Turnstile, TurnstileError};

type Failure = Box<dyn std::error::Error>;

#[tokio::test]
async fn one_visitor_at_a_time_and_so_many_in_all() -> Result<(), Failure> {
    let server = TestServer::start().await?;
    let (one, other) = (connect(&server).await?, connect(&server).await?);
    let (here, there) = (Turnstile::new(&one, "/museum", 3)?, Turnstile::new(&other, "/museum", 3)?);

    let visit = here.enter(Deadline::never()).await?;
    let refused = there.enter(Deadline::immediate()).await.err().ok_or("two visitors at a time")?;
    assert!(refused.is_timeout(), "{refused}");
    let seen = here.inspect().await?;
    let holder = seen.first().ok_or("nobody")?;
    assert_eq!((holder.role(), holder.kind()), (Role::Holder, Some(TURN.kind())));

    let (next, ()) =
        tokio::try_join!(async { Ok::<_, Failure>(there.enter(Deadline::never()).await?) }, async {
            Ok(visit.leave().await?)
        },)?;
    assert_eq!(next.number(), 2);
    next.leave().await?;
    assert_eq!(here.enter(Deadline::never()).await?.number(), 3);

    let refused = here.enter(Deadline::never()).await.err().ok_or("more than three visitors")?;
    let is_full = matches!(refused.recipe(), Some(TurnstileError::Full { visits: 3, .. }));
    assert!(is_full && !refused.is_transient() && !refused.outcome_unknown(), "{refused}");
    Ok(())
}

#[tokio::test]
async fn neither_a_turnstile_nor_a_mutex_is_granted_where_both_use_a_path() -> Result<(), Failure> {
    let server = TestServer::start().await?;
    let manager = connect(&server).await?;
    let turnstile = Turnstile::new(&manager, "/museum", 3)?;
    let mutex = LockQueue::new(&manager, "/museum/queue", Label::LOCK, Rule::MUTEX)?;

    let held = mutex.acquire(Deadline::never()).await?;
    assert_eq!(mutex.inspect().await?.first().and_then(|of| of.kind()), Some(Kind::LOCK));
    let refused = turnstile.enter(Deadline::never()).await.err().ok_or("two locks on one path")?;
    assert!(matches!(refused, Error::ConflictingKind { .. }), "{refused}");
    held.release().await?;

    let visit = turnstile.enter(Deadline::never()).await?;
    let refused = mutex.acquire(Deadline::never()).await.err().ok_or("two locks on one path")?;
    assert!(matches!(refused, Error::ConflictingKind { .. }), "{refused}");
    visit.leave().await?;
    Ok(())
}

#[tokio::test]
async fn waiters_of_one_process_enter_one_after_the_other() -> Result<(), Failure> {
    let server = TestServer::start().await?;
    let manager = connect(&server).await?;
    let turnstile = Turnstile::new(&manager, "/museum", 20)?;
    let visits = (0..20).map(async |_| {
        let visit = turnstile.enter(Deadline::never()).await?;
        let number = visit.number();
        visit.leave().await?;
        Ok::<_, Failure>(number)
    });
    let mut numbers = try_join_all(visits).await?;
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=20).collect::<Vec<u64>>());
    Ok(())
}

async fn connect(server: &TestServer) -> Result<ConnectionManager, Failure> {
    Ok(ConnectionManager::connect(&server.connect_string()).await?)
}
