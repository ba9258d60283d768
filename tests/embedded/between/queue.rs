//! Faults between the create of a node and the grant.

use std::time::Duration;

use lockkeeper::{Mutex, MutexGuard, RwLock};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};
use tokio::task::JoinHandle;

use super::block_the_clients;
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children, queue_nodes};

/// The rival holds; the actor waits, and watches its predecessor.
async fn one_waits() -> (ServerFixture, MutexGuard, JoinHandle<MutexGuard>) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = Mutex::new(&server_fixture.rival, LOCK).unwrap().acquire().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    within("its watch", server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1))
        .await
        .unwrap();
    (server_fixture, held, waiter)
}

#[tokio::test]
async fn a_write_to_the_predecessors_node_grants_nothing() {
    let (server_fixture, held, waiter) = one_waits().await;
    let session = server_fixture.sessions_of_actor()[0];
    let lists = server_fixture
        .server
        .fault(When::op(Op::GetChildren).path(LOCK).session(session), Fault::DelayRequest(Duration::ZERO));
    server_fixture.rival.znodes().write(held.path(), b"a note", -1).await.unwrap();
    within("another list of the queue", lists.hit()).await.unwrap();
    within("its watches", server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2))
        .await
        .unwrap();
    assert!(!waiter.is_finished() && held.is_valid());
    held.release().await.unwrap();
    within("a grant", waiter).await.unwrap().unwrap().release().await.unwrap();
}

/// All clients share a thread: the waiter receives both events at once.
#[tokio::test]
async fn a_waiter_whose_own_node_is_deleted_is_not_granted_by_the_deletion_of_its_predecessor() {
    let (server_fixture, held, waiter) = one_waits().await;
    let front = held.path().to_owned();
    let mine = server_fixture.server.inspect(queue_nodes).into_iter().find(|path| *path != front).unwrap();
    assert!(server_fixture.server.delete_node(&mine));
    assert!(server_fixture.server.delete_node(&front));
    block_the_clients();
    let guard = within("a grant with a new node", waiter).await.unwrap().unwrap();
    assert!(*guard.path() != mine, "granted without a node");
    assert!(guard.is_valid());
    guard.release().await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_directory_that_is_reaped_before_the_create_is_created_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    for reaped in 0..3 {
        let path = format!("/reaped/{reaped}");
        let mutex = Mutex::new(&actor, &path).unwrap();
        let session = server_fixture.sessions_of_actor()[0];
        let pattern = format!("{path}/*");
        let at = |nth| {
            server_fixture
                .server
                .fault(When::op(Op::Create2).path(&pattern).session(session).nth(nth), Fault::HoldRequest)
        };
        // The first create finds no directory.
        let creates: Vec<_> = (0..reaped).map(|nth| at(nth + 2)).collect();
        let acquiring = tokio::spawn(async move { mutex.acquire().await.unwrap() });
        for create in creates {
            within("a create", create.hit()).await.unwrap();
            assert!(server_fixture.server.delete_node(&path));
            create.release();
        }
        within("a grant", acquiring).await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_without_room_for_a_watch_polls_and_is_granted() {
    // More than the room for watches, which is 112 KiB of paths.
    const LOCKS: usize = 40;
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(4));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let polls = server_fixture
        .server
        .fault(When::op(Op::Exists).session(session).always(), Fault::DelayRequest(Duration::ZERO));
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for number in 0..LOCKS {
        let path = format!("/{number}-{}", "x".repeat(3_900));
        held.push(Mutex::new(&server_fixture.rival, &path).unwrap().acquire().await.unwrap());
        let mutex = Mutex::new(&actor, &path).unwrap();
        waiting.push(tokio::spawn(async move { mutex.acquire().await.unwrap().release().await.unwrap() }));
        let both = server_fixture.server.wait_until(move |machine| children(machine, &path).len() == 2);
        within("both nodes in the queue", both).await.unwrap();
    }
    within("polls instead of watches", polls.hit_times(3)).await.unwrap();
    assert!(server_fixture.server.inspect(|machine| machine.watch_count(0)) < LOCKS);
    for guard in held {
        guard.release().await.unwrap();
    }
    for waiter in waiting {
        within("a grant", waiter).await.unwrap().unwrap();
    }
}

/// Sequence numbers begin anew in a directory that is created again: an earlier node with the same number
/// belonged to another contender.
#[tokio::test]
async fn a_sequence_number_of_a_deleted_directory_grants_nothing_in_the_next_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..4 {
        foreign.acquire().await.unwrap().release().await.unwrap();
    }
    // Sequence number 4: the client watches the new directory from then on.
    mutex.acquire().await.unwrap().release().await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    let held = foreign.acquire().await.unwrap();
    assert!(mutex.try_acquire().await.unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// The waiter has to watch its own node from the beginning only if the event of its predecessor grants by
/// itself.
#[tokio::test]
async fn a_waiter_behind_several_contenders_sets_no_watch_on_its_own_node_at_first() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let (first, second) = (lock.read().await.unwrap(), lock.read().await.unwrap());
    let long = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(60));
    let writer = long.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let watches = |number| {
        let read = When::op(Op::GetData).path("/locks/lock/*").session(session).nth(number);
        server_fixture.server.fault(read, Fault::DelayRequest(Duration::ZERO))
    };
    let (predecessor, own) = (watches(1), watches(2));
    let waiting = tokio::spawn({
        let lock = RwLock::new(&writer, LOCK).unwrap();
        async move { lock.write().await.unwrap() }
    });
    within("a watch on the predecessor", predecessor.hit()).await.unwrap();
    // The answers to all requests that were sent together with that watch arrive before the answer to this
    // read.
    writer.znodes().read("/zookeeper").await.unwrap();
    assert_eq!(own.hits(), 0, "a watch that saves nothing");
    drop((first, second));
    within("its grant", waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// A follower that is behind would list the directory without the node, and the contender would lose its
/// position.
#[tokio::test]
async fn the_search_for_a_create_without_an_answer_syncs_before_it_lists() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let create = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let lost = server_fixture.server.fault(create, Fault::DropConnectionAfter);
    let sync = When::op(Op::Sync).path(LOCK).session(session);
    let sync = server_fixture.server.fault(sync, Fault::HoldRequest);
    let mut acquiring = Box::pin(mutex.acquire());
    tokio::select! {
        _ = &mut acquiring => panic!("found without a sync"),
        synced = within("a sync", sync.hit()) => synced.unwrap(),
    }
    assert_eq!(lost.hits(), 1);
    sync.release();
    within("its grant", acquiring).await.unwrap().unwrap().release().await.unwrap();
}

/// The server refuses the watch on the own node, so the waiter gets no event when that node is deleted by
/// hand.
#[tokio::test]
async fn without_a_watch_on_the_own_node_the_deletion_of_the_predecessor_grants_nothing() {
    let world = ServerFixture::start().await.unwrap();
    let held = Mutex::new(&world.rival, LOCK).unwrap().acquire().await.unwrap();
    let long = builder(&world.server.connect_string()).session_timeout(Duration::from_secs(60));
    let mutex = Mutex::new(&long.connect().await.unwrap(), LOCK).unwrap();
    let session = world.sessions_of_actor()[0];
    let own = When::op(Op::GetData).path("/locks/lock/*").session(session).nth(2);
    let own = world.server.fault(own, Fault::Refuse(ErrorCode::Other(-4_242)));
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    within("a watch on the own node", own.hit()).await.unwrap();
    let front = held.path().to_owned();
    let mine = world.server.inspect(queue_nodes).into_iter().find(|path| *path != front).unwrap();
    assert!(world.server.delete_node(&mine));
    held.release().await.unwrap();
    let guard = within("a grant with a new node", waiting).await.unwrap().unwrap();
    assert!(*guard.path() != mine, "granted without a node");
    guard.release().await.unwrap();
}
