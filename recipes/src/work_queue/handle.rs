use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lockkeeper_core::{
    ConfigError, ConnectionManager, CreateMode, Deadline, Error, IntoPath, Label, LockQueue, ManagerExt,
    Refusal, Rule, WholePath, ZnodePath,
};

use super::item_layout::ItemLayout;
use super::name::{FAILED, ItemName, RECORDS, WORKERS};
use super::shard_number::ITEMS;
use super::shared::SharedWork;
use super::sweep::sweep_records;
use super::worker::QueueWorker;
use crate::limits;
use crate::value::SharedData;

/// The nodes of the workers.
const WORKER: Label = match Label::new("worker-") {
    Ok(label) => label,
    Err(_) => panic!("not a label"), // at compile time
};

/// How many items a queue has room for, unless another number is set, and at most.
const CAPACITY: u32 = 100_000;
const CAPACITY_MAX: u32 = 1_000_000;

/// The most items for which one list fits into an answer of the servers, with room for puts at the same time.
/// In the layouts of other clients all items are in one directory.
const DIRECTORY_MAX: u32 = 40_000;

/// A directory of items takes none beyond so many. Its list has 180 kilobytes then.
const SHARD_SIZE: u32 = 10_000;

/// A queue of items that processes put and work off: an item is done exactly once in ZooKeeper, at least once
/// outside, and never lost.
///
/// [`take`](Self::take) returns a [`WorkItem`](super::WorkItem), which nobody else has while it is valid. The
/// process does the work, and ends it by [`done`](super::WorkItem::done), or by
/// [`done_with`](super::WorkItem::done_with), whose writes are committed in the transaction that deletes the
/// item. The item of a process that crashes, and one that is dropped or lost, is free again at its old place.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same queue. The
/// path belongs to the queue alone.
///
/// # What is once
///
/// * An item that was put is done at most once, and so are the writes that
///   [`done_with`](super::WorkItem::done_with) commits with it, whatever crashes, pauses or sets its clock.
/// * A put whose answer is lost is found out: it puts its items once.
/// * The work itself may begin again: if a process is lost before `done`, the item is taken again. Give
///   writes outside ZooKeeper the [fencing token](super::WorkItem::fencing_token) of the item.
///
/// # Ordering and fairness
///
/// An item of a lower [priority](Self::put_with) is taken first, and of two with the same priority the one
/// that was put first. One taker takes the items in this order. Among several, the order is that of their
/// claims: a process whose takers meet those of other processes takes from among the first items of the same
/// priority, and from among the more the oftener they meet. One look at the queue serves an eighth of its
/// items and 1,250 takes at most, so an item of a lower priority waits at most for so many takes.
///
/// # Cost
///
/// A put is one request, and a second one where the room is short: it reads the number of items first. A
/// taken item is two, the claim and the transaction of `done`, and a part of a read: one request reads up to
/// 33 items for all takers of one manager, the more the faster they take. What was read is used for a
/// second. In the layouts of other clients each item is read by itself. Takers also share one look at the
/// queue and one wait. Each process that waits looks at the queue
/// when it changes: it lists the workers, and the directory that takes puts. It lists each other directory
/// when it meets it, and then once for an eighth of its items that it takes. A directory takes 10,000 items
/// at most, so that a list has about 180 kilobytes, however many items there are.
///
/// # What a queue in ZooKeeper is not for
///
/// Every item is in the memory of every server and in each snapshot, and every change of it passes the
/// leader. The names of all items are in the memory of each process that takes. The queue has room for
/// 100,000 items unless [another number](Self::with_capacity) is set, of at most some hundred kilobytes each.
/// Put a reference to large data. For thousands of items a second, use a message broker.
///
/// # Session loss
///
/// The item of an expired session is lost: [`lost`](super::WorkItem::lost) resolves before another process
/// can take it. A waiting taker goes on in the next session.
///
/// # Layout
///
/// `<path>/items/<priority>-<number>` is an item, persistent; its data names its worker. When that directory
/// is full, `<path>/items-0000000001` takes the next ones, and so on; one that is used up is deleted, except
/// the first. `<path>/failed` has those that failed, and `<path>/ids` those that were put
/// [by id](Self::put_once).
/// `<path>/workers/_c_<id>-worker-<number>` is a worker, ephemeral. `<path>/records/<id>` is the record of
/// its transactions, persistent, and deleted with the worker. A process that has ended leaves
/// its own behind: an hour after its last write, the first worker of another process deletes it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use lockkeeper::{ConnectionManager, WorkQueue};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let orders = WorkQueue::<String>::new(&manager, "/queues/orders")?;
/// orders.put(&"3 tickets for alice".to_owned()).await?;
///
/// let item = orders.take().await?;
/// let sale = item.run(async { format!("sold: {}", item.value()) }).await?; // dropped if the item is lost
/// item.done_with(|txn| txn.create_sequential("/sale-", sale)).await?;
/// # Ok(())
/// # }
/// ```
pub struct WorkQueue<T> {
    pub(super) path: ZnodePath,
    pub(super) layout: ItemLayout,
    /// The directory of the items.
    pub(super) items: ZnodePath,
    /// The directory of the nodes that claim items, in the layouts of other clients.
    pub(super) claims: Option<ZnodePath>,
    /// The directory of what only this library writes.
    pub(super) base: ZnodePath,
    records: ZnodePath,
    pub(super) workers: LockQueue,
    pub(super) shared: Arc<SharedWork>,
    pub(super) capacity: u32,
    /// A directory of items takes none beyond that.
    pub(super) shard_size: u32,
    pub(super) attempts_max: Option<u32>,
    of: PhantomData<fn(T) -> T>,
}

impl<T: SharedData> WorkQueue<T> {
    /// Makes the queue at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /queues/a")?;
        let (items, base) = (path.child(ITEMS)?, path.clone());
        Self::in_layout(manager, path, ItemLayout::Own, items, None, base)
    }

    pub(super) fn in_layout(
        manager: &ConnectionManager,
        path: ZnodePath,
        layout: ItemLayout,
        items: ZnodePath,
        claims: Option<ZnodePath>,
        base: ZnodePath,
    ) -> Result<Self, Error> {
        let (records, workers) = (base.child(RECORDS)?, base.child(WORKERS)?);
        const RULE: Rule = Rule::blocked_by(&[]).sharing_with(&[WORKER.kind()]);
        let workers = LockQueue::new(manager, workers, WORKER, RULE)?.with_metric_name("work_queue");
        let shared = SharedWork::of(manager, (layout, items.clone(), base.clone()));
        let capacity = if layout.is_own() { CAPACITY } else { DIRECTORY_MAX };
        let (shard_size, attempts_max) = (SHARD_SIZE, None);
        Ok(Self {
            path,
            layout,
            items,
            claims,
            base,
            records,
            workers,
            shared,
            capacity,
            shard_size,
            attempts_max,
            of: PhantomData,
        })
    }

    /// Sets how many items the queue has room for: a put that finds as many fails with
    /// [`WorkQueueError::Full`](super::WorkQueueError::Full). Default: 100,000. Maximum: 1,000,000. In the
    /// layouts of other clients, default and maximum are 40,000, whose names fit into one answer of the
    /// servers.
    ///
    /// A put reads the number of items before it puts its own, and one read serves a sixteenth of the room,
    /// at most 64 items. So each process may exceed the bound by the items of its puts that are in flight at
    /// the same moment, and by 64. A process alone keeps a bound that it reaches by one put after the other.
    /// All users of the queue give the same bound. Near it, a put counts the items of each directory: one
    /// request more for each 10,000.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the number is zero, or above the maximum.
    pub fn with_capacity(self, capacity: u32) -> Result<Self, Error> {
        let (most, advice) = match self.layout.is_own() {
            true => (CAPACITY_MAX, "take 1 to 1000000; every item is in the memory of every server"),
            false => (
                DIRECTORY_MAX,
                "take 1 to 40000; the names of more items do not fit into one answer of the servers",
            ),
        };
        if capacity == 0 || capacity > most {
            return Err(ConfigError::Setting { name: "capacity", value: capacity.to_string(), advice }.into());
        }
        Ok(Self { capacity, ..self })
    }

    /// Sets how many items a directory takes, for tests. Default: 10,000. With 0, each put has a directory of
    /// its own.
    #[doc(hidden)]
    #[must_use]
    pub fn with_shard_size(self, items: u32) -> Self {
        Self { shard_size: items, ..self }
    }

    /// Sets how often an item is taken at most. One that was taken as often and is not done moves to
    /// `<path>/failed`, with the reasons that [`fail`](super::WorkItem::fail) was given: by the last `fail`
    /// itself, or, after a crash, by the next taker. Default: no limit. All users of the queue give the same
    /// limit.
    ///
    /// All failed items are in one directory. Beyond some 40,000 their names do not fit into one answer of
    /// the servers, and [`inspect`](Self::inspect) fails: put them back, or delete them, before.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the number is zero.
    pub fn with_max_attempts(self, attempts: u32) -> Result<Self, Error> {
        if attempts == 0 {
            let (name, value) = ("attempts", "0".to_owned());
            let advice = "take one or more; an item that is never taken is never done";
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        Ok(Self { attempts_max: Some(attempts), ..self })
    }

    /// Sets the data that names this process in its nodes. Default: the manager's node data, which has the
    /// host and the process id.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { workers: self.workers.with_node_data(data), ..self }
    }

    /// The path of the queue, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    pub(super) fn manager(&self) -> &ConnectionManager {
        self.workers.manager()
    }

    /// The directory of the failed items.
    pub(super) fn failed_directory(&self) -> Result<ZnodePath, Error> {
        Ok(self.base.child(FAILED)?)
    }

    /// The node that claims an item, in the layouts of other clients.
    pub(super) fn claim_path(&self, item: &ItemName) -> Result<Option<ZnodePath>, Error> {
        Ok(self.claims.as_ref().map(|claims| claims.child(item.as_str())).transpose()?)
    }

    /// The earliest present time of the servers.
    pub(super) fn now(&self) -> i64 {
        // A worker has written its record, so there is one in this session.
        self.manager().estimated_server_time().unwrap_or_default()
    }

    /// Creates a directory of the queue.
    pub(super) async fn create_directory(&self, path: &ZnodePath) -> Result<(), Error> {
        match self.manager().znodes().create(path, b"", CreateMode::Persistent).await {
            Ok(_) | Err(Error::Refused { refusal: Refusal::NodeExists, .. } | Error::Unknown { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// For errors and logs.
    pub(super) fn whole_path(&self) -> WholePath {
        self.manager().whole_path(&self.path)
    }

    /// A worker that no other call uses.
    pub(super) async fn worker(&self, deadline: Deadline) -> Result<QueueWorker, Error> {
        if let Some(worker) = self.shared.unpark() {
            return Ok(worker);
        }
        if !self.shared.has_claims_directory.load(Ordering::Acquire) {
            self.make_claims_directory().await?;
        }
        let reads_begun = || self.shared.read_ahead.begun();
        let worker = QueueWorker::create(&self.workers, &self.records, reads_begun, deadline).await?;
        if self.shared.begin_sweep() {
            let (records, workers) = (self.records.clone(), self.workers.directory().clone());
            self.manager().spawn(sweep_records(self.manager().clone(), records, workers));
        }
        Ok(worker)
    }

    /// Creates the directory of the claims before a node of ours is below it: it would be a container
    /// otherwise, which the server deletes, and other clients create it only when they start.
    pub(super) async fn make_claims_directory(&self) -> Result<(), Error> {
        let Some(claims) = &self.claims else { return Ok(()) };
        self.manager().znodes().ensure(claims).await?;
        self.shared.has_claims_directory.store(true, Ordering::Release);
        Ok(())
    }

    /// Keeps a worker for the next call of this process.
    pub(super) fn park(&self, worker: QueueWorker) {
        self.shared.park(self.manager(), worker);
    }
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self {
            path: self.path.clone(),
            layout: self.layout,
            items: self.items.clone(),
            claims: self.claims.clone(),
            base: self.base.clone(),
            records: self.records.clone(),
            workers: self.workers.clone(),
            shared: Arc::clone(&self.shared),
            capacity: self.capacity,
            shard_size: self.shard_size,
            attempts_max: self.attempts_max,
            of: PhantomData,
        }
    }
}

impl<T> Debug for WorkQueue<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WorkQueue")
            .field("path", &self.path)
            .field("layout", &self.layout)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
