//! Faults between the commit of a transaction that deletes a node and the processing of its answer: by then
//! the directory may have been removed and created again, and its sequence numbers begin anew.

use std::time::Duration;

use futures::poll;
use lockkeeper::{ConnectionManager, MultiLock, Mutex, RwLock, Semaphore};
use lockkeeper_testserver::{Fault, Op, When};

use super::own::{read_again_and_again, used_again_and_again};
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

const PERMITS: &str = "/permits";
const QUEUE: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

/// The manager of another process.
async fn foreign_manager(server_fixture: &ServerFixture) -> ConnectionManager {
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    manager.connect().await.unwrap()
}

async fn acquire_and_release(semaphore: &Semaphore, times: usize) {
    for _ in 0..times {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
}

/// The contender's task is not polled between the commit and the arrival of the answer.
#[tokio::test]
async fn a_release_answered_late_says_nothing_about_the_directory_made_since() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = Semaphore::new(&foreign_manager(&server_fixture).await, PERMITS, 2).unwrap();
    let semaphore = Semaphore::new(&server_fixture.rival, PERMITS, 2).unwrap();
    acquire_and_release(&semaphore, 8).await;
    let mut late = Box::pin(semaphore.acquire());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LEASES).len() == 1) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    // The contender had sequence number 8.
    assert!(server_fixture.server.delete_node(QUEUE));
    acquire_and_release(&foreign, 4).await;
    // Sequence numbers 4 and 5: the client watches the new directory from then on.
    acquire_and_release(&semaphore, 2).await;
    server_fixture.round_trip_of_rival().await.unwrap();
    let first = within("the answer", late).await.unwrap().unwrap();
    acquire_and_release(&foreign, 2).await;
    // Sequence number 8 again. The request is for all permits, and one is in use.
    let large = tokio::spawn(async move { foreign.acquire_many(2).await.unwrap() });
    let waits = server_fixture.server.wait_until(|machine| children(machine, QUEUE).len() == 1);
    within("a large request at the head of the queue", waits).await.unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none(), "a permit granted past the head of the queue");
    first.release().await.unwrap();
    within("the large request", large).await.unwrap().unwrap().release().await.unwrap();
}

/// The task that releases several locks is not polled between the commit and the arrival of the answer.
#[tokio::test]
async fn a_contender_behind_a_node_that_a_transaction_deleted_lists_before_it_holds() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = Mutex::new(&foreign_manager(&server_fixture).await, LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    let both =
        MultiLock::builder().lock(&mutex).lock(&Mutex::new(&server_fixture.rival, "/locks/b").unwrap());
    let both = both.atomic().build().unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let session = server_fixture.server.sessions()[0];
    // Sequence number 8.
    let held = both.acquire().await.unwrap();
    let mut late = Box::pin(held.release());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LOCK).is_empty()) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..6 {
        foreign.acquire().await.unwrap().release().await.unwrap();
    }
    let create = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(create, Fault::HoldReply);
    // Sequence number 6; behind it two foreign nodes, with numbers 7 and 8, and one more of this session.
    let mut front = Box::pin(mutex.acquire());
    assert!(poll!(&mut front).is_pending());
    within("the create", create.hit()).await.unwrap();
    let (mut second, third) = (foreign.enqueue().await.unwrap(), foreign.enqueue().await.unwrap());
    let mut enqueuing = Box::pin(mutex.enqueue());
    assert!(poll!(&mut enqueuing).is_pending());
    create.release();
    let mut ticket = within("a ticket", enqueuing).await.unwrap().unwrap();
    within("the answer", late).await.unwrap().unwrap();
    front.await.unwrap().release().await.unwrap();
    let held = within("the grant of the foreign contender", second.wait()).await.unwrap().unwrap();
    let mut waiting = Box::pin(ticket.wait());
    let lists = server_fixture
        .server
        .fault(When::op(Op::GetChildren).path(LOCK), Fault::DelayRequest(Duration::ZERO));
    tokio::select! {
        _ = &mut waiting => panic!("two holders"),
        listed = within("a list of the queue", lists.hit()) => listed.unwrap(),
    }
    assert!(held.is_valid() && poll!(&mut waiting).is_pending());
    drop((held, second, third));
    within("its grant", waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// The same with readers, which do not wait for each other.
#[tokio::test]
async fn a_reader_behind_a_reader_that_a_transaction_deleted_lists_before_it_holds() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let foreign = RwLock::new(&foreign_manager(&server_fixture).await, LOCK).unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let both = MultiLock::builder()
        .lock(&lock.reader())
        .lock(&Mutex::new(&server_fixture.rival, "/locks/b").unwrap());
    let both = both.atomic().build().unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    // Sequence number 8.
    let held = both.acquire().await.unwrap();
    let mut late = Box::pin(held.release());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LOCK).is_empty()) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..4 {
        foreign.read().await.unwrap().release().await.unwrap();
    }
    // Sequence numbers 4 and 5: the client watches the new directory from then on.
    for _ in 0..2 {
        lock.read().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let create = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(create, Fault::HoldReply);
    // Sequence number 6; behind it a foreign writer and a foreign reader, with numbers 7 and 8, and one more
    // reader of this session.
    let mut front = Box::pin(lock.read());
    assert!(poll!(&mut front).is_pending());
    within("the create", create.hit()).await.unwrap();
    let mut writer = foreign.enqueue_write().await.unwrap();
    let reader = foreign.enqueue_read().await.unwrap();
    let mut waiting = Box::pin(lock.read());
    assert!(poll!(&mut waiting).is_pending());
    let watches = server_fixture
        .server
        .fault(When::op(Op::GetData).path("/locks/lock/*"), Fault::DelayRequest(Duration::ZERO));
    create.release();
    tokio::select! {
        _ = &mut waiting => panic!("a reader granted before the writer ahead"),
        watched = within("a watch on the writer ahead", watches.hit()) => watched.unwrap(),
    }
    assert!(poll!(&mut waiting).is_pending());
    within("the answer", late).await.unwrap().unwrap();
    front.await.unwrap().release().await.unwrap();
    within("the grant of the writer", writer.wait()).await.unwrap().unwrap().release().await.unwrap();
    within("its grant", waiting).await.unwrap().unwrap().release().await.unwrap();
    drop(reader);
}
