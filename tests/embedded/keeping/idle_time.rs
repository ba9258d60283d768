//! A node that is kept for `idle_time` after the last release.

use std::time::Duration;

use lockkeeper::{Mutex, Revoker};

use super::fixture::{HandOffFixture, asked, keep};
use crate::limit::within;
use crate::server_fixture::LOCK;

/// Less than the idle time.
const PROMPTLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_idle_node_is_acquired_again_and_again_without_a_request() {
    let fixture = HandOffFixture::lingering().await;
    let first = fixture.mutex.acquire().await.unwrap();
    let (node, mut token) = (first.path().to_owned(), first.fencing_token());
    first.release().await.unwrap();
    fixture.wait_watched().await;
    let transcript = fixture.server_fixture.server.transcript();
    for round in 0..100 {
        let guard = match round % 2 {
            0 => fixture.mutex.acquire().await.unwrap(),
            _ => fixture.mutex.try_acquire().await.unwrap().expect("an idle node"),
        };
        assert!(guard.is_valid() && *guard.path() == node && guard.fencing_token() > token);
        token = guard.fencing_token();
        match round % 3 {
            0 => drop(guard),
            _ => guard.release().await.unwrap(),
        }
    }
    assert_eq!(asked(transcript.passed(), fixture.session()), []);
    drop(fixture.mutex);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    let again = Mutex::new(&fixture.actor, LOCK).unwrap().acquire().await.unwrap();
    assert!(again.fencing_token() > token);
}

#[tokio::test]
async fn a_first_hold_sends_no_request_for_its_hand_off_before_its_release() {
    let fixture = HandOffFixture::lingering().await;
    let transcript = fixture.server_fixture.server.transcript();
    let held = fixture.mutex.acquire().await.unwrap();
    fixture.server_fixture.round_trip_of_rival().await.unwrap();
    fixture.let_all_run().await;
    let before = asked(transcript.passed(), fixture.session()).len();
    let plain = Mutex::new(&fixture.actor, "/locks/plain").unwrap();
    let transcript = fixture.server_fixture.server.transcript();
    let _ = plain.acquire().await.unwrap();
    let of_plain = asked(transcript.passed(), fixture.session()).len();
    assert!(before <= of_plain + 1, "{before} requests");
    drop(held);
}

#[tokio::test]
async fn an_idle_node_is_deleted_when_another_process_contends() {
    let fixture = HandOffFixture::lingering().await;
    for is_seen_before in [false, true] {
        fixture.mutex.acquire().await.unwrap().release().await.unwrap();
        if is_seen_before {
            fixture.wait_watched().await;
        }
        let theirs = Mutex::new(&fixture.server_fixture.rival, LOCK).unwrap();
        theirs.acquire_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    }
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

/// Another `Mutex` of the same process is another contender.
#[tokio::test]
async fn an_idle_node_is_deleted_when_another_mutex_of_the_process_contends() {
    let fixture = HandOffFixture::lingering().await;
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let other = Mutex::new(&fixture.actor, LOCK).unwrap();
    other.acquire_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let mut ticket = fixture.mutex.enqueue().await.unwrap();
    let guard = ticket.wait_timeout(PROMPTLY).await.unwrap();
    guard.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_idle_node_is_deleted_when_its_idle_time_ends() {
    let fixture = HandOffFixture::set(keep().idle_time(Duration::from_millis(20))).await;
    for _ in 0..3 {
        fixture.mutex.acquire().await.unwrap().release().await.unwrap();
        fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    }
}

#[test]
fn an_idle_node_is_deleted_with_the_last_clone_of_the_mutex_also_outside_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(HandOffFixture::lingering());
    let clone = fixture.mutex.clone();
    runtime.block_on(async { clone.acquire().await.unwrap().release().await.unwrap() });
    assert_eq!(
        fixture.server_fixture.server.inspect(|machine| crate::server_fixture::queue_nodes(machine).len()),
        1
    );
    drop(clone);
    drop(fixture.mutex);
    runtime.block_on(fixture.server_fixture.queue_length_becomes(0)).unwrap();
}

#[tokio::test]
async fn an_idle_node_keeps_no_session_alive() {
    let fixture = HandOffFixture::lingering().await;
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let HandOffFixture { server_fixture, actor, mutex } = fixture;
    drop((actor, mutex));
    let ended = server_fixture.server.wait_until(|machine| machine.sessions().len() == 1);
    within("the end of the session", ended).await.unwrap();
}

#[tokio::test]
async fn an_idle_node_is_deleted_when_a_revoker_asks_for_it() {
    let fixture = HandOffFixture::lingering().await;
    fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    let theirs = Mutex::new(&fixture.server_fixture.rival, LOCK).unwrap();
    let inspection = theirs.inspect().await.unwrap();
    let asked = Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    assert_eq!(asked.len(), 1);
    tokio::time::timeout(PROMPTLY, fixture.server_fixture.queue_length_becomes(0)).await.unwrap().unwrap();
}
