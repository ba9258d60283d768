//! The semaphore on a real server.

mod cancellation;
mod faults;
mod limits;
mod turns;

use lockkeeper::{ConnectionManager, Semaphore};
use lockkeeper_tests::{Arming, Ensemble, Match, OpCode, Proxies, Timing, eventually, inspect};

use crate::support::{behind_proxy, children, connect, nodes_become};

const PATH: &str = "/permits";
const LOCKS: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

fn semaphore(manager: &ConnectionManager, permits: usize) -> Semaphore {
    Semaphore::new(manager, PATH, permits).unwrap()
}

/// A server and two clients.
async fn two() -> (Ensemble, ConnectionManager, ConnectionManager) {
    let ensemble = Ensemble::start(1).await.unwrap();
    let (a, b) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    (ensemble, a, b)
}

/// A server, a client through a proxy and a semaphore whose directories are there.
async fn behind_proxy_with(permits: usize) -> (Ensemble, Proxies, ConnectionManager, Semaphore) {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let semaphore = semaphore(&manager, permits);
    for _ in 0..2 {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
    (ensemble, proxies, manager, semaphore)
}

/// Waits until so many permits are out and so many stand in line.
async fn settled(ensemble: &Ensemble, leases: usize, in_line: usize) {
    nodes_become(ensemble, LEASES, leases).await;
    nodes_become(ensemble, LOCKS, in_line).await;
}

/// How many watches there are, those on children too, which `wchs` and `wchp` leave out.
async fn watches(ensemble: &Ensemble) -> u64 {
    inspect::counter(ensemble.server(0).address(), "zk_watch_count").await.unwrap()
}

/// Waits until the head of the line watches the leases, and so many behind it watch who is in front and themselves.
async fn head_sleeps(ensemble: &Ensemble, behind: u64) {
    let all = 1 + 2 * behind;
    let watched = || async { (watches(ensemble).await >= all).then_some(()) };
    eventually("a watch on the leases", Timing::settle(), watched).await.unwrap();
}

/// What was sent, but for the confirmations of the session, which come by themselves.
fn sent(proxies: &Proxies) -> Vec<OpCode> {
    let log = proxies.log();
    let is_asked = |parts: &[(OpCode, String)]| parts.iter().any(|(op, _)| *op != OpCode::Check);
    let asked = log.requests().filter(|request| request.op != OpCode::Multi || is_asked(&request.parts));
    asked.map(|request| request.op).collect()
}

async fn leases(ensemble: &Ensemble) -> usize {
    children(ensemble, LEASES).await.len()
}

/// A fault at the transaction that takes permits.
fn exchange(proxies: &Proxies) -> Arming<'_> {
    proxies.on(Match::new().op(OpCode::Multi).path_contains("lease-"))
}
