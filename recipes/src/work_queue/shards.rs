//! The directories of the items, as puts see them: which one takes items, when the next one is opened, and
//! how many items there are.

use std::future::Future;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use lockkeeper_core::{Deadline, Error, ManagerExt, Phase, Refusal, Stat, Txn, TxnError, Version, ZnodePath};
use tracing::{debug, info};

use super::decide::{NUMBER_END, ShardVerdict, is_over, judge_shard, unread_puts};
use super::error::WorkQueueError;
use super::handle::WorkQueue;
use super::name::ItemName;
use super::shard_number::{KnownShards, ShardNumber, ShardStat};
use crate::value::SharedData;

/// The version of a shard that takes puts: its data was never written.
pub(super) const OPEN: i32 = 0;

/// The data of a shard that takes no puts. The version alone decides; this is for people.
const CLOSED: &[u8] = b"closed";

/// How many shards are read at the same time.
const IN_FLIGHT_MAX: usize = 50;

/// The pause before a read is sent again.
const PAUSE: Duration = Duration::from_millis(50);

/// The items that a put needs room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) items: u32,
    /// How many items the whole queue may have then.
    pub(super) capacity: Option<u32>,
}

impl<T: SharedData> WorkQueue<T> {
    /// The directory of a shard.
    pub(super) fn shard_path(&self, shard: ShardNumber) -> Result<ZnodePath, Error> {
        match shard {
            ShardNumber::FIRST => Ok(self.items.clone()),
            shard => Ok(self.path.child(&shard.name())?),
        }
    }

    pub(super) fn item_path(&self, item: &ItemName) -> Result<ZnodePath, Error> {
        Ok(self.shard_path(item.shard())?.child(item.as_str())?)
    }

    /// The shard that takes a put. `None` in the layouts of other clients, whose only directory has the room.
    pub(super) async fn shard_for(&self, room: Room, deadline: Deadline) -> Result<Option<ZnodePath>, Error> {
        if self.layout.is_own() {
            return Ok(Some(self.shard_path(self.open_shard(room, deadline).await?)?));
        }
        let Some(capacity) = room.capacity else { return Ok(None) };
        let Some(stat) = self.stat(&self.items, deadline).await? else { return Ok(None) };
        let stat = ShardStat::of(&stat);
        if stat.made >= NUMBER_END {
            return Err(Error::SequenceExhausted { path: self.manager().whole_path(&self.items) });
        }
        match stat.items.saturating_add(room.items) > capacity {
            true => Err(WorkQueueError::Full { path: self.whole_path(), items: stat.items, capacity }.into()),
            false => Ok(None),
        }
    }

    /// The transaction of a put, with the check that the shard is open still.
    pub(super) fn checked(&self, txn: Txn<'static>, shard: Option<&ZnodePath>) -> Txn<'static> {
        shard.into_iter().fold(txn, |txn, shard| txn.check(shard, OPEN))
    }

    /// Whether the shard of a put was refused: another client has closed it, or deleted it.
    pub(super) fn is_of_shard(&self, shard: Option<&ZnodePath>, error: &TxnError) -> bool {
        let TxnError::Refused { path, refusal: Refusal::BadVersion | Refusal::NoNode, .. } = error else {
            return false;
        };
        shard.is_some_and(|shard| *path == self.manager().whole_path(shard))
    }

    /// Returns the last shard, which is open, and makes the next one if the items have no room. At most one
    /// request as long as the last one that this process knows is open and has room.
    ///
    /// Only hints: the transaction of the put checks that the shard is open still.
    async fn open_shard(&self, room: Room, deadline: Deadline) -> Result<ShardNumber, Error> {
        let mut known = {
            let mut known = self.shared.shards.lock();
            if let Some(last) = known.take_unread(room.items) {
                return Ok(last);
            }
            *known
        };
        // Whether all shards were looked for since something was found to have changed.
        let mut is_fresh = false;
        loop {
            let path = self.shard_path(known.last)?;
            let stat = self.stat(&path, deadline).await?;
            let seen = stat.as_ref().map(ShardStat::of);
            let verdict = seen.map(|seen| judge_shard(seen, room.items, self.shard_size));
            let items = known.others.saturating_add(seen.map_or(0, |seen| seen.items));
            match (verdict, room.capacity) {
                (Some(ShardVerdict::Open | ShardVerdict::Full), Some(capacity))
                    if items.saturating_add(room.items) > capacity =>
                {
                    // The others may have fewer by now.
                    if known.others == 0 || is_fresh {
                        return Err(WorkQueueError::Full { path: self.whole_path(), items, capacity }.into());
                    }
                    (known, is_fresh) = (self.find_shards(deadline).await?, true);
                    continue;
                }
                (Some(ShardVerdict::Open), capacity) => {
                    let left = |most: u32, seen: u32| most.saturating_sub(seen).saturating_sub(room.items);
                    let in_shard = seen.map_or(0, |seen| left(self.shard_size, seen.items));
                    let in_queue = capacity.map_or(0, |capacity| left(capacity, items));
                    known.unread = unread_puts(in_queue, in_shard);
                    return Ok(self.know(known).last);
                }
                (Some(ShardVerdict::Full), _) => self.close(known.last).await?,
                (Some(ShardVerdict::Closed), _) if is_fresh => self.open_behind(known.last, &path).await?,
                (Some(ShardVerdict::Closed) | None, _) if !is_fresh => {
                    (known, is_fresh) = (self.find_shards(deadline).await?, true);
                    continue;
                }
                // It was deleted in between.
                _ => {}
            }
            is_fresh = false;
            if deadline.has_passed() {
                let phase = Phase::Recipe("looking for the directory that takes items".into());
                return Err(Error::Timeout { phase, path: self.whole_path(), waited: deadline.waited() });
            }
        }
    }

    /// Looks for the last shard, and counts the items of the others. Creates the first one if there is none.
    async fn find_shards(&self, deadline: Deadline) -> Result<KnownShards, Error> {
        let mut shards = self.shards(deadline).await?;
        let Some(last) = shards.pop() else {
            // Whatever was listed before is another queue.
            self.shared.candidates.lock().forget_lists();
            self.manager().znodes().ensure(&self.items).await?;
            return Ok(self.know(KnownShards::default()));
        };
        let stat = |shard: ShardNumber| async move {
            let path = self.shard_path(shard)?;
            Ok::<_, Error>(self.stat(&path, deadline).await?.map(|stat| (shard, stat)))
        };
        let stats = stream::iter(shards).map(stat).buffer_unordered(IN_FLIGHT_MAX);
        let stats: Vec<(ShardNumber, Stat)> =
            stats.try_filter_map(async |stat| Ok(stat)).try_collect().await?;
        let mut others = 0_u32;
        for (shard, stat) in stats {
            let seen = ShardStat::of(&stat);
            others = others.saturating_add(seen.items);
            self.delete_if_over(shard, seen, last);
        }
        Ok(self.know(KnownShards { last, others, unread: 0 }))
    }

    /// The shard of a put was refused: it is not the last one any more.
    pub(super) fn shard_was_refused(&self) {
        self.shared.shards.lock().unread = 0;
    }

    fn know(&self, known: KnownShards) -> KnownShards {
        *self.shared.shards.lock() = known;
        known
    }

    /// All shards that exist, in their order.
    pub(super) async fn shards(&self, deadline: Deadline) -> Result<Vec<ShardNumber>, Error> {
        if !self.layout.is_own() {
            return Ok(vec![ShardNumber::FIRST]);
        }
        let znodes = self.manager().znodes();
        let names = repeated(deadline, || znodes.children(&self.path)).await?;
        let mut shards: Vec<ShardNumber> =
            names.iter().flatten().filter_map(|name| ShardNumber::parse(name)).collect();
        shards.sort_unstable();
        Ok(shards)
    }

    async fn stat(&self, path: &ZnodePath, deadline: Deadline) -> Result<Option<Stat>, Error> {
        let znodes = self.manager().znodes();
        repeated(deadline, || znodes.exists(path)).await
    }

    /// Closes a shard, and opens the next one. If the answer is lost, or another client was faster, the next
    /// look shows it.
    async fn close(&self, shard: ShardNumber) -> Result<(), Error> {
        let path = self.shard_path(shard)?;
        let Some(next) = shard.next() else {
            return Err(Error::SequenceExhausted { path: self.manager().whole_path(&path) });
        };
        let next = self.shard_path(next)?;
        let close = || self.manager().txn().set(&path, CLOSED, OPEN);
        match close().create(&next, b"").commit().await {
            // Another client has made a directory of that name.
            Err(TxnError::Refused { refusal: Refusal::NodeExists, .. }) => {
                changed(&path, close().check(&next, Version::Any).commit().await.map(drop))
            }
            closed => changed(&path, closed.map(drop)),
        }
    }

    /// Opens the shard behind a closed one that is the last: another client has written its data, or has
    /// deleted those behind it.
    async fn open_behind(&self, shard: ShardNumber, path: &ZnodePath) -> Result<(), Error> {
        let Some(next) = shard.next() else {
            return Err(Error::SequenceExhausted { path: self.manager().whole_path(path) });
        };
        let txn = self.manager().txn().check(path, Version::Any).create(self.shard_path(next)?, b"");
        changed(path, txn.commit().await.map(drop))
    }

    /// Deletes a shard that is empty for ever, in the background. If that fails, a later look does it.
    pub(super) fn delete_if_over(&self, shard: ShardNumber, seen: ShardStat, last: ShardNumber) {
        if !is_over(shard, seen, last) {
            return;
        }
        let Ok(path) = self.shard_path(shard) else { return };
        let manager = self.manager().clone();
        self.manager().spawn(async move {
            match manager.znodes().delete_at(&path, seen.version).await {
                Ok(_) => debug!(%path, "a directory of items is used up"),
                Err(error) => debug!(%path, %error, "an empty directory of items stays"),
            }
        });
    }
}

/// A change of the shards is looked for, whatever its answer is, unless no client may make it.
fn changed(path: &ZnodePath, answer: Result<(), TxnError>) -> Result<(), Error> {
    match answer {
        Ok(()) => {
            info!(%path, "the items have another directory from here on");
        }
        Err(TxnError::Refused {
            refusal: Refusal::BadVersion | Refusal::NoNode | Refusal::NodeExists,
            ..
        }) => {}
        Err(error) if error.outcome_unknown() || error.is_transient() => {
            debug!(%path, %error, "looking whether the items have another directory");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Sends a read until it is answered.
async fn repeated<R, F: Future<Output = Result<R, Error>>>(
    deadline: Deadline,
    read: impl Fn() -> F,
) -> Result<R, Error> {
    loop {
        match read().await {
            Err(error) if error.is_transient() && !deadline.has_passed() => {
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
