//! Questions about a hold whose lease ran out, before any task of the session has seen it.
//!
//! No task runs between the end of the lease and the questions: nothing is awaited in between.

use futures::FutureExt;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{Op, TestServer};

use super::test_fixture::held_lock;
use crate::error::LossReason;
use crate::hold::Hold;
use crate::manager::HoldEvent;
use crate::time::deadline::Deadline;

fn exists(server: &TestServer, path: &str) -> bool {
    server.inspect(|machine| machine.tree().node(path).is_some())
}

/// Asks everything that a hold and its monitor can be asked.
fn ask(held: &Hold) {
    assert!(!held.is_valid());
    assert_eq!(held.check().unwrap_err().reason, LossReason::LeaseRanOut);
    assert_eq!(held.monitor().check().unwrap_err().reason, LossReason::LeaseRanOut);
    assert!(held.valid_until() <= held.session().now());
    assert!(format!("{held:?}").contains("valid: false"));
    assert!(!held.manager.hold_registry().is_held("/lock"));
}

#[tokio::test]
async fn a_question_about_an_expired_hold_sends_nothing_and_tells_nobody() {
    let (server, queue, held) = held_lock().await;
    let mut events = queue.events();
    let transcript = server.transcript();
    let lease = held.session().run_lease_out();
    ask(&held);
    assert_eq!(events.next().now_or_never(), None);
    assert!(held.node().recorded().is_ok() && held.manager.hold_registry().held() == 1);

    // As if the clock had not been read: whatever follows is the work of the questions.
    held.session().restore_lease(lease);
    let path = held.path().to_owned();
    held.manager.znodes().read("/lock").await.unwrap();
    let sent: Vec<Subject> = transcript.passed().into_iter().map(|passed| passed.subject).collect();
    assert!(!sent.contains(&Subject::Request(Op::Delete)), "{sent:?}");
    assert!(exists(&server, &path) && held.is_valid());
    assert_eq!(events.next().now_or_never(), None);
}

/// The lease of a session that was ended runs on. A wait for it that ended at once would be repeated at once,
/// for ever.
#[tokio::test]
async fn a_wait_for_the_lease_of_a_session_that_has_ended_ends_with_it() {
    let (_server, _queue, held) = held_lock().await;
    let session = held.session().clone();
    assert_eq!(session.until_lease_is_valid(Deadline::never()).now_or_never(), Some(Ok(true)));
    session.end(LossReason::SessionReplaced);
    let waited = session.until_lease_is_valid(Deadline::never()).now_or_never();
    assert_eq!(waited, Some(Err(LossReason::SessionReplaced)));
}

#[tokio::test]
async fn the_clock_alone_reports_an_expired_hold_and_deletes_its_node() {
    let (server, queue, held) = held_lock().await;
    let mut events = queue.events();
    let path = held.path().to_owned();
    let _ = held.session().run_lease_out();
    ask(&held);
    server.wait_until(|machine| machine.tree().node(&path).is_none()).await;
    let reason = LossReason::LeaseRanOut;
    assert_eq!(events.next().await, Some(HoldEvent::Lost { path, reason }));
}

#[tokio::test]
async fn a_hold_whose_loss_a_question_has_seen_ends_as_lost_when_it_is_dropped() {
    let (_server, queue, held) = held_lock().await;
    let mut events = queue.events();
    let (path, reason) = (held.path().to_owned(), LossReason::LeaseRanOut);
    let _ = held.session().run_lease_out();
    ask(&held);
    drop(held);
    assert_eq!(events.next().now_or_never().flatten(), Some(HoldEvent::Lost { path, reason }));
}
