//! Between two places of one process, of which the one behind is told in memory.

use std::time::Duration;

use futures::poll;
use lockkeeper::{Error, Mutex, RwLock};
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder, in_line};

/// A place that is kept, and in which nobody waits: nothing of it sees that its node is gone.
#[tokio::test]
async fn who_waits_behind_a_kept_place_of_its_process_is_served_when_that_is_deleted_by_hand() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let mutex = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mut kept = mutex.enqueue().await.unwrap();
    let front = server_fixture.server.inspect(in_line).remove(0);
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    // It watches its own node once it waits for long, and the one in front.
    let watched = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
    within("a long wait", watched).await.unwrap();
    assert!(server_fixture.server.delete_node(&front));
    let guard = within("a turn with nobody in front", waiting).await.unwrap().unwrap();
    assert!(kept.refresh().await.unwrap() == 1, "the kept place is a new one, behind");
    guard.release().await.unwrap();
    within("the kept place's turn", kept.wait()).await.unwrap().unwrap().release().await.unwrap();
}

/// The event of the write uses the watch up.
#[tokio::test]
async fn whose_node_was_written_by_hand_still_sees_it_go() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    within("a long wait", server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1))
        .await
        .unwrap();
    let mine = server_fixture.server.inspect(in_line).into_iter().find(|path| path != held.path()).unwrap();
    let watched =
        server_fixture.server.fault(When::op(Op::GetData).path(&mine), Fault::DelayRequest(Duration::ZERO));
    server_fixture.rival.znodes().write(&mine.parse().unwrap(), b"a note", -1).await.unwrap();
    within("another watch", watched.hit()).await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    assert!(server_fixture.server.delete_node(&mine));
    server_fixture.line_becomes(2).await.unwrap();
    held.release().await.unwrap();
    let guard = within("its turn", waiting).await.unwrap().unwrap();
    assert!(guard.path() != mine && guard.is_valid());
    guard.release().await.unwrap();
}

/// Paths that take the room for watches on what one has oneself.
fn long(number: usize) -> String {
    format!("/{number}-{}", "x".repeat(3_900))
}

/// Without room for a watch on its own node only the one in front tells, and tells the next one alone.
#[tokio::test]
async fn whose_place_is_taken_by_the_next_one_finds_out_that_it_is_gone() {
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
    within("watches without end", full).await.unwrap();

    let mutex = Mutex::new(&actor, LOCK).unwrap();
    let first = mutex.acquire().await.unwrap();
    let mut second = mutex.enqueue().await.unwrap();
    let mine = server_fixture.server.inspect(in_line).into_iter().find(|path| path != first.path()).unwrap();
    let mut second = Box::pin(second.wait());
    assert!(poll!(&mut second).is_pending(), "it waits");
    assert!(server_fixture.server.delete_node(&mine));
    let mut third = mutex.enqueue().await.unwrap();
    let mut third = Box::pin(third.wait());
    assert!(poll!(&mut third).is_pending(), "it waits");
    first.release().await.unwrap();
    let served = async { third.await.unwrap().release().await };
    within("the third one's turn", served).await.unwrap().unwrap();
    let served = async { second.await.unwrap().release().await };
    within("the second one's turn, in a new place", served).await.unwrap().unwrap();
    drop((held, waiting));
}

/// Readers wait for no readers, a mutex's contenders for everyone: that a reader left tells only readers something.
#[tokio::test]
async fn the_number_of_a_reader_that_left_tells_a_mutex_of_the_same_path_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let reading = lock.read().await.unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    let tried = Mutex::new(&server_fixture.rival, LOCK).unwrap().try_acquire().await;
    assert!(matches!(tried, Err(Error::ConflictingKind { .. })), "{tried:?}");
    assert!(reading.is_valid());
}

/// So often that numbers tell, and the directory is watched.
pub(super) async fn used_again_and_again(server_fixture: &ServerFixture, mutex: &Mutex) {
    for _ in 0..8 {
        mutex.acquire().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
}

/// As often.
pub(super) async fn read_again_and_again(server_fixture: &ServerFixture, lock: &RwLock) {
    for _ in 0..8 {
        lock.read().await.unwrap().release().await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
}

/// Numbers begin anew while the create is on its way: nobody has looked at the watch since.
#[tokio::test]
async fn a_number_does_not_tell_if_the_directory_went_after_the_create_was_sent() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let stranger = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
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
        stranger.acquire().await.unwrap().release().await.unwrap();
    }
    // Number 7, as the last one of ours had.
    let held = stranger.acquire().await.unwrap();
    create.release();
    assert!(within("an answer", trying).await.unwrap().unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// Numbers begin anew, and the new directory is watched; who expects one of ours in front reads no list.
#[tokio::test]
async fn a_number_of_a_directory_that_is_gone_does_not_tell_who_comes_behind_another_create() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let stranger = Mutex::new(&server_fixture.actor().await.unwrap(), LOCK).unwrap();
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    used_again_and_again(&server_fixture, &mutex).await;
    assert!(server_fixture.server.delete_node(LOCK));
    for _ in 0..4 {
        stranger.acquire().await.unwrap().release().await.unwrap();
    }
    // Number 4: the new directory is watched from then on.
    mutex.acquire().await.unwrap().release().await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let create = server_fixture
        .server
        .fault(When::op(Op::Create2).path("/locks/lock/*").session(session), Fault::HoldReply);
    let mut trying = Box::pin(mutex.try_acquire());
    assert!(poll!(&mut trying).is_pending());
    within("the create", create.hit()).await.unwrap();
    server_fixture.line_becomes(1).await.unwrap();
    // Behind number 5 of ours, which leaves, number 6; and 7 is ours again.
    let mut waiting = stranger.enqueue().await.unwrap();
    let mut behind = Box::pin(mutex.try_acquire());
    assert!(poll!(&mut behind).is_pending());
    create.release();
    trying.await.unwrap().unwrap().release().await.unwrap();
    let held = within("the stranger's turn", waiting.wait()).await.unwrap().unwrap();
    assert!(within("an answer", behind).await.unwrap().unwrap().is_none(), "two holders");
    held.release().await.unwrap();
}

/// The last reader's delete was sent behind the writer's create, and others read.
#[tokio::test]
async fn a_writer_is_not_let_in_by_the_number_of_a_reader_that_left() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let lock = RwLock::new(&server_fixture.rival, LOCK).unwrap();
    let reading = lock.read().await.unwrap();
    read_again_and_again(&server_fixture, &lock).await;
    let last = lock.read().await.unwrap();
    let looks = server_fixture
        .server
        .fault(When::op(Op::GetChildren).path(LOCK), Fault::DelayRequest(Duration::ZERO));
    let mut writing = Box::pin(lock.write());
    assert!(poll!(&mut writing).is_pending());
    drop(last);
    tokio::select! {
        _ = &mut writing => panic!("a writer beside a reader"),
        looked = within("a look at the line", looks.hit()) => looked.unwrap(),
    }
    assert!(reading.is_valid() && poll!(&mut writing).is_pending());
    drop(reading);
    within("the writer's turn", writing).await.unwrap().unwrap().release().await.unwrap();
}
