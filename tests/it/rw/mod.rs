//! The read/write lock on a real server.

mod crowd;
mod dropped;
mod owners;
mod queue;
mod sides;
mod trouble;

use std::time::Duration;

use lockkeeper::{ConnectionManager, ReadGuard, RwLock, WriteGuard};
use lockkeeper_tests::{Ensemble, HarnessError, LentEnsemble, Message, OpCode, Proxies, Timing, eventually};
use tokio::task::JoinHandle;

use crate::support::{children, connect};

const PATH: &str = "/lock";

fn lock(manager: &ConnectionManager) -> RwLock {
    RwLock::new(manager, PATH).unwrap()
}

/// A server, and clients of different processes.
async fn processes<const N: usize>() -> (LentEnsemble, [RwLock; N]) {
    let ensemble = Ensemble::lend().await.unwrap();
    let mut locks = Vec::new();
    for _ in 0..N {
        locks.push(lock(&connect(&ensemble.connect_string()).await));
    }
    (ensemble, locks.try_into().unwrap())
}

fn reading(lock: &RwLock) -> JoinHandle<ReadGuard> {
    let lock = lock.clone();
    tokio::spawn(async move { lock.read().await.unwrap() })
}

fn writing(lock: &RwLock) -> JoinHandle<WriteGuard> {
    let lock = lock.clone();
    tokio::spawn(async move { lock.write().await.unwrap() })
}

/// The nodes of the queue in their order.
async fn contender_nodes(ensemble: &Ensemble) -> Vec<String> {
    let mut nodes = children(ensemble, PATH).await;
    nodes.sort_by_key(|node| node[node.len() - 10..].to_owned());
    nodes
}

fn number(path: &str) -> &str {
    &path[path.len() - 10..]
}

/// The requests that were sent, without the confirmations of the session, which the library sends at any
/// time.
fn sent(proxies: &Proxies) -> Vec<OpCode> {
    sent_but_watches(proxies, "")
}

/// As [`sent`], without the watches on the node at `held`: a long hold sets one at some time.
fn sent_but_watches(proxies: &Proxies, held: &str) -> Vec<OpCode> {
    let own = |parts: &[(OpCode, String)]| parts.iter().any(|(op, _)| *op != OpCode::Check);
    let log = proxies.log();
    log.requests()
        .filter(|request| request.op != OpCode::Multi || own(&request.parts))
        .filter(|request| request.op != OpCode::GetData || request.path.as_deref() != Some(held))
        .map(|request| request.op)
        .collect()
}

fn events(proxies: &Proxies) -> usize {
    proxies.log().iter().filter(|record| record.message == Message::Event).count()
}

/// Waits until `count` reads with a watch have been answered: two for each waiter.
async fn watches_become(proxies: &Proxies, count: usize) {
    let set = eventually(format!("{count} watches"), Timing::event(), async || {
        let log = proxies.log();
        let answered = log.requests().filter(|r| r.op == OpCode::GetData && log.reply_to(r).is_some());
        (answered.count() >= count).then_some(())
    });
    set.await.unwrap_or_else(|error: HarnessError| panic!("{error}: {:?}", proxies.log().ops()));
}

/// Long enough for many answers of a server; no wait of this time for a held lock is granted.
const SHORTLY: Duration = Duration::from_millis(300);
