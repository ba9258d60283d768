//! Puts: each is one transaction, which is found out if its answer is lost.

use lockkeeper_core::{
    ConfigError, CreateMode, Deadline, Error, NODE_BYTES_MAX, Refusal, TxnError, ZnodePath, count_of,
};

use super::error::WorkQueueError;
use super::handle::WorkQueue;
use super::name::{ItemName, PRIORITY_MAX};
use super::stored::Stored;
use crate::value::SharedData;

/// The priority of a put that names none.
const PRIORITY: u16 = 100;

/// The data of an item has room for so many bytes beside its value.
const OVERHEAD: usize = 4 * 1024;

impl<T: SharedData> WorkQueue<T> {
    /// Puts an item at the end of the queue, with the priority 100.
    ///
    /// # Errors
    ///
    /// [`WorkQueueError::Full`]. [`Error::Config`], before anything is sent, if the value is larger than 508
    /// kilobytes. [`Error::Timeout`] without a connection within the manager's operation timeout,
    /// [`Error::Refused`] (access list, quota) and [`Error::Closed`]: nothing was put. [`Error::Unknown`] if
    /// the answer was lost, and no server could be asked for the outcome in time.
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
        self.put_with(value, PRIORITY).await
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
        self.put_items(std::slice::from_ref(value), priority).await
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
        self.put_items(values, PRIORITY).await
    }

    async fn put_items(&self, values: &[T], priority: u16) -> Result<(), Error> {
        let items = prepare(values, priority)?;
        let prefix = self.items.child(&ItemName::prefix(priority))?;
        let bytes = items.iter().map(Vec::len).max().unwrap_or_default();
        crate::limits::check("items", count_of(items.len()), &prefix, &vec![0; bytes])?;
        if items.is_empty() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.manager().closing() => Err(Error::Closed),
            put = self.put_prepared(&prefix, &items) => put,
        }
    }

    async fn put_prepared(&self, prefix: &ZnodePath, items: &[Vec<u8>]) -> Result<(), Error> {
        let deadline = Deadline::after(self.manager().operation_timeout());
        self.require_room(count_of(items.len())).await?;
        loop {
            let mut worker = self.worker(deadline).await?;
            let committed = worker
                .record
                .commit(&worker.hold, |txn| {
                    items.iter().fold(txn, |txn, item| txn.create_sequential(prefix, item.clone()))
                })
                .await;
            match committed {
                Ok(_) => {
                    self.park(worker);
                    return Ok(());
                }
                Err(TxnError::Refused { refusal: Refusal::NoNode, .. }) if !deadline.has_passed() => {
                    self.park(worker);
                    self.create_directory().await?;
                }
                // Nothing is put.
                Err(error) if error.is_lost() && !deadline.has_passed() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn create_directory(&self) -> Result<(), Error> {
        match self.manager().znodes().create(&self.items, b"", CreateMode::Persistent).await {
            Ok(_) | Err(Error::Refused { refusal: Refusal::NodeExists, .. } | Error::Unknown { .. }) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses more items than the queue has room for.
    async fn require_room(&self, more: u32) -> Result<(), Error> {
        let (path, capacity) = (self.whole_path(), self.capacity);
        let Some((_, stat)) = self.manager().znodes().read(&self.items).await? else { return Ok(()) };
        let items = u32::try_from(stat.children).unwrap_or_default();
        match items.saturating_add(more) > capacity {
            true => Err(WorkQueueError::Full { path, items, capacity }.into()),
            false => Ok(()),
        }
    }
}

/// The data of the nodes. Refuses what no server would store.
fn prepare<T: SharedData>(values: &[T], priority: u16) -> Result<Vec<Vec<u8>>, Error> {
    let refused = |name, value, advice| Error::Config(ConfigError::Setting { name, value, advice });
    if priority > PRIORITY_MAX {
        return Err(refused("priority", priority.to_string(), "take 0 to 999; a lower one is taken first"));
    }
    let values: Vec<Vec<u8>> = values.iter().map(SharedData::encode).collect();
    match values.iter().map(Vec::len).max() {
        Some(bytes) if bytes > NODE_BYTES_MAX - OVERHEAD => Err(refused(
            "value",
            format!("{bytes} bytes"),
            "keep values below 508 kilobytes, or put a reference to the data",
        )),
        _ => Ok(values.into_iter().map(|value| Stored::new(value).encode()).collect()),
    }
}
