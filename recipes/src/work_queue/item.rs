use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::time::SystemTime;

use lockkeeper_core::{
    BootInstant, CreateMode, Error, FencingToken, Hold, HoldExt, Lost, ManagerExt, Refusal, ReleaseError,
    Txn, TxnError, Version, ZnodePath,
};
use tracing::{debug, info};

use super::claim::Claimed;
use super::decide::{Verdict, judge_free};
use super::handle::WorkQueue;
use super::item_layout::{ItemLayout, PutOptions};
use super::name::ItemName;
use super::shared::FreedItem;
use super::stored::StoredItem;
use super::worker::QueueWorker;
use crate::value::SharedData;

/// An item of a [`WorkQueue`](super::WorkQueue) that this process has taken: nobody else has it while it is
/// valid.
///
/// Do the work, and end it with [`done`](Self::done) or [`done_with`](Self::done_with). An item that is
/// dropped, [released](Self::release) or lost before that is free again at its old place, for whichever
/// process is next.
///
/// It has the methods of a [`Guard`](crate::Guard): see there what a drop and a leak mean.
#[must_use = "an item that is not kept is free again at once"]
#[clippy::has_significant_drop]
pub struct WorkItem<T> {
    // Drop order: the claim ends before the takers of this process are told.
    worker: QueueWorker,
    freed: FreedItem,
    path: ZnodePath,
    /// What the item has as long as nobody else claims it.
    version: Version,
    layout: ItemLayout,
    items: ZnodePath,
    token: FencingToken,
    value: T,
    stored: StoredItem,
    failed: ZnodePath,
    attempts_max: Option<u32>,
}

impl<T> WorkItem<T> {
    pub(super) fn new(
        worker: QueueWorker,
        name: &ItemName,
        freed: FreedItem,
        claimed: Claimed<T>,
        queue: &WorkQueue<T>,
    ) -> Result<Self, Error>
    where
        T: SharedData,
    {
        worker.hold.report_loss();
        let Claimed { stored, value, claimed_at, version } = claimed;
        let generation = worker.hold.fencing_token().generation();
        let token =
            FencingToken::new(u64::from_ne_bytes(claimed_at.get().to_ne_bytes())).in_generation(generation);
        let path = queue.item_path(name)?;
        let failed = queue.failed_directory()?.child(&name.among_failed())?;
        let (layout, items, attempts_max) = (queue.layout, queue.items.clone(), queue.attempts_max);
        let version = if layout.is_own() { Version::Any } else { Version::from(version) };
        Ok(Self { worker, freed, path, version, layout, items, token, value, stored, failed, attempts_max })
    }

    /// The value that was put.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.value
    }

    /// How often the item was taken, this time included: above 1 after a taker was lost or gave up.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.stored.attempts
    }

    /// The path of the item, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Whether no other process can have taken the item yet. Costs no request.
    ///
    /// It reads the clock at each call: after a pause that was too long, the first call returns false.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.hold().is_valid()
    }

    /// As [`is_valid`](Self::is_valid), with the reason of the loss.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the item is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.hold().check()
    }

    /// The instant until which no other process can take the item because the session expired, as far as is
    /// known now: see [`Hold::valid_until`].
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.hold().valid_until()
    }

    /// Resolves when the item is lost: in a running process, before another process can take it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves with the same loss.
    pub async fn lost(&self) -> Lost {
        self.hold().lost().await
    }

    /// Runs `work` as long as the item is valid. It is checked before each poll: once it is lost, `work` is
    /// dropped.
    ///
    /// # Errors
    ///
    /// [`Lost`] if the item was lost before `work` was done. The effects of `work` until then remain: give
    /// its writes the [fencing token](Self::fencing_token), or make them by [`done_with`](Self::done_with).
    ///
    /// # Cancel safety
    ///
    /// A drop of the future drops `work`. The item stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.hold().run(work).await
    }

    /// Starts writes that are committed only while this process has the item. This is exact: no clock is
    /// involved. They are not those that [end](Self::done_with) the item.
    pub fn txn(&self) -> Txn<'_> {
        self.hold().txn()
    }

    /// The fencing token: greater than that of every earlier taker of this item.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// The hold of the claim, for code that works with the holds of several guards. Its own token is that of
    /// the worker: take [`fencing_token`](Self::fencing_token).
    pub fn hold(&self) -> &Hold {
        &self.worker.hold
    }

    /// Ends the item: it is done, and never taken again. One round trip.
    ///
    /// # Errors
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Session loss
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Cancel safety
    ///
    /// As [`done_with`](Self::done_with).
    pub async fn done(self) -> Result<(), Error> {
        self.done_with(|txn| txn).await
    }

    /// As [`done`](Self::done), and commits `writes` in the same transaction: either the item is done and all
    /// writes are applied, or nothing. So these writes are applied exactly once for the item, whatever
    /// crashes.
    ///
    /// A request without an answer is sent again: it cannot be applied twice. The record of the worker tells
    /// whether it was, also after the end of the session.
    ///
    /// # Errors
    ///
    /// [`Error::NotCommitted`] if a write was refused, or the item is lost: nothing was written, and the item
    /// is free again. [`Deleted`](super::WorkQueueError::Deleted) if the item was deleted by hand.
    /// [`Error::Unknown`] if no server could be asked for the outcome within twice the manager's operation
    /// timeout.
    ///
    /// # Session loss
    ///
    /// The outcome of a transaction without an answer is found out in the next session.
    ///
    /// # Cancel safety
    ///
    /// The transaction of a dropped call is applied, or it is not. The item is given up in any case, and free
    /// again if it is not done.
    pub async fn done_with(self, writes: impl FnOnce(Txn<'static>) -> Txn<'static>) -> Result<(), Error> {
        // Of a dropped call the claim ends before the takers of this process are told.
        let Self { freed, mut worker, path, version, .. } = self;
        // The delete is last, so that the caller's writes have their own indexes.
        match worker.commit_end(|txn| writes(txn).delete(&path, version)).await {
            Ok(()) => {
                worker.hold.defer_loss_report();
                let manager = worker.hold.manager().clone();
                freed.done(&manager, worker);
                Ok(())
            }
            Err(error) => {
                let error = worker.end_error(&path, error);
                // The claim ends before the takers of this process are told.
                drop(worker);
                drop(freed);
                Err(error)
            }
        }
    }

    /// Gives the item up until this time, by the clock of the servers. From then on it is free at its old
    /// place. One round trip.
    ///
    /// # Errors
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Session loss
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Cancel safety
    ///
    /// As [`done_with`](Self::done_with).
    pub async fn retry_at(self, time: SystemTime) -> Result<(), Error> {
        let (due, path, version) = (Some(millis(time)), self.path.clone(), self.version);
        let data = self.layout.encode(&StoredItem { due, ..self.stored.clone() });
        match self.layout {
            ItemLayout::Own => self.give_up(|txn| txn.set(&path, data, version)).await,
            // The time is in the name.
            ItemLayout::CuratorDelay => {
                let prefix = self.layout.prefix(PutOptions { due, ..PutOptions::default() }, 0);
                let next = self.items.child(&prefix)?;
                self.give_up(|txn| txn.delete(&path, version).create_sequential(&next, data)).await
            }
            layout => Err(layout.has_no("time", "release the item, or use another layout")),
        }
    }

    /// Gives the item up, and records why. After as many attempts as the queue
    /// [allows](super::WorkQueue::with_max_attempts) it moves to the failed items, with its reasons;
    /// otherwise it is free again at its old place. One round trip. Returns whether it has moved.
    ///
    /// The last ten reasons are kept, of each 256 bytes.
    ///
    /// # Errors
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Session loss
    ///
    /// As [`done_with`](Self::done_with).
    ///
    /// # Cancel safety
    ///
    /// As [`done_with`](Self::done_with).
    pub async fn fail(self, reason: &str) -> Result<bool, Error> {
        let now = self.hold().manager().estimated_server_time().unwrap_or_default();
        let stored = StoredItem { due: None, ..self.stored.clone().failed(reason, now) };
        if judge_free(&stored, now, self.attempts_max) != Verdict::Exhausted {
            let (path, version, is_own) = (self.path.clone(), self.version, self.layout.is_own());
            if !is_own {
                let path = self.hold().manager().whole_path(&path);
                info!(%path, attempts = stored.attempts, reason, "an item failed");
            }
            let write = |txn: Txn<'static>| match is_own {
                true => txn.set(&path, stored.encode(), version),
                // The data has no place for the reason.
                false => txn.check(&path, version),
            };
            self.give_up(write).await?;
            return Ok(false);
        }
        let (target, data, manager) = (self.failed.clone(), stored.encode(), self.hold().manager().clone());
        if let Some(directory) = target.parent() {
            // Nearly always it exists; this call is rare.
            match manager.znodes().create(&directory, b"", CreateMode::Persistent).await {
                Ok(_) | Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let path = manager.whole_path(&self.path);
        info!(%path, attempts = stored.attempts, reason, "an item failed too often");
        self.done_with(|txn| txn.create(target, data)).await?;
        Ok(true)
    }

    /// Commits these writes, and ends the claim with its worker: other processes know the item as claimed for
    /// as long as the node of that exists.
    async fn give_up(self, writes: impl FnOnce(Txn<'static>) -> Txn<'static>) -> Result<(), Error> {
        let Self { freed, mut worker, path, .. } = self;
        let committed = worker.commit_end(writes).await;
        if let Err(error) = committed {
            return Err(worker.end_error(&path, error));
        }
        let QueueWorker { hold, record, claim, .. } = worker;
        if let Err(error) = hold.release().await {
            debug!(%path, %error, "the release of an item is not confirmed");
        }
        drop((record, claim, freed));
        Ok(())
    }

    /// Gives the item up, and waits until it is free again at its old place. One round trip.
    ///
    /// # Errors
    ///
    /// As [`Hold::release`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<(), ReleaseError> {
        let Self { mut worker, freed, path, .. } = self;
        if worker.claim.is_some() {
            match worker.commit_end(|txn| txn).await {
                // Refused: another client has deleted the claim.
                Ok(()) | Err(TxnError::Refused { .. }) => {}
                Err(TxnError::Lost(lost)) => return Err(ReleaseError::Lost(lost)),
                Err(error) => {
                    let (path, cause) = (worker.hold.manager().whole_path(&path), error.to_string());
                    return Err(ReleaseError::Unconfirmed { path, cause });
                }
            }
        }
        let QueueWorker { hold, record, claim, .. } = worker;
        let released = hold.release().await;
        drop((record, claim, freed));
        released
    }
}

impl<T: Debug> Debug for WorkItem<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WorkItem")
            .field("path", &self.path)
            .field("value", &self.value)
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}

/// A time of the servers, in milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
