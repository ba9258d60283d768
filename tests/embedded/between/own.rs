//! Faults between two nodes of one process, whose hand-off is in memory.

use std::time::Duration;

use futures::poll;
use lockkeeper::{Error, Mutex, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, queue_nodes};

/// The predecessor is a ticket that is not polled: it does not notice that its node is deleted.
#[tokio::test]
async fn a_waiter_behind_an_idle_ticket_of_its_process_is_granted_when_that_node_is_deleted_by_hand() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let mutex = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mut ticket = mutex.enqueue().await.unwrap();
    let front = server_fixture.server.inspect(queue_nodes).remove(0);
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    // A long waiter watches its own node and its predecessor's.
    let watched = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
    within("a long wait", watched).await.unwrap();
    assert!(server_fixture.server.delete_node(&front));
    let guard = within("a grant of the free lock", waiting).await.unwrap().unwrap();
    assert!(ticket.refresh().await.unwrap() == 1, "the ticket has a new node, behind the waiter");
    guard.release().await.unwrap();
    within("the grant of the ticket", ticket.wait()).await.unwrap().unwrap().release().await.unwrap();
}

/// The event of the write uses up the watch.
#[tokio::test]
async fn a_waiter_whose_node_was_written_by_hand_notices_its_deletion() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    within("a long wait", server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1))
        .await
        .unwrap();
    let mine =
        server_fixture.server.inspect(queue_nodes).into_iter().find(|path| *path != *held.path()).unwrap();
    let watched =
        server_fixture.server.fault(When::op(Op::GetData).path(&mine), Fault::DelayRequest(Duration::ZERO));
    server_fixture.rival.znodes().write(&mine, b"a note", -1).await.unwrap();
    within("another watch", watched.hit()).await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    assert!(server_fixture.server.delete_node(&mine));
    server_fixture.queue_length_becomes(2).await.unwrap();
    held.release().await.unwrap();
    let guard = within("its grant", waiting).await.unwrap().unwrap();
    assert!(*guard.path() != mine && guard.is_valid());
    guard.release().await.unwrap();
}

/// Paths so long that they use up the room for watches on own nodes.
fn long(number: usize) -> String {
    format!("/{number}-{}", "x".repeat(3_900))
}

/// Without room for a watch on its own node a waiter learns of its deletion only by the hand-off of its
/// predecessor, which goes to its successor then.
#[tokio::test]
async fn a_waiter_whose_successor_is_granted_finds_that_its_own_node_is_deleted() {
    const FULL: usize = 18;
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(4));
    let actor = actor.connect().await.unwrap();
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for path in (0..FULL).map(long) {
        held.push(Mutex::new(&server_fixture.rival, &path).unwrap().acquire().await.unwrap());
        let mutex = Mutex::new(&actor, &path).unwrap();
        waiting.push(tokio::spawn(async move { mutex.acquire().await.unwrap() }));
    }
    let full = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= FULL);
    within("a watch for each lock", full).await.unwrap();

    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let first = mutex.acquire().await.unwrap();
    let mut second = mutex.enqueue().await.unwrap();
    let mine =
        server_fixture.server.inspect(queue_nodes).into_iter().find(|path| *path != *first.path()).unwrap();
    let mut second = Box::pin(second.wait());
    assert!(poll!(&mut second).is_pending(), "the lock is held");
    assert!(server_fixture.server.delete_node(&mine));
    let mut third = mutex.enqueue().await.unwrap();
    let mut third = Box::pin(third.wait());
    assert!(poll!(&mut third).is_pending(), "the lock is held");
    first.release().await.unwrap();
    let served = async { third.await.unwrap().release().await };
    within("the grant of the third contender", served).await.unwrap().unwrap();
    let served = async { second.await.unwrap().release().await };
    within("the grant of the second contender, with a new node", served).await.unwrap().unwrap();
    drop((held, waiting));
}

/// Readers do not wait for readers, but the contenders of a mutex wait for every contender: the release of a
/// reader says something to readers only.
#[tokio::test]
async fn the_sequence_number_of_a_released_reader_grants_no_mutex_of_the_same_path() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let reading = lock.read().await.unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    let tried = Mutex::new(&server_fixture.rival, LOCK).unwrap().try_acquire().await;
    assert!(matches!(tried, Err(Error::ConflictingKind { .. })), "{tried:?}");
    assert!(reading.is_valid());
}

/// So many acquires that the client grants by sequence numbers, and watches the directory.
pub(super) async fn used_again_and_again(server_fixture: &ServerFixture, mutex: &Mutex) {
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
}

/// The same with readers.
pub(super) async fn read_again_and_again(server_fixture: &ServerFixture, lock: &RwLock) {
    for _ in 0..8 {
        lock.read().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
}

/// Sequence numbers begin anew while the create is in flight: the client has not seen the event of its watch
/// yet.
#[tokio::test]
async fn a_sequence_number_grants_nothing_if_the_directory_was_deleted_after_the_create_was_sent() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let session = server_fixture.server.sessions()[0];
    let create = server_fixture
        .server
        .fault(When::op(Op::Create2).path("/locks/lock/*").session(session), Fault::HoldRequest);
    let mut trying = Box::pin(mutex.try_acquire());
    assert!(poll!(&mut trying).is_pending());
    within("the create", create.hit()).await.unwrap();
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..7 {
        foreign.acquire().await.unwrap().release().await.unwrap();
    }
    // Sequence number 7, as the last one of this session.
    let held = foreign.acquire().await.unwrap();
    create.release();
    assert!(within("an answer", trying).await.unwrap().unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// Sequence numbers begin anew, and the client watches the new directory; a contender that expects an own
/// predecessor lists nothing.
#[tokio::test]
async fn a_number_of_a_directory_that_is_gone_does_not_tell_who_comes_behind_another_create() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..4 {
        foreign.acquire().await.unwrap().release().await.unwrap();
    }
    // Sequence number 4: the client watches the new directory from then on.
    mutex.acquire().await.unwrap().release().await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let create = server_fixture
        .server
        .fault(When::op(Op::Create2).path("/locks/lock/*").session(session), Fault::HoldReply);
    let mut trying = Box::pin(mutex.try_acquire());
    assert!(poll!(&mut trying).is_pending());
    within("the create", create.hit()).await.unwrap();
    server_fixture.queue_length_becomes(1).await.unwrap();
    // Number 5 of this session, which is released; then the foreign number 6, and number 7 of this session.
    let mut waiting = foreign.enqueue().await.unwrap();
    let mut behind = Box::pin(mutex.try_acquire());
    assert!(poll!(&mut behind).is_pending());
    create.release();
    trying.await.unwrap().unwrap().release().await.unwrap();
    let held = within("the grant of the foreign contender", waiting.wait()).await.unwrap().unwrap();
    assert!(within("an answer", behind).await.unwrap().unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// The delete of the last reader is sent after the writer's create, and another reader still holds.
#[tokio::test]
async fn the_sequence_number_of_a_released_reader_grants_no_writer() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let reading = lock.read().await.unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    let last = lock.read().await.unwrap();
    let lists = server_fixture
        .server
        .fault(When::op(Op::GetChildren).path(LOCK), Fault::DelayRequest(Duration::ZERO));
    let mut writing = Box::pin(lock.write());
    assert!(poll!(&mut writing).is_pending());
    drop(last);
    tokio::select! {
        _ = &mut writing => panic!("a writer beside a reader"),
        listed = within("a list of the queue", lists.hit()) => listed.unwrap(),
    }
    assert!(reading.is_valid() && poll!(&mut writing).is_pending());
    drop(reading);
    within("the grant of the writer", writing).await.unwrap().unwrap().release().await.unwrap();
}
