//! What a rate limiter says of the time, limiters by key, and what is left of unused ones.

use std::time::Duration;

use futures::future::join_all;
use futures::poll;
use lockkeeper::error::RateLimiterError;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, KeyedRateLimiter, RateLimiter, TryAdmit};
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::Node;
use lockkeeper_testserver::{Fault, Op, TestServer, When};
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::server_fixture::servers;

/// No test waits so long: the server's clock is moved.
pub(crate) const WINDOW: Duration = Duration::from_secs(600);
pub(crate) const GRACE: Duration = Duration::from_secs(60);

const MILLISECOND: Duration = Duration::from_millis(1);

/// A session that outlasts every jump of the server's clock.
pub(crate) const SESSION: Duration = Duration::from_secs(10_000);

pub(crate) async fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::builder(&server.connect_string()).session_timeout(SESSION).connect().await.unwrap()
}

pub(crate) async fn connected() -> (TestServer, ConnectionManager) {
    let server = servers().session_timeouts(Duration::from_secs(1), SESSION).start().await.unwrap();
    let manager = connect(&server).await;
    (server, manager)
}

#[tokio::test]
async fn after_the_time_that_a_refused_try_names_another_try_is_admitted() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap().with_grace(GRACE);
    for _ in 0..2 {
        assert!(limiter.try_admit().await.unwrap().admitted().is_some_and(|of| of.is_fresh()));
        server.advance_clock(Duration::from_secs(100));
    }
    let TryAdmit::Later { retry_after } = limiter.try_admit().await.unwrap() else { panic!("admitted") };
    // The first start counts for the window and the grace.
    let left = WINDOW + GRACE - Duration::from_secs(200);
    assert!(retry_after <= left + Duration::from_millis(1), "{retry_after:?}");
    assert!(retry_after > left - Duration::from_secs(60), "{retry_after:?}");
    server.advance_clock(retry_after);
    assert!(limiter.try_admit().await.unwrap().retry_after().is_none());
}

#[tokio::test]
async fn a_try_behind_a_waiter_names_a_time_and_uses_nothing_up() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let _first = limiter.admit().await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.admit().await.map(drop) }
    });
    within("a waiter", server.wait_until(|machine| machine.tree().ephemeral_count() == 1)).await.unwrap();
    let other = connect(&server).await;
    let behind = RateLimiter::new(&other, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let retry_after = behind.try_admit().await.unwrap().retry_after().unwrap();
    assert!(retry_after <= WINDOW + GRACE + MILLISECOND, "{retry_after:?}");
    assert!(retry_after > WINDOW, "{retry_after:?}");
    waiting.abort();
}

#[tokio::test]
async fn a_grace_that_is_too_short_is_an_error_and_no_endless_loop() {
    let (_server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 9, WINDOW).unwrap();
    let admission = limiter.clone().with_grace(GRACE).admit_fresh().await.unwrap();
    assert!(admission.is_fresh());
    let error = limiter.with_grace(Duration::ZERO).admit_fresh_timeout(GRACE).await.unwrap_err();
    assert!(matches!(error.recipe(), Some(RateLimiterError::Stale { tries: 4, .. })), "{error}");
}

#[tokio::test]
async fn keys_do_not_wait_for_each_other_and_what_they_leave_is_swept() {
    let (server, manager) = connected().await;
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    assert!(calls.of("").is_err());
    for key in ["anna", "bert/2", "."] {
        assert!(calls.of(key).unwrap().try_admit().await.unwrap().admitted().is_some(), "{key}");
        assert!(calls.of(key).unwrap().try_admit().await.unwrap().retry_after().is_some(), "{key}");
    }
    assert_eq!(calls.sweep().await.unwrap(), 0);
    server.advance_clock(WINDOW + GRACE * 2);
    let _again = calls.of("anna").unwrap().admit_fresh().await.unwrap();
    assert_eq!(calls.sweep().await.unwrap(), 2);
    assert_eq!(calls.sweep().await.unwrap(), 0);
    assert!(calls.of("anna").unwrap().try_admit().await.unwrap().retry_after().is_some());
    assert!(calls.of("bert/2").unwrap().try_admit().await.unwrap().admitted().is_some());
}

#[tokio::test]
async fn tries_at_the_same_time_are_all_admitted_while_there_is_room() {
    let (server, manager) = connected().await;
    let limiters: Vec<RateLimiter> =
        (0..20).map(|_| RateLimiter::new(&manager, "/calls", 15, WINDOW).unwrap()).collect();
    let transcript = server.transcript();
    let tries = join_all(limiters.iter().map(RateLimiter::try_admit)).await;
    let admitted = tries.into_iter().filter(|tried| tried.as_ref().unwrap().retry_after().is_none()).count();
    assert_eq!(admitted, 15);
    // A read, and the write of all starts.
    let passed = transcript.passed();
    let of = |op| passed.iter().filter(|passed| passed.subject == Subject::Request(op)).count();
    assert!(of(Op::Create2) <= 3 && of(Op::Multi) <= 4, "{passed:?}");
}

/// The sessions of the writes to the window. Other transactions confirm the session.
fn writers(transcript: &Transcript) -> Vec<i64> {
    let is_write = |passed: &Passed| {
        passed.subject == Subject::Request(Op::Multi)
            && passed.paths.iter().any(|path| path.starts_with("/calls"))
    };
    transcript.passed().into_iter().filter(is_write).map(|passed| passed.session).collect()
}

#[tokio::test]
async fn a_turn_admits_the_calls_that_waited_when_it_took_its_first_starts() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 1_000, WINDOW).unwrap();
    let session = server.sessions()[0];
    // So the first starts are written as well.
    manager.znodes().create("/calls", "no starts\n", CreateMode::Persistent).await.unwrap();
    let transcript = server.transcript();
    let write = server.fault(When::op(Op::Multi).path("/calls").session(session), Fault::HoldRequest);
    let mut first = Box::pin(limiter.admit());
    assert!(poll!(&mut first).is_pending());
    within("the first write", write.hit()).await.unwrap();
    let rival = RateLimiter::new(&connect(&server).await, "/calls", 1_000, WINDOW).unwrap();
    let rival = tokio::spawn(async move { rival.admit().await.map(drop) });
    within("a rival", server.wait_until(|machine| machine.tree().ephemeral_count() == 2)).await.unwrap();
    let mut second = Box::pin(limiter.admit());
    assert!(poll!(&mut second).is_pending());
    write.release();
    let _first = within("the first call", first).await.unwrap().unwrap();
    within("the rival", rival).await.unwrap().unwrap().unwrap();
    let _second = within("the second call", second).await.unwrap().unwrap();
    let before_rival = writers(&transcript).into_iter().take_while(|by| *by == session).count();
    assert!(before_rival <= 1, "{:?}", writers(&transcript));
}

/// Long enough that a call comes before its end on a slow machine, too.
const WINDOW_OF_WAITER: Duration = Duration::from_secs(3);

/// One start in a short window, and a call that waits for its end.
async fn waiting_for_room(server: &TestServer, manager: &ConnectionManager) -> (i64, JoinHandle<()>) {
    let limiter = RateLimiter::new(manager, "/calls", 1, WINDOW_OF_WAITER).unwrap();
    let limiter = limiter.with_grace(MILLISECOND);
    let _first = limiter.admit().await.unwrap();
    let is_idle = |machine: &Machine| machine.tree().ephemeral_count() == 0;
    within("an end", server.wait_until(is_idle)).await.unwrap();
    let (_, stat) = manager.znodes().read("/calls").await.unwrap().unwrap();
    let waiting = tokio::spawn(async move { limiter.admit().await.map(drop).unwrap() });
    within("a waiter", server.wait_until(move |machine| !is_idle(machine))).await.unwrap();
    (stat.mtime, waiting)
}

#[tokio::test]
async fn a_call_that_waits_for_room_costs_one_write() {
    let (server, manager) = connected().await;
    let transcript = server.transcript();
    let (_, waiting) = waiting_for_room(&server, &manager).await;
    within("an admission", waiting).await.unwrap().unwrap();
    assert_eq!(writers(&transcript).len(), 1, "the first start is recorded by the create of the node");
}

#[tokio::test]
async fn a_write_before_there_is_room_by_the_servers_clock_admits_nobody() {
    let (server, manager) = connected().await;
    let transcript = server.transcript();
    let (started, waiting) = waiting_for_room(&server, &manager).await;
    server.set_clock_back(WINDOW_OF_WAITER);
    within("an admission", waiting).await.unwrap().unwrap();
    let (data, stat) = manager.znodes().read("/calls").await.unwrap().unwrap();
    let after = stat.mtime - started;
    assert!(after > WINDOW_OF_WAITER.as_millis().try_into().unwrap(), "{after} ms after the first start");
    assert!(String::from_utf8_lossy(&data).contains("\n1 grace 1 by "), "{data:?}");
    // The early write, and the one that takes its starts out.
    assert_eq!(writers(&transcript).len(), 3);
}

#[tokio::test]
async fn a_call_ends_as_soon_as_its_time_does_not_suffice() {
    let (_server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let _first = limiter.admit().await.unwrap();
    let refused = within("an error", limiter.admit_timeout(WINDOW / 2)).await.unwrap().unwrap_err();
    let Some(RateLimiterError::NoRoom { retry_after, asked: 1, .. }) = refused.recipe() else {
        panic!("{refused}")
    };
    assert!(*retry_after > WINDOW / 2 && *retry_after <= WINDOW + GRACE + MILLISECOND, "{refused}");
    assert!(refused.is_timeout() && refused.is_transient());
}

#[tokio::test]
async fn starts_that_were_taken_ahead_are_admitted_without_a_request() {
    let (server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 100, WINDOW).unwrap().with_grace(GRACE).with_ahead(10);
    let _first = limiter.admit().await.unwrap();
    let is_taken = |data: &[u8]| {
        let text = String::from_utf8_lossy(data);
        // With the first one, or behind it.
        text.contains("\n11 grace ") || text.contains("\n10 grace ")
    };
    let ahead = server.wait_until(|machine| {
        let taken = |node: &Node| node.data.as_deref().is_some_and(is_taken) && node.children.is_empty();
        machine.tree().node("/calls").is_some_and(taken)
    });
    within("starts ahead", ahead).await.unwrap();
    let transcript = server.transcript();
    for _ in 0..5 {
        assert!(limiter.admit().await.unwrap().is_fresh());
    }
    let passed = transcript.passed();
    assert!(passed.iter().all(|passed| passed.subject == Subject::Request(Op::Ping)), "{passed:?}");
    let used = limiter.inspect().await.unwrap().window().unwrap().used();
    assert!(used >= 11, "{used}");
}

/// In a runtime of one thread.
#[tokio::test]
async fn a_task_that_takes_starts_ahead_again_and_again_lets_other_tasks_run() {
    let (_server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 100_000, WINDOW).unwrap();
    let limiter = limiter.with_grace(GRACE).with_ahead(50_000);
    // The second call finds the starts, or waits for them.
    for _ in 0..2 {
        drop(limiter.admit().await.unwrap());
    }
    let other = tokio::spawn(async {});
    let mut taken = 0;
    while !other.is_finished() && taken < 10_000 {
        drop(limiter.admit().await.unwrap());
        taken += 1;
    }
    assert!(other.is_finished(), "after {taken} starts");
}

#[tokio::test]
async fn a_limiter_whose_starts_are_over_leaves_no_node() {
    let (server, manager) = connected().await;
    let window = Duration::from_millis(100);
    let calls = KeyedRateLimiter::new(&manager, "/calls", 1, window).unwrap();
    for key in ["anna", "bert"] {
        let _used = calls.of(key).unwrap().admit().await.unwrap();
    }
    let gone = server
        .wait_until(|machine| machine.tree().node("/calls").is_none_or(|node| node.children.is_empty()));
    within("no node", gone).await.unwrap();
}

#[tokio::test]
async fn nodes_that_are_no_window_are_refused() {
    let (_server, manager) = connected().await;
    let znodes = manager.znodes();
    let refused = async |path: &str| {
        RateLimiter::new(&manager, path, 1, WINDOW).unwrap().try_admit().await.unwrap_err()
    };
    for path in ["/earlier", "/earlier/starts", "/foreign"] {
        znodes.create(path, "", CreateMode::Persistent).await.unwrap();
    }
    znodes.create("/earlier/starts/_c_a-start-", "", CreateMode::PersistentSequential).await.unwrap();
    znodes.write("/foreign", "web-1", Version::Any).await.unwrap();
    znodes.create("/lasting", "", CreateMode::Container).await.unwrap();
    let error = refused("/earlier").await;
    assert!(matches!(error.recipe(), Some(RateLimiterError::EarlierLayout { .. })), "{error}");
    let error = refused("/foreign").await;
    assert!(matches!(error.recipe(), Some(RateLimiterError::ForeignNode { .. })), "{error}");
    let error = refused("/lasting").await;
    assert!(matches!(error.recipe(), Some(RateLimiterError::ForeignNode { .. })), "{error}");
}

/// The write of the starts has no answer, because the connection breaks.
#[tokio::test]
async fn starts_whose_write_has_no_answer_are_used_once_and_admit_their_call() {
    for is_applied in [true, false] {
        let (server, manager) = connected().await;
        let limiter = RateLimiter::new(&manager, "/calls", 2, WINDOW).unwrap().with_grace(GRACE);
        assert!(limiter.try_admit().await.unwrap().admitted().is_some());
        let fault = if is_applied { Fault::HoldReply } else { Fault::HoldRequest };
        let start = server.fault(When::op(Op::Multi).path("/calls"), fault);
        let admitting = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.try_admit().await.unwrap() }
        });
        within("the start", start.hit()).await.unwrap();
        server.drop_connections();
        let tried = within("an answer", admitting).await.unwrap().unwrap();
        assert!(tried.admitted().is_some(), "{is_applied}");
        assert!(limiter.try_admit().await.unwrap().retry_after().is_some(), "{is_applied}");
    }
}

/// The node was made by a leader whose clock was ahead by more than the window.
#[tokio::test]
async fn starts_that_a_clock_that_is_behind_records_count_in_full() {
    let (server, manager) = connected().await;
    manager.znodes().create("/calls", "no starts\n", CreateMode::Persistent).await.unwrap();
    server.set_clock_back(WINDOW * 4);
    let limiter = RateLimiter::new(&manager, "/calls", 3, WINDOW).unwrap().with_grace(GRACE);
    let tries = join_all((0..9).map(|_| limiter.try_admit())).await;
    let admitted = tries.into_iter().filter(|tried| tried.as_ref().unwrap().retry_after().is_none()).count();
    assert_eq!(admitted, 3);
    assert!(limiter.try_admit().await.unwrap().retry_after().is_some());
}

#[tokio::test]
async fn the_end_of_a_window_deletes_no_node_that_was_made_since() {
    let (server, manager) = connected().await;
    let session = server.sessions()[0];
    let brief = RateLimiter::new(&manager, "/calls", 1, Duration::from_millis(200)).unwrap();
    let _used = brief.admit().await.unwrap();
    let left = server
        .wait_until(|machine| machine.tree().node("/calls").is_some_and(|node| node.children.is_empty()));
    within("the end of the turn", left).await.unwrap();
    assert!(server.delete_node("/calls"));
    let other = connect(&server).await;
    let limiter = RateLimiter::new(&other, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let _used = limiter.admit().await.unwrap();
    let transcript = server.transcript();
    let looked = |machine: &Machine| {
        let passed = transcript.passed();
        let mut of_brief = passed.iter().filter(|passed| passed.session == session);
        let node = machine.tree().node("/calls");
        of_brief.any(|passed| passed.subject == Subject::Request(Op::Create2))
            && node.is_none_or(|node| node.children.is_empty())
    };
    within("the end of the brief window", server.wait_until(looked)).await.unwrap();
    assert!(limiter.try_admit().await.unwrap().retry_after().is_some(), "the window was deleted");
}

#[tokio::test]
async fn a_sweep_asks_the_servers_whether_the_starts_are_over() {
    let (server, manager) = connected().await;
    // By this answer the manager takes the servers' time to be later than it is.
    manager.znodes().create("/beside", "", CreateMode::Persistent).await.unwrap();
    server.set_clock_back(WINDOW * 4);
    let other = connect(&server).await;
    let limiter = RateLimiter::new(&other, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let _used = limiter.admit().await.unwrap();
    let left = server
        .wait_until(|machine| machine.tree().node("/calls").is_some_and(|node| node.children.is_empty()));
    within("the end of the turn", left).await.unwrap();
    let sweeper = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    assert!(!sweeper.sweep().await.unwrap());
    assert!(limiter.try_admit().await.unwrap().retry_after().is_some());
}

#[tokio::test]
async fn calls_that_wait_get_the_starts_that_are_taken_ahead() {
    let (_server, manager) = connected().await;
    let limiter = RateLimiter::new(&manager, "/calls", 11, WINDOW).unwrap().with_grace(GRACE).with_ahead(10);
    let calls = join_all((0..8).map(|_| limiter.admit()));
    for admission in within("all admissions", calls).await.unwrap() {
        assert!(admission.unwrap().is_fresh());
    }
}
