//! What is seen of a queue, and the way back for failed items.

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime};

use futures::future::try_join_all;
use lockkeeper_core::{
    Deadline, Error, Phase, Refusal, Stat, TxnError, Version, WholePath, ZnodePath, count_of,
};

use super::handle::WorkQueue;
use super::item_layout::NodeData;
use super::name::ItemName;
use super::shard_number::ShardNumber;
use super::shards::Room;
use super::stored::StoredItem;
use crate::inspection::estimated_time;
use crate::value::SharedData;

/// So many items are read by one inspection.
const READ_MAX: usize = 100;

/// A work queue as it was seen: a snapshot, made of several reads. Printed, it is a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkQueueInspection {
    /// The path of the queue.
    pub path: WholePath,
    /// The number of items, claimed ones included.
    pub item_count: u32,
    /// The first hundred items, in the order of work.
    pub items: Vec<ItemInfo>,
    /// The number of failed items.
    pub failed_count: u32,
    /// The first hundred failed items.
    pub failed: Vec<FailedItem>,
}

/// An item as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemInfo {
    /// The path of the item, below the manager's chroot.
    pub path: ZnodePath,
    /// Who has it.
    pub state: ItemState,
    /// How often it was taken.
    pub attempts: u32,
}

/// What becomes of an item next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemState {
    /// The next taker gets it.
    Free,
    /// It is not taken before this time, by the clock of the servers.
    Delayed(SystemTime),
    /// A process has it.
    Claimed {
        /// The node data of the process.
        by: String,
        /// When the process has taken it, by the clock of the servers.
        since: SystemTime,
    },
}

/// A failed item as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedItem {
    /// The path of the failed item, below the manager's chroot.
    pub path: ZnodePath,
    /// How often it was taken.
    pub attempts: u32,
    /// The reasons, oldest first: a time in milliseconds since 1970, the name of the worker, and what it
    /// said.
    pub failures: Vec<String>,
}

/// An item as it was read.
struct FoundItem {
    name: ItemName,
    path: ZnodePath,
    data: Vec<u8>,
    stat: Stat,
}

impl<T: SharedData> WorkQueue<T> {
    /// Returns the items with their takers, and the failed items: a snapshot. It needs only the right to
    /// read. A list for each directory of items and two more, and a read for each of the first hundred items.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the connection broke:
    /// call again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<WorkQueueInspection, Error> {
        let deadline = Deadline::after(self.manager().operation_timeout());
        let (mut item_count, mut names) = (0_u32, Vec::new());
        for shard in self.shards(deadline).await? {
            let children =
                self.manager().znodes().children(self.shard_path(shard)?).await?.unwrap_or_default();
            let before = names.len();
            names.extend(self.layout.parse_all(shard, &children));
            item_count = item_count.saturating_add(count_of(names.len() - before));
            keep_first(&mut names);
        }
        let paths = names.into_iter().map(|name| Ok((self.item_path(&name)?, name)));
        let items = self.read_all(paths.collect::<Result<_, Error>>()?).await?;
        let now = estimated_time(self.manager());
        let items = try_join_all(items.into_iter().map(|item| self.info(item, now))).await?;
        let (failed_count, failed) = self.first_failed().await?;
        let failed = failed.into_iter().map(|FoundItem { path, data, .. }| {
            let StoredItem { attempts, failures, .. } = StoredItem::decode(&data);
            FailedItem { path, attempts, failures }
        });
        let (path, failed) = (self.whole_path(), failed.collect());
        Ok(WorkQueueInspection { path, item_count, items, failed_count, failed })
    }

    async fn first_failed(&self) -> Result<(u32, Vec<FoundItem>), Error> {
        let directory = self.failed_directory()?;
        let children = self.manager().znodes().children(&directory).await?.unwrap_or_default();
        let mut names: Vec<ItemName> =
            children.iter().filter_map(|name| self.layout.parse_failed(name)).collect();
        let count = count_of(names.len());
        keep_first(&mut names);
        let paths = names.into_iter().map(|name| Ok((directory.child(&name.among_failed())?, name)));
        Ok((count, self.read_all(paths.collect::<Result<_, Error>>()?).await?))
    }

    async fn read_all(&self, items: Vec<(ZnodePath, ItemName)>) -> Result<Vec<FoundItem>, Error> {
        let read = |(path, name): (ZnodePath, ItemName)| async {
            let read = self.manager().znodes().read(&path).await?;
            Ok::<_, Error>(read.map(|(data, stat)| FoundItem { name, path, data, stat }))
        };
        let items = try_join_all(items.into_iter().map(read)).await?;
        Ok(items.into_iter().flatten().collect())
    }

    async fn info(&self, item: FoundItem, now: i64) -> Result<ItemInfo, Error> {
        let FoundItem { name, path, data, stat } = item;
        let stored = match self.layout.decode(&name, &data, stat.version) {
            NodeData::Item(stored) => stored,
            // Their takes are not counted in the data.
            NodeData::Several(_) | NodeData::Unreadable(_) => StoredItem::default(),
        };
        let claim = match (self.claim_path(&name)?, &stored.claim) {
            (Some(claim), _) => Some(claim),
            (None, Some(claim)) => Some(self.workers.directory().child(claim)?),
            (None, None) => None,
        };
        let claim = match claim {
            Some(claim) => self.manager().znodes().read(claim).await?,
            None => None,
        };
        let state = match (claim, stored.due) {
            (Some((by, claim)), _) => {
                let by = String::from_utf8_lossy(&by).into_owned();
                let since = if self.claims.is_some() { claim.ctime } else { stat.mtime };
                ItemState::Claimed { by, since: time(since) }
            }
            (None, Some(due)) if due > now => ItemState::Delayed(time(due)),
            (None, _) => ItemState::Free,
        };
        Ok(ItemInfo { path, state, attempts: stored.attempts })
    }

    /// Puts a failed item back to the end of the queue, with its reasons and no attempts, in one transaction.
    /// Returns `false` if there is no such failed item. The bound of the queue does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`], [`Error::NotCommitted`] if the failed item is changed at the
    /// same moment, [`Error::Unknown`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// The transaction of a dropped call is applied, or it is not. No item is lost or put twice.
    pub async fn requeue(&self, failed: &ZnodePath) -> Result<bool, Error> {
        let path = self.failed_directory()?.child(failed.name())?;
        let Some((data, stat)) = self.manager().znodes().read(&path).await? else { return Ok(false) };
        let stored = StoredItem { attempts: 0, claim: None, due: None, ..StoredItem::decode(&data) };
        let (data, prefix) = (self.layout.encode(&stored), self.layout.prefix_like(failed.name()));
        let deadline = Deadline::after(self.manager().operation_timeout());
        loop {
            let shard = self.shard_for(Room { items: 1, capacity: None }, deadline).await?;
            let target = shard.as_ref().unwrap_or(&self.items).child(&prefix)?;
            let mut worker = self.worker(deadline).await?;
            let requeued = worker
                .record
                .commit(&worker.hold, |txn| {
                    let txn = txn.delete(&path, Version::from(stat.version));
                    self.checked(txn, shard.as_ref()).create_sequential(&target, data.clone())
                })
                .await;
            match requeued {
                Ok(_) => {
                    self.park(worker);
                    return Ok(true);
                }
                Err(TxnError::Refused { index: 0, refusal: Refusal::NoNode, .. }) => return Ok(false),
                Err(error) if self.is_of_shard(shard.as_ref(), &error) => {
                    self.shard_was_refused();
                    self.park(worker);
                    if deadline.has_passed() {
                        let phase = Phase::Recipe("putting an item into a directory that changes".into());
                        return Err(Error::Timeout {
                            phase,
                            path: self.whole_path(),
                            waited: deadline.waited(),
                        });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Keeps the names of those that are shown.
fn keep_first(names: &mut Vec<ItemName>) {
    names.sort_unstable();
    names.truncate(READ_MAX);
}

impl ItemInfo {
    /// The name of the item. Behind the first directory of items, the name of the directory is before it.
    #[must_use]
    pub fn name(&self) -> &str {
        let (path, name) = (self.path.as_str(), self.path.name());
        let Some(directory) = path.rsplit('/').nth(1) else { return name };
        match ShardNumber::parse(directory) {
            None | Some(ShardNumber::FIRST) => name,
            Some(_) => path.get(path.len() - name.len() - directory.len() - 1..).unwrap_or(name),
        }
    }
}

fn time(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

impl Display for WorkQueueInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}: {} items, {} failed", self.path, self.item_count, self.failed_count)?;
        for item in &self.items {
            write!(formatter, "  {}  attempts {}  ", item.name(), item.attempts)?;
            match &item.state {
                ItemState::Free => writeln!(formatter, "free")?,
                ItemState::Delayed(due) => {
                    writeln!(formatter, "due {}", humantime::format_rfc3339_seconds(*due))?
                }
                ItemState::Claimed { by, since } => {
                    let since = humantime::format_rfc3339_seconds(*since);
                    writeln!(formatter, "taken by {} since {since}", by.escape_debug())?;
                }
            }
        }
        for item in &self.failed {
            let last = item.failures.last().map(String::as_str).unwrap_or_default();
            writeln!(
                formatter,
                "  {}  attempts {}  failed: {}",
                item.path.name(),
                item.attempts,
                last.escape_debug()
            )?;
        }
        Ok(())
    }
}
