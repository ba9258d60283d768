//! Puts: each is one transaction, which is found out if its answer is lost.

use std::time::{Duration, SystemTime};

use lockkeeper_core::{
    ConfigError, Deadline, Error, NODE_BYTES_MAX, Phase, Refusal, TxnError, ZnodePath, count_of,
};

use super::error::WorkQueueError;
use super::handle::WorkQueue;
use super::item::millis;
use super::item_layout::PutOptions;
use super::shard_number::ShardNumber;
use super::shards::Room;
use super::stored::StoredItem;
use crate::value::SharedData;

/// The pauses between two tries of a put that waits for room.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The data of an item has room for so many bytes beside its value.
const OVERHEAD: usize = 4 * 1024;

impl<T: SharedData> WorkQueue<T> {
    /// Puts an item at the end of the queue, with the priority 100.
    ///
    /// # Errors
    ///
    /// [`WorkQueueError::Full`]. [`Error::Config`], before anything is sent, if the value is larger than 508
    /// kilobytes. [`Error::Timeout`] without a connection within the manager's operation timeout,
    /// [`Error::Refused`] (access list, quota), [`Error::SequenceExhausted`] (in the layouts of other
    /// clients, after two billion items: use another path) and [`Error::Closed`]: nothing was put.
    /// [`Error::Unknown`] if the answer was lost, and no server could be asked for the outcome in time.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. The item is put once.
    ///
    /// # Cancel safety
    ///
    /// The item of a dropped call is put, or it is not; nothing is put after a later put of this process is
    /// answered.
    pub async fn put(&self, value: &T) -> Result<(), Error> {
        self.put_items(std::slice::from_ref(value), PutOptions::default()).await.map(drop)
    }

    /// As [`put`](Self::put), with a priority from 0 to 999. An item of a *lower* priority is taken first.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the priority is above 999. Otherwise as [`put`](Self::put).
    ///
    /// # Session loss
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put).
    pub async fn put_with(&self, value: &T, priority: u16) -> Result<(), Error> {
        let options = PutOptions { priority: Some(priority), ..PutOptions::default() };
        self.put_items(std::slice::from_ref(value), options).await.map(drop)
    }

    /// As [`put`](Self::put), for an item that is not taken before this time, by the clock of the servers.
    /// From then on it has its place by the order of the puts. Each process that takes reads such an item
    /// once before.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    ///
    /// # Session loss
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put).
    pub async fn put_at(&self, value: &T, time: SystemTime) -> Result<(), Error> {
        let options = PutOptions { due: Some(millis(time)), ..PutOptions::default() };
        self.put_items(std::slice::from_ref(value), options).await.map(drop)
    }

    /// As [`put`](Self::put), unless an item was put with the same `id` before, by any process. Returns
    /// whether this call has put it.
    ///
    /// The id is the name of a node in `<path>/ids`. It stays when the item is done, until the application
    /// [deletes](Self::forget_id) it: so a producer that crashes after its put and puts again puts once.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the id cannot be the name of a node. Otherwise as [`put`](Self::put).
    ///
    /// # Session loss
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put): call it again with the same id.
    pub async fn put_once(&self, value: &T, id: &str) -> Result<bool, Error> {
        let options = PutOptions { id: Some(id), ..PutOptions::default() };
        self.put_items(std::slice::from_ref(value), options).await
    }

    /// Forgets an id of [`put_once`](Self::put_once): another item may be put with it. Returns whether it was
    /// known.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`], [`Error::Unknown`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// The id of a dropped call is forgotten, or it is not.
    pub async fn forget_id(&self, id: &str) -> Result<bool, Error> {
        self.manager().znodes().delete(self.id_path(id)?).await
    }

    /// As [`put`](Self::put), and waits while the queue is full. It reads the number of items after pauses of
    /// 50 milliseconds to a second.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put), without [`WorkQueueError::Full`].
    ///
    /// # Session loss
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put).
    pub async fn put_wait(&self, value: &T) -> Result<(), Error> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.put(value).await {
                Err(full) if matches!(full.recipe(), Some(WorkQueueError::Full { .. })) => {}
                put => return put,
            }
            tokio::select! {
                biased;
                () = self.manager().closing() => return Err(Error::Closed),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
            }
        }
    }

    /// Puts several items in one transaction: all of them, next to each other and in this order, or none.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], before anything is sent, if they do not fit into one request. Otherwise as
    /// [`put`](Self::put).
    ///
    /// # Session loss
    ///
    /// As [`put`](Self::put).
    ///
    /// # Cancel safety
    ///
    /// As [`put`](Self::put).
    pub async fn put_all(&self, values: &[T]) -> Result<(), Error> {
        self.put_items(values, PutOptions::default()).await.map(drop)
    }

    /// The node of an id.
    fn id_path(&self, id: &str) -> Result<ZnodePath, Error> {
        Ok(self.base.child("ids")?.child(id)?)
    }

    async fn put_items(&self, values: &[T], options: PutOptions<'_>) -> Result<bool, Error> {
        self.layout.check(options)?;
        let items = self.prepare(values, options)?;
        let id = options.id.map(|id| self.id_path(id)).transpose()?;
        let longest = self.shard_path(ShardNumber::MAX)?;
        let prefix = longest.child(&self.layout.prefix(options, i64::MAX))?;
        let bytes = items.iter().map(Vec::len).max().unwrap_or_default();
        crate::limits::check("items", count_of(items.len()), &prefix, &vec![0; bytes])?;
        if items.is_empty() {
            return Ok(false);
        }
        tokio::select! {
            biased;
            () = self.manager().closing() => Err(Error::Closed),
            put = self.put_prepared(options, &items, id.as_ref()) => put,
        }
    }

    async fn put_prepared(
        &self,
        options: PutOptions<'_>,
        items: &[Vec<u8>],
        id: Option<&ZnodePath>,
    ) -> Result<bool, Error> {
        let deadline = Deadline::after(self.manager().operation_timeout());
        let room = Room { items: count_of(items.len()), capacity: Some(self.capacity) };
        let mut attempts = 0_u32;
        loop {
            if attempts > 0 && deadline.has_passed() {
                let phase = Phase::Recipe("putting items into a directory that changes".into());
                return Err(Error::Timeout { phase, path: self.whole_path(), waited: deadline.waited() });
            }
            attempts = attempts.saturating_add(1);
            let shard = self.shard_for(room, deadline).await?;
            let mut worker = self.worker(deadline).await?;
            let directory = shard.as_ref().unwrap_or(&self.items);
            let prefix = directory.child(&self.layout.prefix(options, self.now()))?;
            let committed = worker
                .record
                .commit(&worker.hold, |txn| {
                    let txn = self.checked(txn, shard.as_ref());
                    let txn = id.into_iter().fold(txn, |txn, id| txn.create(id, b""));
                    items.iter().fold(txn, |txn, item| txn.create_sequential(&prefix, item.clone()))
                })
                .await;
            match committed {
                Ok(_) => {
                    self.park(worker);
                    return Ok(true);
                }
                Err(TxnError::Refused { .. }) if worker.record.is_broken() => {}
                Err(error) if self.is_of_shard(shard.as_ref(), &error) => {
                    self.shard_was_refused();
                    self.park(worker);
                }
                Err(TxnError::Refused { refusal: Refusal::NodeExists, .. }) if id.is_some() => {
                    self.park(worker);
                    return Ok(false);
                }
                Err(TxnError::Refused { refusal: Refusal::NoNode, .. }) => {
                    self.park(worker);
                    if shard.is_none() {
                        self.create_directory(&self.items).await?;
                    }
                    if let Some(directory) = id.and_then(ZnodePath::parent) {
                        self.create_directory(&directory).await?;
                    }
                }
                // Nothing is put.
                Err(error) if error.is_lost() => {
                    self.shared.candidates.lock().forget_lists();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The data of the nodes. Refuses what no server would store.
    fn prepare(&self, values: &[T], options: PutOptions<'_>) -> Result<Vec<Vec<u8>>, Error> {
        let values: Vec<Vec<u8>> = values.iter().map(SharedData::encode).collect();
        match values.iter().map(Vec::len).max() {
            Some(bytes) if bytes > NODE_BYTES_MAX - OVERHEAD => Err(Error::Config(ConfigError::Setting {
                name: "value",
                value: format!("{bytes} bytes"),
                advice: "keep values below 508 kilobytes, or put a reference to the data",
            })),
            _ => {
                let stored = |value| StoredItem { due: options.due, ..StoredItem::new(value) };
                Ok(values.into_iter().map(|value| self.layout.encode(&stored(value))).collect())
            }
        }
    }
}
