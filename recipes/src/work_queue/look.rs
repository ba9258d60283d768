//! Looks: what is read of the queue for all takers of a process.

use std::collections::{BTreeMap, BTreeSet};

use lockkeeper_core::{Changes, Deadline, NodeMonitor, Read, ReadResult, Stat};

use super::candidates::{ListedShard, QueueLook};
use super::handle::WorkQueue;
use super::shard_number::{ShardNumber, ShardStat};
use super::shards::OPEN;
use super::take::waiting;
use crate::lock::at_head::NotTaken;
use crate::value::SharedData;

/// So many shards that are not known yet are listed at the same time.
const LISTS_MAX: usize = 8;

/// What was read at one time.
struct QueueReads {
    /// The directories of the queue. Not in the layouts of other clients.
    directories: Option<Vec<String>>,
    workers: Vec<String>,
    /// Those of the shards that exist.
    lists: BTreeMap<ShardNumber, (Vec<String>, Stat)>,
}

impl<T: SharedData> WorkQueue<T> {
    /// Lists the workers and all shards, except those whose lists are kept: no item is new there. Sets
    /// watches on what may bring an item.
    ///
    /// The list of a shard has the version of its data, so it tells whether the shard was closed when it was
    /// listed.
    pub(super) async fn look(&self, monitor: &NodeMonitor, deadline: Deadline) -> Result<Changes, NotTaken> {
        let mut asked = self.shared.candidates.lock().to_list();
        let mut lists = BTreeMap::new();
        loop {
            let (QueueReads { directories, workers, lists: read }, changes) =
                self.watch_queue(monitor, &asked, deadline).await?;
            let living = match directories {
                Some(names) => names.iter().filter_map(|name| ShardNumber::parse(name)).collect(),
                None => BTreeSet::from([ShardNumber::FIRST]),
            };
            let mut open = BTreeSet::new();
            for (shard, (names, stat)) in read {
                let is_closed = self.layout.is_own() && stat.version != OPEN;
                if let Some(last) = living.last().filter(|_| is_closed) {
                    self.delete_if_over(shard, ShardStat::of(&stat), *last);
                }
                if !is_closed && living.contains(&shard) {
                    open.insert(shard);
                }
                lists.insert(shard, ListedShard { names, is_closed });
            }
            if !self.layout.is_own() {
                // Its directory may not exist yet: then it has no item.
                lists.entry(ShardNumber::FIRST).or_insert_with(ListedShard::default);
            }
            let mut candidates = self.shared.candidates.lock();
            let is_unread = |shard: &ShardNumber| !lists.contains_key(shard) && !candidates.is_kept(*shard);
            let unread: BTreeSet<ShardNumber> =
                living.iter().copied().filter(is_unread).take(LISTS_MAX).collect();
            // A node that does not exist is not watched, and an open shard must be.
            if unread.is_empty() && asked.is_subset(&living) {
                let workers = workers.into_iter().collect();
                candidates.looked(self.layout, QueueLook { living, lists, workers, now: self.now() });
                return Ok(changes);
            }
            drop(candidates);
            asked = open.union(&unread).copied().collect();
        }
    }

    async fn watch_queue(
        &self,
        monitor: &NodeMonitor,
        shards: &BTreeSet<ShardNumber>,
        deadline: Deadline,
    ) -> Result<(QueueReads, Changes), NotTaken> {
        let is_own = self.layout.is_own();
        // An item is claimed as long as there is a node with the name of its claim.
        let claimed_by = self.claims.as_ref().unwrap_or_else(|| self.workers.directory());
        let mut reads = vec![Read::Children(claimed_by.clone())];
        reads.extend(is_own.then(|| Read::Children(self.path.clone())));
        for shard in shards {
            reads.push(Read::Children(self.shard_path(*shard)?));
        }
        let queue = self.workers.clone().with_reads(&reads)?;
        let (results, changes) = tokio::select! {
            biased;
            read = queue.watch_reads(monitor) => read?,
            () = deadline.passed() => return Err(NotTaken::NotNow(waiting())),
        };
        let mut lists = results.into_iter().map(|result| match result {
            ReadResult::Children { names, stat } => Some((names, stat)),
            _ => None,
        });
        let workers = lists.next().flatten().map(|(names, _)| names).unwrap_or_default();
        let directories = is_own.then(|| lists.next().flatten().map(|(names, _)| names).unwrap_or_default());
        let lists = shards.iter().copied().zip(lists);
        let lists = lists.filter_map(|(shard, list)| Some((shard, list?))).collect();
        Ok((QueueReads { directories, workers, lists }, changes))
    }
}
