//! Thousands of waiters of one lock, and thousands of holds, on one session. The server is killed and
//! restarted meanwhile. With `LOCKKEEPER_SOAK=1` there are ten thousand of each.
//!
//! The tests print the cost in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockkeeper::config::NODE_BYTES_MAX;
use lockkeeper::manager::{Health, State};
use lockkeeper::{BootInstant, ConnectionManager, Mutex, MutexGuard};
use lockkeeper_tests::{Ensemble, Timing, eventually, inspect};
use parking_lot::Mutex as Shared;
use tokio::task::JoinSet;

/// Longer than any restart.
const SESSION: Duration = Duration::from_secs(40);
const TICK: Duration = Duration::from_secs(2);

/// How many waiters, and how many holds.
fn many() -> usize {
    let is_soak = std::env::var("LOCKKEEPER_SOAK").is_ok_and(|value| value == "1");
    if is_soak { 10_000 } else { 2_000 }
}

/// The time limit for all of them together.
fn patience() -> Duration {
    Timing::scaled(Duration::from_secs(240))
}

async fn server() -> Ensemble {
    // The server sends the whole queue to many waiters at a time.
    Ensemble::builder().tick(TICK).heap_mebibytes(2048).start().await.unwrap()
}

async fn connect(ensemble: &Ensemble) -> ConnectionManager {
    let builder = ConnectionManager::builder(&ensemble.connect_string());
    // Ten thousand nodes are more than the default budget.
    let builder = builder.session_timeout(SESSION).tick_time(TICK).node_bytes_max(2 * NODE_BYTES_MAX);
    builder.connect().await.unwrap()
}

async fn ephemerals_become(ensemble: &Ensemble, count: usize) {
    let seen = eventually(format!("{count} ephemeral nodes"), patience(), || async {
        let there = inspect::counter(ensemble.server(0).address(), "zk_ephemerals_count").await.ok()?;
        (there == count as u64).then_some(())
    });
    seen.await.unwrap();
}

/// Kills the server and starts it again on its data, and waits until all managers have noticed both. Returns
/// an instant in between.
async fn killed_and_started(ensemble: &Ensemble, managers: &[&ConnectionManager]) -> BootInstant {
    ensemble.server(0).kill().await.unwrap();
    for manager in managers {
        let noticed = eventually("the link is down", Timing::settle(), || async {
            matches!(manager.state(), State::Suspended(_)).then_some(())
        });
        noticed.await.unwrap();
    }
    let between = BootInstant::now();
    ensemble.server(0).start().await.unwrap();
    for manager in managers {
        let back = eventually("writes are possible again", patience(), || async {
            manager.health().can_write.then_some(())
        });
        back.await.unwrap();
    }
    between
}

/// The report of each part: its duration, its requests, and the memory of the process.
struct Account<'a> {
    ensemble: &'a Ensemble,
    begun: BootInstant,
    asked: u64,
}

impl<'a> Account<'a> {
    fn new(ensemble: &'a Ensemble) -> Self {
        Self { ensemble, begun: BootInstant::now(), asked: 0 }
    }

    async fn report(&mut self, part: &str) {
        let address = self.ensemble.server(0).address();
        let asked = inspect::counter(address, "zk_packets_received").await.unwrap();
        let watches = inspect::counter(address, "zk_watch_count").await.unwrap();
        // A restarted server counts from 0.
        let since = asked.checked_sub(self.asked).unwrap_or(asked);
        let (seconds, resident) = (BootInstant::now().since(self.begun).as_secs_f64(), resident());
        eprintln!("{part}: {seconds:.1} s, {since} requests, {watches} watches, {resident} KiB in memory");
        (self.begun, self.asked) = (BootInstant::now(), asked);
    }
}

/// The resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The sequence number of a node.
fn number(guard: &MutexGuard) -> u32 {
    guard.path().rsplit('-').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_waiters_of_one_lock_survive_a_restart_and_are_granted_in_order() {
    let ensemble = server().await;
    let (manager, other) = (connect(&ensemble).await, connect(&ensemble).await);
    let held = Mutex::new(&other, "/locks/one").unwrap().acquire().await.unwrap();
    let mut account = Account::new(&ensemble);
    account.report("before").await;

    let (served, inside) = (Arc::new(Shared::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let queue_nodes = Arc::new(AtomicUsize::new(0));
    let mut waiters = JoinSet::new();
    for _ in 0..many() {
        let mutex = Mutex::new(&manager, "/locks/one").unwrap();
        let (served, inside, queue_nodes) =
            (Arc::clone(&served), Arc::clone(&inside), Arc::clone(&queue_nodes));
        waiters.spawn(async move {
            let mut ticket = mutex.enqueue().await.unwrap();
            queue_nodes.fetch_add(1, Ordering::SeqCst);
            let guard = ticket.wait().await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
            served.lock().push((number(&guard), guard.fencing_token()));
            inside.fetch_sub(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        });
    }
    // Every waiter has its answers: one without would list the whole queue for its node after the restart.
    let all_know = eventually("every waiter knows its predecessor", patience(), || async {
        (queue_nodes.load(Ordering::SeqCst) == many()).then_some(())
    });
    all_know.await.unwrap();
    account.report("all queued").await;

    killed_and_started(&ensemble, &[&manager, &other]).await;
    ephemerals_become(&ensemble, many() + 1).await;
    assert!(held.is_valid() && served.lock().is_empty());
    account.report("the server is back").await;

    held.release().await.unwrap();
    let all = async {
        while let Some(waited) = waiters.join_next().await {
            waited.unwrap();
        }
    };
    let in_time = tokio::time::timeout(patience(), all).await;
    assert!(in_time.is_ok(), "only {} of {} were served", served.lock().len(), many());
    account.report("all served").await;

    let served = std::mem::take(&mut *served.lock());
    assert_eq!(served.len(), many());
    // Each once, and each after its predecessors.
    assert!(served.windows(2).all(|pair| pair[0] < pair[1]), "not in the order of the queue");
    ephemerals_become(&ensemble, 0).await;
    nothing_is_left(&ensemble, &manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_locks_of_one_session_survive_a_restart() {
    let ensemble = server().await;
    let manager = connect(&ensemble).await;
    let mut account = Account::new(&ensemble);
    account.report("before").await;
    let held = take_all(&manager).await;
    ephemerals_become(&ensemble, many()).await;
    account.report("all held").await;
    // As many watches as there is room for.
    let watched = eventually("watches on the long holds", patience(), || async {
        let watches = inspect::watch_count(ensemble.server(0).address()).await.ok()?;
        (watches > 500).then_some(())
    });
    watched.await.unwrap();
    account.report("held for long").await;

    let restart = killed_and_started(&ensemble, &[&manager]).await;
    // The restarted server has checked all nodes.
    let confirmed = eventually("the lease is from after the restart", patience(), || async {
        (held[0].valid_until().since(restart) >= SESSION.mul_f64(0.99)).then_some(())
    });
    confirmed.await.unwrap();
    assert!(held.iter().all(|guard| guard.is_valid()));
    assert_eq!(manager.health().held as usize, many());
    account.report("the server is back").await;

    let mut releases = JoinSet::new();
    for guard in held {
        releases.spawn(guard.release());
    }
    let all = async {
        while let Some(released) = releases.join_next().await {
            // The release of a deleted node would return an error.
            released.unwrap().unwrap();
        }
    };
    tokio::time::timeout(patience(), all).await.expect("all are released");
    account.report("all released").await;
    ephemerals_become(&ensemble, 0).await;
    nothing_is_left(&ensemble, &manager).await;
}

async fn take_all(manager: &ConnectionManager) -> Vec<MutexGuard> {
    let mut asking = JoinSet::new();
    for number in 0..many() {
        let mutex = Mutex::new(manager, format!("/locks/of-many/{number}")).unwrap();
        asking.spawn(async move { mutex.acquire().await.unwrap() });
    }
    let mut held = Vec::new();
    let all = async {
        while let Some(granted) = asking.join_next().await {
            held.push(granted.unwrap());
        }
    };
    tokio::time::timeout(patience(), all).await.expect("all are granted");
    held
}

/// No cleanup work, no hold and no watch is left, and the session is still the first one.
async fn nothing_is_left(ensemble: &Ensemble, manager: &ConnectionManager) {
    let Health { held, pending_deletes, epoch, .. } = manager.health();
    assert_eq!((held, pending_deletes, epoch.unwrap().as_u64()), (0, 0, 1));
    manager.shutdown().await.unwrap();
    let gone = eventually("no watches", Timing::settle(), || async {
        (inspect::watch_count(ensemble.server(0).address()).await.ok()? == 0).then_some(())
    });
    gone.await.unwrap();
}
