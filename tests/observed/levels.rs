//! The levels of log lines, and what they say: somebody has to look at a line of `warn` and above.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::LossReason;
use lockkeeper::manager::State;
use lockkeeper::{ConnectionManager, Election, Mutex, RateLimiter, Revoker, Schedule, Semaphore};
use lockkeeper_core::{Deadline, HoldExt, Label, LockQueue, Rule};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use tokio::task::JoinHandle;

use crate::recorded::recorder;
use crate::seen::{Entry, Seen};
use crate::{builder, connected, server};

const LOST: &str = "hold lost";

/// The lines from `warn` on that are of these crates.
fn alarms(seen: &Seen) -> Vec<Entry> {
    let is_alarm = |entry: &Entry| {
        entry.target.starts_with("lockkeeper") && ["WARN", "ERROR"].contains(&entry.level.as_str())
    };
    seen.all().into_iter().filter(is_alarm).collect()
}

#[tokio::test]
async fn a_contender_that_is_asked_is_no_alarm_and_one_that_is_revoked_is() {
    let (seen, _listening) = Seen::begin();
    let (_server, manager) = connected().await;
    let mutex = Mutex::new(&manager, "/lock").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let revoker = Revoker::new(&manager);
    assert!(revoker.ask_node(guard.path()).await.unwrap());
    assert_eq!(alarms(&seen).len(), 0, "{:?}", alarms(&seen));
    let asked = &seen.events("a contender is asked to release")[0];
    assert_eq!((asked.level.as_str(), asked.field("path")), ("INFO", guard.path().as_str()));
    assert!(revoker.force_release_node(guard.path()).await.unwrap().is_some());
    let revoked = &seen.events("revoked")[0];
    assert_eq!((revoked.level.as_str(), revoked.field("path")), ("WARN", guard.path().as_str()));
}

/// Contenders at the heads of their queues, which hold nothing for their callers.
fn at_their_turns(manager: &ConnectionManager) -> Vec<(&'static str, JoinHandle<()>)> {
    let semaphore = Semaphore::new(manager, "/permits", 1).unwrap();
    let limiter = RateLimiter::new(manager, "/starts", 1, Duration::from_secs(3_600)).unwrap();
    let schedule = Schedule::new(manager, "/slots", Duration::from_secs(3_600)).unwrap();
    vec![
        (
            "semaphore_turn",
            tokio::spawn(async move {
                let _first = semaphore.acquire().await.unwrap();
                drop(semaphore.acquire().await);
            }),
        ),
        (
            "rate_limiter",
            tokio::spawn(async move {
                let _used = limiter.admit().await.unwrap();
                drop(limiter.admit().await);
            }),
        ),
        ("schedule", tokio::spawn(async move { drop(schedule.due().await) })),
    ]
}

#[tokio::test]
async fn a_turn_that_ends_with_its_session_is_no_lost_hold() {
    let (seen, _listening) = Seen::begin();
    let (recorder, recorded) = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let (server, manager) = connected().await;
    let mut transitions = manager.transitions();
    let turns = at_their_turns(&manager);
    recorded.becomes("lockkeeper_held recipe=semaphore", 1.0).await;
    for (recipe, _) in &turns {
        recorded.becomes(&format!("lockkeeper_held recipe={recipe}"), 1.0).await;
    }
    assert!(server.expire(server.sessions()[0]));
    while !matches!(transitions.next().await.unwrap().state, State::Lost(..)) {}
    recorded.becomes("lockkeeper_held recipe=semaphore", 0.0).await;
    let paths: Vec<String> = seen.events(LOST).iter().map(|entry| entry.field("path").to_owned()).collect();
    assert!(paths.len() == 1 && paths[0].contains("lease"), "{paths:?}");
    for (recipe, turn) in turns {
        let lost = format!("lockkeeper_lost_total recipe={recipe} reason=session_expired");
        assert_eq!(recorded.value(&lost), 0.0, "{recipe}");
        turn.abort();
    }
    assert_eq!(recorded.value("lockkeeper_lost_total recipe=semaphore reason=session_expired"), 1.0);
}

#[tokio::test]
async fn a_loss_before_the_grant_is_reported_once_the_caller_has_the_hold() {
    for is_granted in [true, false] {
        let (seen, _listening) = Seen::begin();
        let (recorder, recorded) = recorder();
        let _recorder = metrics::set_default_local_recorder(&recorder);
        let (server, manager) = connected().await;
        let queue = LockQueue::new(&manager, "/queue", Label::LOCK, Rule::MUTEX).unwrap();
        let hold = queue.acquire(Deadline::never()).await.unwrap();
        hold.defer_loss_report();
        assert!(server.expire(server.sessions()[0]));
        assert_eq!(hold.lost().await.reason, LossReason::SessionExpired);
        assert_eq!(seen.events(LOST).len(), 0);
        if is_granted {
            hold.report_loss();
        }
        let path = hold.path().to_owned();
        drop(hold);
        let lost = seen.events(LOST);
        assert_eq!(lost.len(), usize::from(is_granted), "{lost:?}");
        assert!(lost.iter().all(|lost| lost.field("path") == path.as_str()), "{lost:?}");
        let counted = recorded.value("lockkeeper_lost_total recipe=mutex reason=session_expired");
        assert_eq!(counted, f64::from(u8::from(is_granted)));
    }
}

#[tokio::test]
async fn a_slot_that_is_lost_is_a_lost_hold() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let schedule = Schedule::new(&manager, "/slots", Duration::from_millis(20)).unwrap();
    let slot = schedule.due().await.unwrap();
    assert!(server.expire(server.sessions()[0]));
    slot.lost().await;
    assert_eq!(seen.events(LOST).len(), 1);
}

#[tokio::test]
async fn a_line_about_a_session_says_whether_it_is_of_the_locks_or_of_the_views() {
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let view = lockkeeper::ChildrenView::new(&manager, "/").unwrap();
    view.ready().await.unwrap();
    for session in server.sessions() {
        assert!(server.expire(session));
    }
    let purposes = |line: &str| -> Vec<String> {
        let mut all: Vec<String> =
            seen.events(line).iter().map(|entry| entry.field("purpose").to_owned()).collect();
        all.sort_unstable();
        all
    };
    let again = async || (purposes("session opened").len() == 4).then_some(());
    eventually("two more sessions", Timing::settle(), again).await.unwrap();
    manager.shutdown().await.unwrap();
    assert_eq!(purposes("session opened"), ["locks", "locks", "views", "views"]);
    assert_eq!(purposes("connected"), ["locks", "locks", "views", "views"]);
    for line in ["session lost", "closed"] {
        assert_eq!(purposes(line), ["locks", "views"], "{line}");
    }
}

#[tokio::test]
async fn a_granted_timeout_that_shows_a_longer_tick_is_an_error_in_the_log() {
    const ERROR: &str = "the servers' tick seems to be longer than tick_time, which voids promises 1 and 2";
    let seconds = Duration::from_secs;
    for (ticks, setting, asked, shown) in [
        // The least timeout is two ticks, and the greatest one twenty.
        (seconds(8), None, seconds(10), Some("8s")),
        (seconds(4), None, seconds(120), Some("4s")),
        (seconds(4), Some(seconds(4)), seconds(120), None),
        (seconds(8), None, seconds(20), None),
        (seconds(3), None, seconds(120), None),
    ] {
        let (seen, _listening) = Seen::begin();
        let server = TestServer::builder().tick(ticks).start().await.unwrap();
        let mut builder = ConnectionManager::builder(&server.connect_string()).session_timeout(asked);
        if let Some(tick) = setting {
            builder = builder.tick_time(tick);
        }
        let manager = builder.connect().await.unwrap();
        let errors = seen.events(ERROR);
        let ticks: Vec<&str> = errors.iter().map(|error| error.field("servers_tick")).collect();
        assert_eq!(ticks, Vec::from_iter(shown), "{asked:?}");
        assert!(errors.iter().all(|error| error.level == "ERROR" && error.field("tick_time") == "3s"));
        manager.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_granted_timeout_that_is_far_from_the_wish_is_a_warning() {
    const WARNING: &str = "the servers grant a session timeout far from the one that was asked for";
    let seconds = Duration::from_secs;
    // The tick is that of the setting: 3 s.
    for (asked, granted) in [(seconds(120), Some("60s")), (seconds(61), None), (seconds(20), None)] {
        let (seen, _listening) = Seen::begin();
        let server = TestServer::builder().tick(seconds(3)).start().await.unwrap();
        let builder = ConnectionManager::builder(&server.connect_string()).session_timeout(asked);
        let manager = builder.connect().await.unwrap();
        let warnings = seen.events(WARNING);
        let granted_of: Vec<&str> = warnings.iter().map(|warning| warning.field("granted")).collect();
        assert_eq!(granted_of, Vec::from_iter(granted), "{asked:?}");
        assert!(warnings.iter().all(|warning| warning.level == "WARN"));
        manager.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_lock_at_the_path_of_a_semaphore_is_a_warning_once() {
    const WARNING: &str =
        "a semaphore has the path of a lock, and they do not exclude each other: give each its own path";
    let (seen, _listening) = Seen::begin();
    let (server, manager) = connected().await;
    let lock = async |path: &str| {
        Mutex::new(&manager, path).unwrap().acquire().await.unwrap().release().await.unwrap();
    };
    // One of the names of its nodes is no semaphore.
    lock("/orders/locks").await;
    lock("/orders").await;
    assert_eq!(seen.events(WARNING).len(), 0);
    let semaphore = Semaphore::new(&manager, "/orders", 2).unwrap();
    let _permit = semaphore.acquire().await.unwrap();
    let other = builder(&server).connect().await.unwrap();
    for _ in 0..2 {
        Mutex::new(&other, "/orders").unwrap().acquire().await.unwrap().release().await.unwrap();
    }
    let warnings = seen.events(WARNING);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!((warnings[0].level.as_str(), warnings[0].field("path")), ("WARN", "/orders"));
}

#[test]
fn the_end_of_the_runtime_is_an_alarm_and_no_shutdown() {
    const ENDED: &str = "the runtime ended before the session was closed: its nodes exist until its timeout";
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let servers = runtime();
    let server = servers.block_on(server());
    for is_shut_down in [true, false] {
        let (seen, _listening) = Seen::begin();
        let managers = runtime();
        let (manager, guard) = managers.block_on(async {
            let manager = builder(&server).connect().await.unwrap();
            let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
            (manager, guard)
        });
        let reason = match is_shut_down {
            true => {
                managers.block_on(manager.shutdown()).unwrap();
                drop(managers);
                assert_eq!(seen.events(ENDED).len(), 0);
                ("shut down", LossReason::Closed)
            }
            false => {
                drop(managers);
                assert_eq!(seen.events(ENDED)[0].level, "WARN");
                ("its runtime ended", LossReason::RuntimeEnded)
            }
        };
        let closed = seen.events("closed");
        assert_eq!((closed.len(), closed[0].field("reason")), (1, reason.0));
        assert_eq!(guard.lost().now_or_never().unwrap().reason, reason.1);
    }
}

#[tokio::test]
async fn an_ordinary_change_of_the_leader_is_no_alarm() {
    let (seen, _listening) = Seen::begin();
    let (_server, manager) = connected().await;
    let election = Election::new(&manager, "/election", "here").unwrap();
    for _ in 0..2 {
        election.campaign().await.unwrap().resign().await.unwrap();
    }
    manager.shutdown().await.unwrap();
    assert_eq!(alarms(&seen).len(), 0, "{:?}", alarms(&seen));
}
