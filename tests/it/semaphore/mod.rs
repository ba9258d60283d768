//! The semaphore on a real server.

mod cancellation;
mod faults;
mod limits;
mod order;

use lockkeeper::{ConnectionManager, Semaphore};
use lockkeeper_tests::{Arming, Ensemble, LentEnsemble, Match, OpCode, Proxies, Timing, eventually, inspect};

use crate::support::{behind_proxy, children, connect, nodes_become};

const PATH: &str = "/permits";
const LOCKS: &str = "/permits/locks";
const LEASES: &str = "/permits/leases";

fn semaphore(manager: &ConnectionManager, permits: u32) -> Semaphore {
    Semaphore::new(manager, PATH, permits).unwrap()
}

/// A server and two clients.
async fn two() -> (LentEnsemble, ConnectionManager, ConnectionManager) {
    let ensemble = Ensemble::lend().await.unwrap();
    let (a, b) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    (ensemble, a, b)
}

/// A server, a client through a proxy, and a semaphore whose directories exist.
async fn behind_proxy_with(permits: u32) -> (LentEnsemble, Proxies, ConnectionManager, Semaphore) {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let semaphore = semaphore(&manager, permits);
    for _ in 0..2 {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
    (ensemble, proxies, manager, semaphore)
}

/// Waits until `leases` permits are in use and the queue has `waiting` nodes.
async fn settled(ensemble: &Ensemble, leases: u32, waiting: usize) {
    nodes_become(ensemble, LEASES, leases as usize).await;
    nodes_become(ensemble, LOCKS, waiting).await;
}

/// The number of watches, including those on children, which `wchs` and `wchp` omit.
async fn watches(ensemble: &Ensemble) -> u64 {
    inspect::counter(ensemble.server(0).address(), "zk_watch_count").await.unwrap()
}

/// Waits until the head of the queue watches the leases, and `behind` waiters watch their predecessor and
/// their own node.
async fn head_sleeps(ensemble: &Ensemble, behind: u64) {
    let all = 1 + 2 * behind;
    let watched = || async { (watches(ensemble).await >= all).then_some(()) };
    eventually("a watch on the leases", Timing::settle(), watched).await.unwrap();
}

/// The requests that were sent, without the confirmations of the session, which the library sends at any
/// time.
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
