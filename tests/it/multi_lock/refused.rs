//! Sets and acquires that are refused before a request is sent.

use lockkeeper::error::WouldDeadlock;
use lockkeeper::{Error, MultiLock, Owner, ReentrantMutex, RwLock};

use super::{all_atomic, all_of, mutex, mutexes, start};

#[tokio::test]
async fn one_path_cannot_be_in_both_modes_in_one_process() {
    let (_ensemble, one, other) = start().await;
    let ordered = all_of(&mutexes(&one, &["a", "b"]));
    let mixed = MultiLock::builder().lock(&mutex(&one, "b")).lock(&mutex(&one, "c")).atomic().build();
    assert!(matches!(mixed, Err(Error::Config(_))), "{mixed:?}");
    drop(ordered);
    let _atomic = all_atomic(&mutexes(&one, &["b", "c"]));
    // Members of two managers belong to two sessions.
    let two = MultiLock::builder().lock(&mutex(&one, "x")).lock(&mutex(&other, "y")).build();
    assert!(matches!(two, Err(Error::Config(_))), "{two:?}");
}

#[tokio::test]
async fn members_that_exclude_each_other_are_refused_before_a_request_is_sent() {
    let (_ensemble, one, _other) = start().await;
    let (owner, someone) = (Owner::new("one"), Owner::new("other"));
    let reentrant = ReentrantMutex::new(&one, "/multi/a").unwrap();
    let prices = RwLock::new(&one, "/multi/a").unwrap();
    let builders = [
        MultiLock::builder(),
        MultiLock::builder().lock(&reentrant),
        MultiLock::builder().lock(&mutex(&one, "a")).lock(&reentrant.for_owner(&owner)),
        MultiLock::builder().lock(&reentrant.for_owner(&owner)).lock(&reentrant.for_owner(&someone)),
        MultiLock::builder().lock(&mutex(&one, "a")).lock(&prices.reader()),
        MultiLock::builder()
            .lock(&prices.for_owner(&owner).reader())
            .lock(&prices.for_owner(&someone).writer()),
    ];
    for builder in builders {
        let refused = builder.build();
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    let twice = MultiLock::builder()
        .lock(&prices.reader())
        .lock(&prices.writer())
        .lock(&mutex(&one, "b"))
        .lock(&mutex(&one, "b"))
        .build()
        .unwrap();
    assert_eq!(twice.paths().count(), 2);
    twice.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_owner_that_holds_a_lock_is_refused_more_unless_nesting_is_allowed() {
    let (_ensemble, one, _other) = start().await;
    let owner = Owner::new("nested");
    let outer = ReentrantMutex::new(&one, "/multi/outer").unwrap().for_owner(&owner);
    let held = outer.acquire_scoped().await.unwrap();
    let locks = mutexes(&one, &["a", "b"]);
    let refused = owner.scope(all_of(&locks).acquire()).await.unwrap_err();
    assert!(refused.cause().recipe::<WouldDeadlock>().is_some(), "{refused}");
    let nested = MultiLock::builder().lock(&outer).lock(&locks[0]).lock(&locks[1]).allow_nesting().build();
    let guard = nested.unwrap().acquire().await.unwrap();
    assert_eq!(outer.hold_count(&owner), 2);
    guard.release().await.unwrap();
    assert_eq!(outer.hold_count(&owner), 1);
    held.release().await.unwrap();
}
