//! The rate limiter on a real server.

use std::time::Duration;

use lockkeeper::error::{Phase, RateLimiterError};
use lockkeeper::{ConnectionManager, Error, RateLimiter};
use lockkeeper_tests::{Ensemble, Match, OpCode, Proxies, RawClient, dropped_after};

use crate::support::{behind_proxy, briefly_behind_proxy, children, connect, no_node_is_left, nodes_become};

const PATH: &str = "/rate";
const STARTS: &str = "/rate/starts";
const LOCKS: &str = "/rate/locks";

/// No test waits so long.
const LONG: Duration = Duration::from_secs(600);

fn limiter(manager: &ConnectionManager, starts: u32, window: Duration) -> RateLimiter {
    RateLimiter::new(manager, PATH, starts, window).unwrap()
}

/// Creation times of the starts by the server's clock, read without the library.
async fn times(raw: &mut RawClient, into: &mut std::collections::BTreeMap<String, i64>) {
    for name in raw.children(STARTS).await.unwrap_or_default() {
        let path = format!("{STARTS}/{name}");
        if let Ok(Some(stat)) = raw.exists(&path).await {
            into.insert(name, stat.ctime);
        }
    }
}

#[tokio::test]
async fn no_window_has_more_starts_than_the_limit() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (limit, window, total) = (4, Duration::from_secs(2), 18);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let manager = connect(&ensemble.connect_string()).await;
        for number in 0..2 {
            let limiter = limiter(&manager, limit, window);
            tasks.spawn(async move {
                for _ in 0..total / 6 {
                    let admission = match number {
                        0 => limiter.admit().await,
                        _ => limiter.admit_timeout(LONG).await,
                    };
                    assert_eq!(admission.unwrap().starts(), 1);
                }
            });
        }
    }
    // Read while they exist: each admission removes the starts whose window is over.
    let (mut raw, mut seen) = (ensemble.raw().await.unwrap(), std::collections::BTreeMap::new());
    while !tasks.is_empty() {
        times(&mut raw, &mut seen).await;
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    times(&mut raw, &mut seen).await;
    let mut times: Vec<i64> = seen.into_values().collect();
    times.sort_unstable();
    // On a busy machine some are removed between two looks.
    assert!(times.len() >= total / 2, "{} starts seen of {total}", times.len());
    let (limit, window) = (limit as usize, i64::try_from(window.as_millis()).unwrap());
    for starts in times.windows(limit + 1) {
        assert!(starts[limit] - starts[0] > window, "{starts:?}");
    }
    assert!(children(&ensemble, STARTS).await.len() <= limit + 8);
    no_node_is_left(&ensemble, LOCKS).await;
}

#[tokio::test]
async fn starts_stay_used_when_the_session_that_used_them_expires() {
    let (ensemble, proxies, doomed) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let admission = limiter(&doomed, 2, LONG).admit_many(2).await.unwrap();
    assert_eq!((admission.starts(), admission.is_fresh()), (2, true));
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    assert_eq!(children(&ensemble, STARTS).await.len(), 2);
    let limiter = limiter(&other, 2, LONG);
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
    let error = limiter.admit_timeout(Duration::from_secs(2)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Recipe(_), .. }), "{error}");
    assert!(error.to_string().contains("at the head of the queue for 1 starts, 0 of them free"), "{error}");
    assert!(limiter.admit_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert!(matches!(
        limiter.admit_many(3).await.unwrap_err().recipe(),
        Some(RateLimiterError::TooManyStarts { asked: 3, .. })
    ));
    no_node_is_left(&ensemble, LOCKS).await;
}

fn sent(proxies: &Proxies) -> Vec<OpCode> {
    let log = proxies.log();
    let is_asked = |parts: &[(OpCode, String)]| parts.iter().any(|(op, _)| *op != OpCode::Check);
    let asked = log.requests().filter(|request| request.op != OpCode::Multi || is_asked(&request.parts));
    asked.map(|request| request.op).collect()
}

#[tokio::test]
async fn an_admission_costs_two_round_trips_and_a_refusal_reads_the_server_time() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let limiter = limiter(&manager, 5, LONG);
    for permits in [2, 1, 1] {
        let _ = limiter.admit_many(permits).await.unwrap();
    }
    proxies.clear_log();
    let _ = limiter.admit().await.unwrap();
    let all = [OpCode::Create2, OpCode::GetChildren2, OpCode::GetData, OpCode::Multi];
    // The sequence number shows an empty queue, and the limiter reads the one start made since its last list.
    assert_eq!(sent(&proxies), all);
    proxies.clear_log();
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
    assert_eq!(proxies.log().count(OpCode::SetData), 1);
}

#[tokio::test]
async fn a_lost_reply_admits_no_more_than_it_uses_up() {
    for is_committed in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let limiter = limiter(&manager, 3, LONG).grace(Duration::from_secs(60));
        let _ = limiter.admit().await.unwrap();
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains("start-"));
        let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let _ = limiter.admit().await.unwrap();
        assert!(fault.has_triggered());
        let used = children(&ensemble, STARTS).await.len();
        assert!(used == 2 || used == 3 && is_committed, "{used}");
        no_node_is_left(&ensemble, LOCKS).await;
    }
}

#[tokio::test]
async fn an_admission_whose_reply_is_late_is_stale_and_uses_its_start() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let grace = Duration::from_millis(200);
    let limiter = limiter(&manager, 3, LONG).grace(grace);
    // This admission creates the directory.
    let _ = limiter.admit().await.unwrap();
    let held = proxies.on(Match::new().op(OpCode::Multi).path_contains("start-")).hold_reply();
    let admitting = tokio::spawn(async move { limiter.admit().await.unwrap() });
    held.triggered().await.unwrap();
    nodes_become(&ensemble, STARTS, 2).await;
    // The passing of time is the subject: the reply arrives after the grace.
    tokio::time::sleep(grace).await;
    held.release();
    let admission = admitting.await.unwrap();
    assert!(!admission.is_fresh());
    assert_eq!(children(&ensemble, STARTS).await.len(), 2);
}

#[tokio::test]
async fn an_admit_dropped_at_any_await_leaves_no_node_in_the_queue() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    for polls in 0.. {
        let limiter = RateLimiter::new(&manager, format!("/fresh/{polls}").as_str(), 1, LONG).unwrap();
        let is_done = matches!(dropped_after(polls, limiter.admit()).await, lockkeeper_tests::After::Done(_));
        no_node_is_left(&ensemble, &format!("/fresh/{polls}/locks")).await;
        assert!(children(&ensemble, &format!("/fresh/{polls}/starts")).await.len() <= 1);
        if is_done {
            break;
        }
    }
}
