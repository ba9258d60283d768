#![doc = "No memory and no node leaks, round after round. A process of its own: it counts all memory in use."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::alloc::System;
use std::time::Duration;

use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::State;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, MultiLock, Mutex, Owner, ReentrantMutex, RwLock, Semaphore, TreeView};
use lockkeeper_core::{HoldExt, Label, LockQueue, Read, Rule, ZnodePath};
use lockkeeper_tests::{Ensemble, Proxies, Timing, dropped_after, eventually, inspect, left_out};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Handle;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Tables and buffers grow to their size in the first rounds, and with each session anew. So only what later
/// rounds add is left behind.
const FIRST: usize = 100;
const ROUNDS: usize = 500;
/// The client crate keeps the paths of so many ended watches for each session.
const KEPT_PATHS: usize = 1_000;
/// The bytes of a contender's path.
const PATH_BYTES: usize = 68;
/// More watches at a time would enlarge tables that never shrink.
const BLOCK: usize = 10;
/// The session expires once in this number of rounds.
const EXPIRY: usize = 100;

/// The server's own five nodes, and the directories of what a round takes: those that are empty may have been
/// reaped.
const DIRECTORIES: u64 = 5 + 7;

/// All memory of the process is counted, so one test runs after the other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The nodes of a large tree, and of each of its directories.
const TREE: usize = 100_000;
const DIRECTORY: usize = 1_000;

/// The memory of a node in a view, besides its path and its data; docs/recipes.md states it.
const NODE_BYTES: usize = 400;

/// So much may differ by chance, such as the room in a buffer: less than anything of ours that one round
/// could leave.
const SLACK: usize = 32 * ROUNDS;

/// The resources that must be released.
#[derive(Clone, Copy, Debug)]
struct Count {
    bytes: usize,
    tasks: usize,
    watches: u64,
    ephemerals: u64,
    nodes: u64,
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

struct Fixture {
    ensemble: Ensemble,
    proxies: Proxies,
    manager: ConnectionManager,
    other: ConnectionManager,
}

impl Fixture {
    async fn new() -> Self {
        // A queue that is idle keeps its watches and its memory for a while. If the server deleted the
        // directory meanwhile, the watches would end first, and the memory would be counted.
        let builder = Ensemble::builder().property("znode.container.checkIntervalMs", "86400000");
        let ensemble = builder.start().await.unwrap();
        let proxies = Proxies::start(&ensemble).await.unwrap();
        let manager = connect(&proxies.connect_string()).await;
        let other = connect(&ensemble.connect_string()).await;
        Self { ensemble, proxies, manager, other }
    }

    /// Fills the list of the session that does not end: it would grow with each round until it is full.
    async fn fill_kept_paths(&self) {
        for block in 0..KEPT_PATHS / BLOCK {
            let path = |number| format!("/leaks/{block:0>3}{number:0>0$}", PATH_BYTES - 10);
            let paths: Vec<ZnodePath> = (0..BLOCK).map(|number| path(number).parse().unwrap()).collect();
            let guard = Mutex::new(&self.other, "/leaks/mutex").unwrap().acquire().await.unwrap();
            let created = paths.iter().fold(guard.txn(), |txn, path| txn.create(path.clone(), ""));
            created.commit().await.unwrap();
            let queue = LockQueue::new(&self.other, "/leaks/mutex", Label::LOCK, Rule::MUTEX).unwrap();
            let reads: Vec<Read> = paths.iter().cloned().map(Read::Data).collect();
            let monitor = guard.hold().monitor();
            let (_, changes) = queue.with_reads(&reads).unwrap().watch_reads(&monitor).await.unwrap();
            assert!(self.count().await.unwrap().watches as usize >= BLOCK);
            let deleted = paths.iter().fold(guard.txn(), |txn, path| txn.delete(path.clone(), Version::Any));
            // The server sends all events before its reply.
            deleted.commit().await.unwrap();
            drop(changes);
            guard.release().await.unwrap();
        }
    }

    async fn count(&self) -> Option<Count> {
        let counter = async |name| inspect::counter(self.ensemble.server(0).address(), name).await.ok();
        let (watches, ephemerals) = (counter("zk_watch_count").await?, counter("zk_ephemerals_count").await?);
        let nodes = counter("zk_znode_count").await?;
        self.proxies.clear_log();
        let stats = ALLOCATOR.stats();
        let bytes = stats.bytes_allocated - stats.bytes_deallocated;
        Some(Count { bytes, tasks: alive_tasks(), watches, ephemerals, nodes })
    }

    /// The resources once no request is in flight any more.
    async fn at_rest(&self) -> Count {
        eventually("nothing held, and nothing left to delete", Timing::settle(), || async {
            let idle = |manager: &ConnectionManager| {
                let health = manager.health();
                health.is_ready() && health.held == 0 && health.pending_deletes == 0
            };
            let count = self.count().await?;
            (idle(&self.manager) && idle(&self.other) && count.ephemerals == 0 && count.watches == 0)
                .then_some(count)
        })
        .await
        .unwrap()
    }

    async fn rounds(&self, rounds: usize) -> Count {
        for number in 0..rounds {
            self.round(number).await;
        }
        // The list of a new session has few paths. How many the rounds since the last expiry keep is chance.
        self.expire(&Mutex::new(&self.manager, "/leaks/mutex").unwrap()).await;
        self.at_rest().await
    }

    /// Every way in and out, with whatever was dropped on it.
    async fn round(&self, number: usize) {
        let mutex = Mutex::new(&self.manager, "/leaks/mutex").unwrap();
        let theirs = Mutex::new(&self.other, "/leaks/mutex").unwrap();
        drop(mutex.acquire().await.unwrap().release().await);
        drop(mutex.acquire().await.unwrap());
        let held = theirs.acquire().await.unwrap();
        dropped_soon(number % 7, mutex.acquire()).await;
        drop(mutex.enqueue().await.unwrap());
        assert!(mutex.acquire_timeout(Duration::from_millis(1)).await.is_err());
        drop(mutex.inspect().await.unwrap());
        dropped_soon(1 + number % 4, held.revoke_requested()).await;
        dropped_soon(1, held.lost()).await;
        drop(held.release().await);

        let owner = Owner::new("owner");
        let reentrant = ReentrantMutex::new(&self.manager, "/leaks/reentrant").unwrap();
        let outer = reentrant.acquire(&owner).await.unwrap();
        drop((reentrant.acquire(&owner).await.unwrap(), outer));
        let lock = RwLock::new(&self.manager, "/leaks/rw").unwrap().for_owner(&owner);
        drop(lock.write().await.unwrap().downgrade().await.unwrap());
        dropped_soon(number % 5, lock.write()).await;
        let semaphore = Semaphore::new(&self.manager, "/leaks/semaphore", 3).unwrap();
        drop(semaphore.acquire_many(2).await.unwrap());
        dropped_soon(number % 9, semaphore.acquire()).await;
        let both = MultiLock::builder().lock(&mutex).lock(&semaphore.permits(1)).build().unwrap();
        let mut events = both.events();
        drop(both.acquire().await.unwrap().release().await);
        assert!(events.next().await.is_some());
        if number.is_multiple_of(EXPIRY) {
            self.expire(&mutex).await;
        }
        self.proxies.clear_log();
    }

    /// The session expires while one contender holds and another waits.
    async fn expire(&self, mutex: &Mutex) {
        let mut transitions = self.manager.transitions();
        let held = mutex.acquire().await.unwrap();
        let waiter = tokio::spawn({
            let mutex = mutex.clone();
            async move { drop(mutex.acquire().await.unwrap().release().await) }
        });
        for session in self.proxies.sessions() {
            self.proxies.expire_session(session.id).await.unwrap();
        }
        while !matches!(transitions.next().await.unwrap().state, State::Lost(..)) {}
        held.lost().await;
        drop(held);
        waiter.await.unwrap();
    }
}

/// Drops `future` after `polls` polls, or soon: here it is dropped a thousand times.
async fn dropped_soon<F: Future>(polls: usize, future: F) {
    let _ = tokio::time::timeout(Duration::from_millis(5), dropped_after(polls, future)).await;
}

const TICK: Duration = Duration::from_millis(500);

async fn connect(servers: &str) -> ConnectionManager {
    let builder = ConnectionManager::builder(servers).tick_time(TICK);
    builder.session_timeout(Duration::from_secs(4)).connect().await.unwrap()
}

#[tokio::test]
async fn many_rounds_leave_nothing_behind() {
    if left_out() {
        return;
    }
    let _alone = ALONE.lock().await;
    let fixture = Fixture::new().await;
    fixture.fill_kept_paths().await;
    let before = fixture.rounds(FIRST).await;
    let after = fixture.rounds(ROUNDS).await;
    println!("before: {before:?}\nafter:  {after:?}");
    // A link that has ended takes its tasks with it a little later.
    let tasks = || async { (alive_tasks() <= before.tasks).then_some(()) };
    eventually(format!("{} tasks, as before", before.tasks), Timing::settle(), tasks).await.unwrap();
    assert_eq!((after.watches, after.ephemerals), (before.watches, before.ephemerals));
    assert!(after.nodes <= DIRECTORIES, "{} nodes", after.nodes);
    assert!(after.bytes <= before.bytes + SLACK, "{} bytes became {}", before.bytes, after.bytes);
}

fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[tokio::test]
async fn a_view_of_a_hundred_thousand_nodes_stays_within_the_stated_memory() {
    if left_out() {
        return;
    }
    let _alone = ALONE.lock().await;
    let ensemble = Ensemble::start(1).await.unwrap();
    // Transactions of a thousand creates take long on a busy machine.
    let manager = ConnectionManager::builder(&ensemble.connect_string()).tick_time(TICK);
    let manager = manager.session_timeout(Duration::from_secs(60)).connect().await.unwrap();
    let guard = Mutex::new(&manager, "/lock").unwrap().acquire().await.unwrap();
    for directory in 0..TREE / DIRECTORY {
        let path = format!("/tree/{directory:03}");
        manager.znodes().create(path.as_str(), "", CreateMode::Persistent).await.unwrap();
        let nodes = 1..DIRECTORY;
        let all = nodes.fold(guard.txn(), |txn, node| txn.create(format!("{path}/{node:03}"), "12345678"));
        all.commit().await.unwrap();
    }
    guard.release().await.unwrap();

    let before = in_use();
    let view = TreeView::new(&manager, "/tree").unwrap();
    let snapshot = view.ready().await.unwrap();
    assert_eq!(snapshot.len(), TREE + 1);
    let (used, held) = (in_use() - before, snapshot.bytes());
    println!("{} bytes for each node, besides {held} bytes of paths and data", (used - held) / TREE);
    assert!(used <= held + TREE * NODE_BYTES, "{used} bytes, of which {held} are paths and data");

    // A change costs as much as it differs, although the reader keeps the snapshot before it.
    manager.znodes().write("/tree/000/001", "87654321", Version::Any).await.unwrap();
    let next = view.sync().await.unwrap();
    assert!(next.get("000/001").unwrap().data() == b"87654321" && in_use() < before + used + 64 * NODE_BYTES);
    drop((snapshot, next, view));
    let freed = eventually("the memory is free again", Timing::settle(), || async {
        (in_use() < before + used / 50).then_some(())
    });
    freed.await.unwrap();
}
