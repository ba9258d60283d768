//! Many locks of one session, more than it has room for watches; and many contenders at once.

use std::time::Duration;

use futures::future::{join, join_all, try_join_all};
use lockkeeper::config::NODE_BYTES_MAX;
use lockkeeper::{MultiLock, Mutex, MutexGuard, RwLock};
use lockkeeper_testserver::Op;
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// Each path has some 75 bytes: together they exceed the 56 KiB of room for optional watches.
const MANY: usize = 1_000;

/// Long enough for a busy machine.
const SESSION: Duration = Duration::from_secs(4);

/// Waits until the session's lease is extended.
async fn wait_confirmed(guard: &MutexGuard) {
    let before = guard.valid_until();
    while guard.is_valid() && guard.valid_until() <= before {
        // A guard announces its loss, and no extension of its lease: the test has to poll.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(guard.is_valid(), "the lease was not extended any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_hold_without_room_for_a_watch_stays_confirmed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let connecting = builder(&server_fixture.server.connect_string()).session_timeout(SESSION).connect();
    let manager = connecting.await.unwrap();
    let taking = (0..MANY).map(async |number| {
        let mutex = Mutex::new(&manager, format!("/locks/one-of-many/{number}"))?;
        mutex.acquire().await
    });
    let mut held = within("all locks", try_join_all(taking)).await.unwrap().unwrap();

    // Long holds get watches, as far as there is room.
    let watched = server_fixture.server.wait_until(|machine| machine.watch_count(0) > MANY / 2);
    within("watches", watched).await.unwrap();
    for _ in 0..3 {
        within("a confirmation", wait_confirmed(&held[0])).await.unwrap();
    }
    assert!(held.iter().all(|guard| guard.is_valid()));
    assert!(server_fixture.server.inspect(|machine| machine.watch_count(0)) < MANY);

    // The freed room goes to the holds without a watch.
    let rest = held.split_off(MANY / 2);
    let released = within("all releases", join_all(held.into_iter().map(MutexGuard::release))).await;
    assert!(released.unwrap().iter().all(Result::is_ok));
    let watched = server_fixture.server.wait_until(|machine| machine.watch_count(0) == rest.len());
    within("a watch for each", watched).await.unwrap();
}

/// The server closes the connection for a larger request than it accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_that_no_single_request_can_name_are_taken_and_released_one_by_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let builder = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 10);
    let manager = builder.node_bytes_max(4 * NODE_BYTES_MAX).connect().await.unwrap();
    let name = "x".repeat(4_000);
    let members = (0..260).map(|number| Mutex::new(&manager, format!("/{name}/{number}")));
    let members: Vec<Mutex> = members.collect::<Result<_, _>>().unwrap();
    let all = members.iter().fold(MultiLock::builder(), |builder, member| builder.lock(member));
    let guard = within("all locks", all.build().unwrap().acquire()).await.unwrap().unwrap();
    within("the release", guard.release()).await.unwrap().unwrap();
    assert_eq!(server_fixture.server.inspect(|machine| machine.tree().ephemeral_count()), 0);
}

/// If each of them listed, the server would send the whole queue to each.
#[tokio::test]
async fn of_many_contenders_that_come_at_once_behind_an_own_node_one_lists_the_queue() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let connecting = builder(&server_fixture.server.connect_string()).session_timeout(SESSION).connect();
    let mutex = Mutex::new(&connecting.await.unwrap(), LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let transcript = server_fixture.server.transcript();
    // In one task: all creates are sent before any is answered.
    let served = join_all((0..100).map(async |_| mutex.acquire().await.unwrap().release().await));
    let released = async {
        server_fixture.queue_length_becomes(101).await.unwrap();
        held.release().await
    };
    let (served, released) = within("all grants", join(served, released)).await.unwrap();
    assert!(released.is_ok() && served.iter().all(Result::is_ok));
    assert_eq!(lists(&transcript), 1);
}

/// The sequence number of a reader behind a reader grants only in a directory that is watched.
#[tokio::test]
async fn readers_that_come_at_once_share_the_list_that_grants_them() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let connecting = builder(&server_fixture.server.connect_string()).session_timeout(SESSION).connect();
    let lock = RwLock::new(&connecting.await.unwrap(), LOCK).unwrap();
    let first = lock.read().await.unwrap();
    let transcript = server_fixture.server.transcript();
    // In one task: all creates are sent before any is answered.
    let served = join_all((0..100).map(async |_| lock.read().await));
    let guards = within("all grants", served).await.unwrap();
    assert!(guards.iter().all(|guard| guard.as_ref().is_ok_and(|guard| guard.is_valid())));
    assert!(first.is_valid());
    assert_eq!(lists(&transcript), 2, "one with the first create, and one for all the others");
}

fn lists(transcript: &Transcript) -> usize {
    let is_list = |passed: &Passed| passed.subject == Subject::Request(Op::GetChildren);
    transcript.passed().into_iter().filter(is_list).count()
}
