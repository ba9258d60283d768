//! The first starts of a window: what they cost, what their end costs, and what a lost create leaves.

use std::time::Duration;

use lockkeeper::manager::State;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, KeyedRateLimiter, RateLimiter};
use lockkeeper_testserver::fault::{Subject, Transcript};
use lockkeeper_testserver::{ErrorCode, Fault, Op, TestServer, When};

use crate::limit::{becomes, within};
use crate::limiters::{GRACE, WINDOW, connect, connected};

/// A window whose end a test waits for.
const BRIEF: Duration = Duration::from_millis(100);

async fn until_gone(server: &TestServer, path: &'static str) {
    within("no node", server.wait_until(|machine| machine.tree().node(path).is_none())).await.unwrap();
}

fn data(server: &TestServer, path: &str) -> Option<String> {
    server.inspect(|machine| {
        let data = machine.tree().node(path)?.data.clone();
        Some(String::from_utf8_lossy(data.as_deref().unwrap_or_default()).into_owned())
    })
}

/// The requests below the limiters' path.
fn requests(transcript: &Transcript) -> Vec<Op> {
    let passed = transcript.passed();
    let of_limiters =
        passed.iter().filter(|passed| passed.paths.iter().any(|path| path.starts_with("/calls")));
    of_limiters
        .filter_map(|passed| match passed.subject {
            Subject::Request(op) => Some(op),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_key_costs_one_request_at_its_first_start_and_four_at_the_end_of_its_window() {
    let (server, manager) = connected().await;
    manager.znodes().create("/calls", "", CreateMode::Persistent).await.unwrap();
    let transcript = server.transcript();
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, BRIEF).unwrap();
    let _used = calls.of("anna").unwrap().admit().await.unwrap();
    until_gone(&server, "/calls/anna").await;
    // A delete more would be sent behind the answer to that of both nodes.
    let health = || manager.health();
    becomes("the end of the contender", || health().held == 0 && health().pending_deletes == 0)
        .await
        .unwrap();
    // The node with the start; then a contender, its list and its read, and the delete of both nodes.
    let expected = [Op::Create2, Op::Create2, Op::GetChildren, Op::GetData, Op::Multi];
    assert_eq!(requests(&transcript), expected);
}

#[tokio::test]
async fn the_first_key_below_a_path_costs_two_requests_more() {
    let (server, manager) = connected().await;
    let transcript = server.transcript();
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let _used = calls.of("anna").unwrap().admit().await.unwrap();
    // The servers delete the node above the keys when it has been empty for a while.
    assert_eq!(requests(&transcript), [Op::Create2, Op::CreateContainer, Op::Create2]);
}

#[tokio::test]
async fn a_try_beyond_the_first_starts_of_a_key_costs_no_request_of_its_own() {
    let (server, manager) = connected().await;
    manager.znodes().create("/calls", "", CreateMode::Persistent).await.unwrap();
    let transcript = server.transcript();
    let calls = KeyedRateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap().with_grace(GRACE);
    let anna = calls.of("anna").unwrap();
    let tries = futures::future::join_all((0..5).map(|_| anna.try_admit())).await;
    let later: Vec<Duration> = tries.into_iter().filter_map(|tried| tried.unwrap().retry_after()).collect();
    assert_eq!(later.len(), 3);
    assert!(later.iter().all(|wait| *wait > WINDOW && *wait <= WINDOW + GRACE * 2), "{later:?}");
    assert_eq!(requests(&transcript), [Op::Create2]);
}

#[tokio::test]
async fn tries_of_a_process_that_has_taken_nothing_look_for_a_missing_window_once() {
    let (server, manager) = connected().await;
    let limiter = |manager: &ConnectionManager| {
        RateLimiter::new(manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE)
    };
    let _used = limiter(&manager).admit().await.unwrap();
    let other = connect(&server).await;
    let transcript = server.transcript();
    for _ in 0..3 {
        assert!(limiter(&other).try_admit().await.unwrap().retry_after().is_some());
    }
    let creates = requests(&transcript).into_iter().filter(|op| *op == Op::Create2).count();
    assert_eq!(creates, 4, "one of the window, and three contenders");
}

#[tokio::test]
async fn first_starts_without_an_answer_are_used_once_and_admit_their_call() {
    for is_applied in [true, false] {
        let (server, manager) = connected().await;
        let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
        let fault = if is_applied { Fault::HoldReply } else { Fault::HoldRequest };
        let create = server.fault(When::op(Op::Create2).path("/calls"), fault);
        let admitting = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.try_admit().await.unwrap() }
        });
        within("the create", create.hit()).await.unwrap();
        server.drop_connections();
        let tried = within("an answer", admitting).await.unwrap().unwrap();
        assert!(tried.admitted().is_some(), "{is_applied}");
        assert!(limiter.try_admit().await.unwrap().retry_after().is_some(), "{is_applied}");
    }
}

#[tokio::test]
async fn first_starts_that_wait_for_a_connection_are_fresh_from_the_create_on() {
    let (server, manager) = connected().await;
    let grace = Duration::from_secs(2);
    let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(grace);
    let session = server.sessions()[0];
    let away = server.fault(When::connect().session(session).always(), Fault::DropConnectionBefore);
    let mut transitions = manager.transitions();
    server.drop_connections();
    let broken = async {
        while matches!(manager.state(), State::Connected(_)) {
            transitions.next().await;
        }
    };
    within("the break of the link", broken).await.unwrap();
    let mut admitting = Box::pin(limiter.admit());
    assert!(futures::poll!(&mut admitting).is_pending());
    // The passing of time is the subject.
    tokio::time::sleep(grace).await;
    drop(away);
    assert!(within("an admission", admitting).await.unwrap().unwrap().is_fresh());
}

#[tokio::test]
async fn first_starts_that_are_applied_after_their_call_replace_no_window() {
    let (server, manager) = connected().await;
    let limiter = |manager: &ConnectionManager| {
        RateLimiter::new(manager, "/calls", 2, WINDOW).unwrap().with_grace(GRACE)
    };
    let create = server.fault(When::op(Op::Create2).path("/calls"), Fault::HoldRequest);
    let late = limiter(&manager);
    let admitting = tokio::spawn(async move { late.admit().await.map(drop) });
    within("the create", create.hit()).await.unwrap();
    admitting.abort();
    let rival = connect(&server).await;
    let _used = limiter(&rival).admit().await.unwrap();
    let recorded = data(&server, "/calls");
    create.release();
    // A request behind it has an answer.
    assert!(manager.znodes().read("/calls").await.unwrap().is_some());
    assert_eq!(data(&server, "/calls"), recorded);
}

/// No later than that no create of it can be applied any more.
#[tokio::test]
async fn a_node_whose_create_may_be_applied_late_stays_until_then() {
    let (server, manager) = connected().await;
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, BRIEF).unwrap();
    let create = server.fault(When::op(Op::Create2).path("/calls/anna"), Fault::HoldRequest);
    let anna = calls.of("anna").unwrap();
    let admitting = tokio::spawn(async move { anna.admit().await.map(drop) });
    within("the create", create.hit()).await.unwrap();
    server.drop_connections();
    within("an admission", admitting).await.unwrap().unwrap().unwrap();
    // A later and longer window ends earlier.
    let _used = RateLimiter::new(&manager, "/longer", 1, BRIEF * 5).unwrap().admit().await.unwrap();
    until_gone(&server, "/longer").await;
    assert!(data(&server, "/calls/anna").is_some());
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_creates_its_window_leaves_no_node() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 1, BRIEF).unwrap();
    let create = server.fault(When::op(Op::Create2).path("/calls"), Fault::HoldReply);
    let admitting = tokio::spawn(async move { limiter.admit().await.map(drop) });
    within("the create", create.hit()).await.unwrap();
    admitting.abort();
    create.release();
    until_gone(&server, "/calls").await;
}

#[tokio::test]
async fn a_node_whose_delete_fails_for_a_while_is_deleted_later() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls/a", 1, BRIEF).unwrap().with_grace(BRIEF);
    // The first transaction of all: the create that records the starts is none.
    let failed = Fault::Refuse(ErrorCode::RuntimeInconsistency);
    let failed = server.fault(When::op(Op::Multi).path("/calls/a"), failed);
    let _ = limiter.admit().await.unwrap();
    within("a delete that fails", failed.hit()).await.unwrap();
    until_gone(&server, "/calls/a").await;
}

#[tokio::test]
async fn a_call_waits_no_longer_than_its_time_while_a_node_is_deleted() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls/a", 1, BRIEF).unwrap().with_grace(BRIEF);
    let unanswered = server.fault(When::op(Op::Multi).path("/calls/a"), Fault::HoldReply);
    let _ = limiter.admit().await.unwrap();
    within("a delete without an answer", unanswered.hit()).await.unwrap();
    let late = within("the end of the call", limiter.admit_timeout(BRIEF)).await.unwrap().unwrap_err();
    assert!(late.is_timeout(), "{late}");
    unanswered.release();
    until_gone(&server, "/calls/a").await;
}

#[tokio::test]
async fn a_key_takes_starts_ahead_for_itself_alone_and_leaves_nothing() {
    let (server, manager) = connected().await;
    let calls = |window| KeyedRateLimiter::new(&manager, "/calls", 100, window).unwrap().with_ahead(10);
    let lasting = calls(WINDOW).with_grace(GRACE);
    // The first call waits in front of those that are taken ahead.
    let _first = lasting.of("anna").unwrap().admit().await.unwrap();
    let transcript = server.transcript();
    for _ in 0..5 {
        assert!(lasting.of("anna").unwrap().admit().await.unwrap().is_fresh());
    }
    assert_eq!(requests(&transcript), []);
    let recorded = data(&server, "/calls/anna").unwrap();
    assert!(recorded.contains("\n11 grace "), "{recorded}");
    assert_eq!(data(&server, "/calls/bert"), None);
    let _used = calls(BRIEF).of("bert").unwrap().admit().await.unwrap();
    until_gone(&server, "/calls/bert").await;
}
