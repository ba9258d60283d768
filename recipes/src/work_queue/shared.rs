use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use lockkeeper_core::{ConnectionManager, ManagerExt, ZnodePath};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::candidates::ItemCandidates;
use super::free_items::FreeItems;
use super::item_layout::ItemLayout;
use super::name::ItemName;
use super::read_ahead::ReadAhead;
use super::shard_number::KnownShards;
use super::worker::{ParkedWorker, QueueWorker};

/// How long a worker is kept for the next call.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The state that all users of one queue in one process share: one list, and the workers that no call uses.
#[derive(Default)]
pub(super) struct SharedWork {
    pub(super) candidates: Mutex<ItemCandidates>,
    /// The taker that has the lock lists the queue for all others, and waits for all others.
    pub(super) list_turn: AsyncMutex<()>,
    pub(super) read_ahead: Arc<ReadAhead>,
    pub(super) shards: Mutex<KnownShards>,
    parked: Mutex<IdleWorkers>,
    /// How many numbers were drawn.
    draws: AtomicU64,
    /// The directory of the claims exists.
    pub(super) has_claims_directory: AtomicBool,
    pub(super) free: Arc<FreeItems>,
    /// This process has looked for records that others have left behind.
    has_swept: AtomicBool,
    /// The taker that has the lock has listed, and waits.
    is_waiting: watch::Sender<bool>,
}

/// The wait of the taker that has the lock.
pub(super) struct WaitingTaker<'a>(&'a watch::Sender<bool>);

impl Drop for WaitingTaker<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

#[derive(Default)]
struct IdleWorkers {
    workers: Vec<ParkedWorker>,
    /// The least number of parked workers since the last look of the task that ends idle ones.
    least: usize,
    has_task: bool,
}

impl IdleWorkers {
    /// Returns the workers that were not needed since the last look, and whether none is left.
    fn take_idle(&mut self) -> (Vec<ParkedWorker>, bool) {
        let idle = self.least.min(self.workers.len());
        let idle = self.workers.drain(..idle).collect();
        self.least = self.workers.len();
        self.has_task = !self.workers.is_empty();
        (idle, !self.has_task)
    }
}

/// A layout, the directory of the items, and that of the nodes beside them.
type QueueKey = (ItemLayout, ZnodePath, ZnodePath);

/// The queues of a manager.
#[derive(Default)]
struct Queues(Mutex<HashMap<QueueKey, Weak<SharedWork>>>);

impl SharedWork {
    /// The state of a queue.
    pub(super) fn of(manager: &ConnectionManager, key: QueueKey) -> Arc<Self> {
        let queues = manager.shared_table::<Queues>();
        let mut queues = queues.0.lock();
        queues.retain(|_, shared| shared.strong_count() > 0);
        let known = queues.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let shared = Arc::new(Self::default());
            queues.insert(key, Arc::downgrade(&shared));
            shared
        })
    }

    /// A worker that no call uses.
    pub(super) fn unpark(&self) -> Option<QueueWorker> {
        loop {
            let worker = {
                let mut parked = self.parked.lock();
                let worker = parked.workers.pop()?;
                parked.least = parked.least.min(parked.workers.len());
                worker
            };
            if let Some(worker) = worker.unpark() {
                return Some(worker);
            }
        }
    }

    /// Keeps a worker for the next call, for some seconds.
    pub(super) fn park(self: &Arc<Self>, manager: &ConnectionManager, worker: QueueWorker) {
        let Some(worker) = worker.park() else { return };
        let needs_task = {
            let mut parked = self.parked.lock();
            parked.workers.push(worker);
            !std::mem::replace(&mut parked.has_task, true)
        };
        if needs_task {
            manager.spawn(end_idle(Arc::downgrade(self)));
        }
    }

    /// Whether the caller is the first of this process, and deletes old records.
    pub(super) fn begin_sweep(&self) -> bool {
        !self.has_swept.swap(true, Ordering::AcqRel)
    }

    pub(super) fn begin_wait(&self) -> WaitingTaker<'_> {
        self.is_waiting.send_replace(true);
        WaitingTaker(&self.is_waiting)
    }

    /// Resolves while the taker that has the lock waits.
    pub(super) async fn until_one_waits(&self) {
        let mut is_waiting = self.is_waiting.subscribe();
        // The sender lives as long as this.
        let _ = is_waiting.wait_for(|is_waiting| *is_waiting).await;
    }

    /// A number that differs between the takes of a worker, and between workers.
    pub(super) fn draw(&self, worker: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        (worker, self.draws.fetch_add(1, Ordering::Relaxed)).hash(&mut hasher);
        usize::try_from(hasher.finish() >> 32).unwrap_or_default()
    }

    /// The next item to try by the last look.
    pub(super) fn next(&self, draw: usize) -> Option<ItemName> {
        let mut candidates = self.candidates.lock();
        if self.free.take() {
            candidates.forget_look();
        }
        candidates.next(draw)
    }
}

/// The end of a claim of this process. Dropped behind the worker, it tells the takers of this process that an
/// item is free at its old place.
pub(super) struct FreedItem {
    shared: Arc<SharedWork>,
    item: ItemName,
    is_done: bool,
}

impl FreedItem {
    pub(super) fn of(shared: &Arc<SharedWork>, item: ItemName) -> Self {
        Self { shared: Arc::clone(shared), item, is_done: false }
    }

    /// The item does not exist any more, and its worker is free for another one.
    pub(super) fn done(mut self, manager: &ConnectionManager, worker: QueueWorker) {
        self.is_done = true;
        self.shared.candidates.lock().ended(&self.item);
        self.shared.park(manager, worker);
    }
}

impl Drop for FreedItem {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.free.announce();
        }
    }
}

/// Ends the workers that were not needed for some seconds, until there is none.
async fn end_idle(shared: Weak<SharedWork>) {
    loop {
        tokio::time::sleep(IDLE_MAX).await;
        let Some(shared) = shared.upgrade() else { return };
        let (idle, is_over) = shared.parked.lock().take_idle();
        // Behind the lock.
        drop(idle);
        if is_over {
            return;
        }
    }
}

impl Debug for SharedWork {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedWork").finish_non_exhaustive()
    }
}
