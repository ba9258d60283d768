//! The rate limiter on a real server.

use std::time::Duration;

use lockkeeper::error::RateLimiterError;
use lockkeeper::{ConnectionManager, RateLimiter};
use lockkeeper_tests::{Ensemble, Match, OpCode, Proxies, RawClient, dropped_after};

use crate::support::{behind_proxy, briefly_behind_proxy, children, connect, no_node_is_left};

const PATH: &str = "/rate";

/// No test waits so long.
const LONG: Duration = Duration::from_secs(600);

fn limiter(manager: &ConnectionManager, starts: u32, window: Duration) -> RateLimiter {
    RateLimiter::new(manager, PATH, starts, window).unwrap()
}

/// The records of the window by the server's clock, read without the library: times and starts.
async fn records(raw: &mut RawClient) -> Vec<(i64, u64)> {
    let Ok((data, stat)) = raw.data(PATH).await else { return Vec::new() };
    let text = String::from_utf8(data).unwrap();
    let lines = text.lines().skip(1).map(|line| {
        let starts = line.split(' ').next().unwrap().parse().unwrap();
        let at = line.split_once(" at ").map_or(stat.mtime, |(_, at)| at.parse().unwrap());
        (at, starts)
    });
    lines.collect()
}

async fn used(ensemble: &Ensemble) -> u64 {
    let mut raw = ensemble.raw().await.unwrap();
    records(&mut raw).await.into_iter().map(|(_, starts)| starts).sum()
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
    // Read while they count: each write removes the starts that are over.
    let (mut raw, mut seen) = (ensemble.raw().await.unwrap(), std::collections::BTreeMap::new());
    while !tasks.is_empty() {
        seen.extend(records(&mut raw).await);
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    seen.extend(records(&mut raw).await);
    let mut times = Vec::new();
    for (at, starts) in seen {
        times.extend((0..starts).map(|_| at));
    }
    assert!(times.len() >= total / 2, "{} starts seen of {total}", times.len());
    let (limit, window) = (limit as usize, i64::try_from(window.as_millis()).unwrap());
    for starts in times.windows(limit + 1) {
        assert!(starts[limit] - starts[0] > window, "{starts:?}");
    }
    no_node_is_left(&ensemble, PATH).await;
}

#[tokio::test]
async fn starts_stay_used_when_the_session_that_used_them_expires() {
    let (ensemble, proxies, doomed) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let admission = limiter(&doomed, 2, LONG).admit_many(2).await.unwrap();
    assert_eq!((admission.starts(), admission.is_fresh()), (2, true));
    proxies.sever_until_expired(proxies.sessions()[0].id).await.unwrap();
    assert_eq!(used(&ensemble).await, 2);
    let limiter = limiter(&other, 2, LONG);
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
    for time in [Duration::from_secs(2), Duration::ZERO] {
        let error = limiter.admit_timeout(time).await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        let Some(RateLimiterError::NoRoom { retry_after, .. }) = error.recipe() else { panic!("{error}") };
        assert!(*retry_after > LONG / 2, "{error}");
    }
    assert!(matches!(
        limiter.admit_many(3).await.unwrap_err().recipe(),
        Some(RateLimiterError::TooManyStarts { asked: 3, .. })
    ));
    no_node_is_left(&ensemble, PATH).await;
}

fn sent(proxies: &Proxies) -> Vec<OpCode> {
    proxies.log().requests().map(|request| request.op).collect()
}

#[tokio::test]
async fn an_admission_costs_five_requests_in_two_round_trips_and_a_refusal_asks_for_the_time() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let limiter = limiter(&manager, 5, LONG);
    for permits in [2, 1, 1] {
        let _ = limiter.admit_many(permits).await.unwrap();
    }
    no_node_is_left(&ensemble, PATH).await;
    proxies.clear_log();
    let _ = limiter.admit().await.unwrap();
    no_node_is_left(&ensemble, PATH).await;
    let all = [OpCode::Create2, OpCode::GetChildren, OpCode::GetData, OpCode::Multi];
    let sent = sent(&proxies);
    assert_eq!(sent.get(..4), Some(&all[..]), "{sent:?}");
    assert_eq!(sent.len(), 5, "{sent:?}");
    proxies.clear_log();
    assert!(limiter.try_admit().await.unwrap().admitted().is_none());
    assert!(proxies.log().count(OpCode::Multi) <= 1);
}

#[tokio::test]
async fn a_lost_reply_admits_no_more_than_it_uses_up() {
    for is_committed in [true, false] {
        let (ensemble, proxies, manager) = behind_proxy().await;
        let limiter = limiter(&manager, 3, LONG).with_grace(Duration::from_secs(60));
        let _ = limiter.admit().await.unwrap();
        let arming = proxies.on(Match::new().op(OpCode::Multi).path_contains(PATH));
        let fault = if is_committed { arming.drop_reply_and_cut() } else { arming.cut_before_forward() };
        let _ = limiter.admit().await.unwrap();
        assert!(fault.has_triggered());
        assert_eq!(used(&ensemble).await, 2);
        no_node_is_left(&ensemble, PATH).await;
    }
}

#[tokio::test]
async fn an_admission_whose_reply_is_late_is_stale_and_uses_its_start() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let grace = Duration::from_millis(200);
    let limiter = limiter(&manager, 3, LONG).with_grace(grace);
    // This admission creates the directory.
    let _ = limiter.admit().await.unwrap();
    let held = proxies.on(Match::new().op(OpCode::Multi).path_contains(PATH)).hold_reply();
    let admitting = tokio::spawn(async move { limiter.admit().await.unwrap() });
    held.triggered().await.unwrap();
    while used(&ensemble).await < 2 {
        tokio::task::yield_now().await;
    }
    // The passing of time is the subject: the reply arrives after the grace.
    tokio::time::sleep(grace).await;
    held.release();
    let admission = admitting.await.unwrap();
    assert!(!admission.is_fresh());
    assert_eq!(used(&ensemble).await, 2);
}

#[tokio::test]
async fn an_admit_dropped_at_any_await_leaves_no_node_in_the_queue() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    for polls in 0.. {
        let path = format!("/fresh/{polls}");
        let limiter = RateLimiter::new(&manager, path.as_str(), 1, LONG).unwrap();
        let is_done = matches!(dropped_after(polls, limiter.admit()).await, lockkeeper_tests::After::Done(_));
        no_node_is_left(&ensemble, &path).await;
        assert!(children(&ensemble, &path).await.is_empty());
        if is_done {
            break;
        }
    }
}

#[tokio::test]
async fn the_window_of_a_container_is_refused_because_the_servers_delete_it() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let container = lockkeeper::znodes::CreateMode::Container;
    manager.znodes().create(PATH, "", container).await.unwrap();
    let error = limiter(&manager, 1, LONG).admit().await.unwrap_err();
    assert!(matches!(error.recipe(), Some(RateLimiterError::ForeignNode { .. })), "{error}");
}

#[tokio::test]
async fn a_limiter_whose_starts_are_over_leaves_no_node() {
    let ensemble = Ensemble::lend().await.unwrap();
    let manager = connect(&ensemble.connect_string()).await;
    let limiter = limiter(&manager, 1, Duration::from_millis(100));
    let _used = limiter.admit().await.unwrap();
    let mut raw = ensemble.raw().await.unwrap();
    while raw.exists(PATH).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}
