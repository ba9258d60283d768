//! Between the commit of a transaction that deletes a node and the look at its answer: by then the
//! directory may have been removed and made again, and its sequence numbers begin anew.

use std::time::Duration;

use futures::poll;
use lockkeeper::{ConnectionManager, MultiLock, Mutex, RwLock, Semaphore};
use lockkeeper_testserver::{Fault, Op, When};

use super::own::{read_again_and_again, used_again_and_again};
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, children};

const PERMITS: &str = "/permits";
const IN_LINE: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

/// Another process.
async fn stranger(server_fixture: &ServerFixture) -> ConnectionManager {
    let stranger = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(30));
    stranger.connect().await.unwrap()
}

async fn taken_and_given_back(semaphore: &Semaphore, times: usize) {
    for _ in 0..times {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
}

/// The taker's task is not polled between the commit and its look at the answer.
#[tokio::test]
async fn a_release_answered_late_says_nothing_about_the_directory_made_since() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let stranger = Semaphore::new(&stranger(&server_fixture).await, PERMITS, 2).unwrap();
    let semaphore = Semaphore::new(&server_fixture.rival, PERMITS, 2).unwrap();
    taken_and_given_back(&semaphore, 8).await;
    let mut late = Box::pin(semaphore.acquire());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LEASES).len() == 1) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    // It had number 8.
    assert!(server_fixture.server.delete_node(IN_LINE));
    taken_and_given_back(&stranger, 4).await;
    // Numbers 4 and 5: the new directory is watched from then on.
    taken_and_given_back(&semaphore, 2).await;
    server_fixture.round_trip_of_rival().await.unwrap();
    let first = within("the answer", late).await.unwrap().unwrap();
    taken_and_given_back(&stranger, 2).await;
    // Number 8 again. It wants all permits, and one is out.
    let large = tokio::spawn(async move { stranger.acquire_many(2).await.unwrap() });
    let waits = server_fixture.server.wait_until(|machine| children(machine, IN_LINE).len() == 1);
    within("a large request at the head of the queue", waits).await.unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none(), "a permit past the head of the queue");
    first.release().await.unwrap();
    within("the large request", large).await.unwrap().unwrap().release().await.unwrap();
}

/// The task that releases several locks is not polled between the commit and its look at the answer.
#[tokio::test]
async fn a_contender_behind_a_node_that_a_transaction_deleted_lists_before_it_holds() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let stranger = Mutex::new(&stranger(&server_fixture).await, LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    let both =
        MultiLock::builder().lock(&mutex).lock(&Mutex::new(&server_fixture.rival, "/locks/b").unwrap());
    let both = both.atomic().build().unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    let session = server_fixture.server.sessions()[0];
    // Number 8.
    let held = both.acquire().await.unwrap();
    let mut late = Box::pin(held.release());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LOCK).is_empty()) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..6 {
        stranger.acquire().await.unwrap().release().await.unwrap();
    }
    let create = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(create, Fault::HoldReply);
    // Number 6; behind it two of the stranger's, with numbers 7 and 8, and one more of ours.
    let mut front = Box::pin(mutex.acquire());
    assert!(poll!(&mut front).is_pending());
    within("the create", create.hit()).await.unwrap();
    let (mut second, third) = (stranger.enqueue().await.unwrap(), stranger.enqueue().await.unwrap());
    let mut place = Box::pin(mutex.enqueue());
    assert!(poll!(&mut place).is_pending());
    create.release();
    let mut place = within("a place", place).await.unwrap().unwrap();
    within("the answer", late).await.unwrap().unwrap();
    front.await.unwrap().release().await.unwrap();
    let held = within("the stranger's turn", second.wait()).await.unwrap().unwrap();
    let mut waiting = Box::pin(place.wait());
    let looks = server_fixture
        .server
        .fault(When::op(Op::GetChildren).path(LOCK), Fault::DelayRequest(Duration::ZERO));
    tokio::select! {
        _ = &mut waiting => panic!("two holders"),
        looked = within("a look at the line", looks.hit()) => looked.unwrap(),
    }
    assert!(held.is_valid() && poll!(&mut waiting).is_pending());
    drop((held, second, third));
    within("its turn", waiting).await.unwrap().unwrap().release().await.unwrap();
}

/// The same with readers, who do not wait for each other.
#[tokio::test]
async fn a_reader_behind_a_reader_that_a_transaction_deleted_lists_before_it_holds() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let stranger = RwLock::new(&stranger(&server_fixture).await, LOCK).unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let both = MultiLock::builder()
        .lock(&lock.reader())
        .lock(&Mutex::new(&server_fixture.rival, "/locks/b").unwrap());
    let both = both.atomic().build().unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    // Number 8.
    let held = both.acquire().await.unwrap();
    let mut late = Box::pin(held.release());
    tokio::select! {
        biased;
        () = server_fixture.server.wait_until(|machine| children(machine, LOCK).is_empty()) => {}
        _ = &mut late => panic!("the answer came before its transaction"),
    }
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..4 {
        stranger.read().await.unwrap().release().await.unwrap();
    }
    // Numbers 4 and 5: the new directory is watched from then on.
    for _ in 0..2 {
        lock.read().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let create = When::op(Op::Create2).path("/locks/lock/*").session(session);
    let create = server_fixture.server.fault(create, Fault::HoldReply);
    // Number 6; behind it a writer and a reader of the stranger's, with numbers 7 and 8, and one more of
    // ours.
    let mut front = Box::pin(lock.read());
    assert!(poll!(&mut front).is_pending());
    within("the create", create.hit()).await.unwrap();
    let mut writer = stranger.enqueue_write().await.unwrap();
    let reader = stranger.enqueue_read().await.unwrap();
    let mut waiting = Box::pin(lock.read());
    assert!(poll!(&mut waiting).is_pending());
    let looks = server_fixture
        .server
        .fault(When::op(Op::GetData).path("/locks/lock/*"), Fault::DelayRequest(Duration::ZERO));
    create.release();
    tokio::select! {
        _ = &mut waiting => panic!("past a writer in front"),
        looked = within("a watch on the writer in front", looks.hit()) => looked.unwrap(),
    }
    assert!(poll!(&mut waiting).is_pending());
    within("the answer", late).await.unwrap().unwrap();
    front.await.unwrap().release().await.unwrap();
    within("the writer's turn", writer.wait()).await.unwrap().unwrap().release().await.unwrap();
    within("its turn", waiting).await.unwrap().unwrap().release().await.unwrap();
    drop(reader);
}
