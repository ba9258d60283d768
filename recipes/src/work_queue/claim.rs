//! The claim of one item by a transaction, and the transactions that change an item that nobody has.

use lockkeeper_core::{Deadline, Error, Refusal, Stat, Txn, TxnError, TxnResult, ZnodePath, Zxid, count_of};
use tracing::{debug, info, warn};

use super::decide::{ClaimNode, Verdict, judge, judge_free};
use super::error::WorkQueueError;
use super::handle::WorkQueue;
use super::item_claim::ItemClaim;
use super::item_layout::NodeData;
use super::name::ItemName;
use super::record::RecordedTxn;
use super::stored::StoredItem;
use super::worker::QueueWorker;
use crate::lock::at_head::NotTaken;
use crate::value::SharedData;

/// How long a process leaves an item alone whose data it could not read, in milliseconds.
const UNREADABLE_AGAIN: i64 = 60_000;

/// The pause before a process claims an item again whose last claim it is still deleting, in milliseconds.
const LEAVING_AGAIN: i64 = 50;

/// An item that was claimed.
pub(super) struct Claimed<T> {
    pub(super) stored: StoredItem,
    pub(super) value: T,
    /// The transaction of the claim.
    pub(super) claimed_at: Zxid,
    /// The version of the item that this claim has made.
    pub(super) version: i32,
}

/// The outcome of a try to claim an item.
pub(super) enum ClaimTry<T> {
    Claimed(Claimed<T>),
    /// Another taker was faster: others may be at the same place of the queue.
    Collision,
    /// The same, since the item was read. What was read with it may be old as well.
    LateCollision,
    /// Nobody can have the item now: go on to the next one.
    Next,
}

/// An item as it was read.
struct ReadItem<'a> {
    name: &'a ItemName,
    path: &'a ZnodePath,
    stat: &'a Stat,
    /// How many looks were recorded when it was read.
    looks: u64,
}

impl<T: SharedData> WorkQueue<T> {
    /// Claims the item if it is free.
    pub(super) async fn claim(
        &self,
        worker: &mut QueueWorker,
        name: &ItemName,
        deadline: Deadline,
    ) -> Result<ClaimTry<T>, NotTaken> {
        let path = self.item_path(name)?;
        let Some((data, stat)) = self.read_item(worker, name, deadline).await? else {
            self.shared.candidates.lock().missed(name);
            return Ok(ClaimTry::Collision);
        };
        let looks = self.shared.candidates.lock().looks();
        let item = ReadItem { name, path: &path, stat: &stat, looks };
        let stored = match self.layout.decode(name, &data, stat.version) {
            NodeData::Item(stored) => stored,
            NodeData::Several(values) => {
                self.split(worker, &item, &values).await?;
                return Ok(ClaimTry::Next);
            }
            NodeData::Unreadable(cause) => return Err(self.unreadable(&item, cause.to_owned()).into()),
        };
        if !self.is_free(&item, &stored, deadline).await? {
            return Ok(ClaimTry::Collision);
        }
        match judge_free(&stored, self.now(), self.attempts_max) {
            Verdict::NotDue(due) => {
                self.shared.candidates.lock().met_delay(name.clone(), due);
                return Ok(ClaimTry::Next);
            }
            Verdict::Exhausted => {
                self.move_exhausted(worker, &item, &stored).await?;
                return Ok(ClaimTry::Next);
            }
            _ => {}
        }
        let value = match T::decode(&stored.value) {
            Ok(Some(value)) => value,
            Ok(None) => return Err(self.unreadable(&item, "no data".to_owned()).into()),
            Err(cause) => return Err(self.unreadable(&item, cause.to_string()).into()),
        };
        if let Some(claim) = self.claim_path(name)? {
            let Some(claim) = ItemClaim::begin(&worker.hold, claim, name, &self.shared.free)? else {
                // An earlier claim of this process is being deleted.
                let again = self.now().saturating_add(LEAVING_AGAIN);
                self.shared.candidates.lock().met_delay(name.clone(), again);
                return Ok(ClaimTry::Next);
            };
            worker.claim = Some(claim);
        }
        let stored = stored.claimed_by(worker.name());
        let Some(claimed_at) = self.commit_claim(worker, &item, &stored, deadline).await? else {
            return Ok(ClaimTry::LateCollision);
        };
        let version = stat.version.wrapping_add(1);
        Ok(ClaimTry::Claimed(Claimed { stored, value, claimed_at, version }))
    }

    /// Returns the transaction of the claim. `None` if another worker was faster.
    async fn commit_claim(
        &self,
        worker: &mut QueueWorker,
        item: &ReadItem<'_>,
        stored: &StoredItem,
        deadline: Deadline,
    ) -> Result<Option<Zxid>, NotTaken> {
        let (path, data, process) = (item.path, self.layout.encode(stored), self.workers.node_data());
        let QueueWorker { hold, record, claim, .. } = &mut *worker;
        let committed = record
            .commit(hold, |txn| {
                let txn = txn.set(path, data, item.stat.version);
                claim.iter().fold(txn, |txn, claim| claim.create(txn, process))
            })
            .await;
        match committed {
            Ok(committed) => {
                worker.set_claim_in_doubt(false);
                let claimed_at = match committed {
                    RecordedTxn::Now(results) => results.first().and_then(|result| match result {
                        TxnResult::Written { stat, .. } => Some(stat.mzxid),
                        _ => None,
                    }),
                    RecordedTxn::Before => None,
                };
                match claimed_at {
                    Some(claimed_at) => Ok(Some(claimed_at)),
                    None => match self.read(path, deadline).await? {
                        Some((_, stat)) => Ok(Some(stat.mzxid)),
                        // It was deleted by hand. With the worker its claim ends.
                        None => Err(NotTaken::Restart),
                    },
                }
            }
            // Another client has touched the record: this worker commits nothing more.
            Err(TxnError::Refused { .. }) if worker.record.is_broken() => Err(NotTaken::Restart),
            Err(error) if self.is_without_directory(item, &error) => {
                worker.claim_ended();
                Ok(self.make_claims_directory().await.map(|()| None)?)
            }
            Err(TxnError::Refused {
                refusal: refusal @ (Refusal::BadVersion | Refusal::NoNode | Refusal::NodeExists),
                ..
            }) => {
                worker.claim_ended();
                debug!(%path, "another worker was faster");
                if refusal == Refusal::NodeExists {
                    self.met_claim(item, item.name.as_str());
                }
                Ok(None)
            }
            // With the worker a claim ends that may be applied.
            Err(error) if error.is_lost() || error.outcome_unknown() => Err(NotTaken::Restart),
            Err(error) => Err(NotTaken::Failed(error.into())),
        }
    }

    /// Moves an item to the failed ones whose last taker was lost. Another process may be faster.
    async fn move_exhausted(
        &self,
        worker: &mut QueueWorker,
        item: &ReadItem<'_>,
        stored: &StoredItem,
    ) -> Result<(), NotTaken> {
        let failed = self.failed_directory()?;
        let target = failed.child(&item.name.among_failed()).map_err(Error::from)?;
        let data = stored.clone().failed("the last taker was lost", self.now()).encode();
        let path = self.manager().whole_path(item.path);
        info!(%path, attempts = stored.attempts, "an item failed too often");
        match self.commit_free(worker, item, |txn| txn.create(&target, data)).await {
            Err(TxnError::Refused { path: refused, refusal: Refusal::NoNode, .. })
                if refused == self.manager().whole_path(&target) =>
            {
                Ok(self.create_directory(&failed).await?)
            }
            changed => self.changed_free(worker, item, changed).await,
        }
    }

    /// Makes an item of each value of a node that has several, at the end of the queue.
    async fn split(
        &self,
        worker: &mut QueueWorker,
        item: &ReadItem<'_>,
        values: &[Vec<u8>],
    ) -> Result<(), NotTaken> {
        let prefix = self.layout.prefix_like(item.name.as_str());
        let prefix = self.items.child(&prefix).map_err(Error::from)?;
        let bytes = values.iter().map(Vec::len).max().unwrap_or_default();
        if let Err(error) = crate::limits::check("items", count_of(values.len()), &prefix, &vec![0; bytes]) {
            return Err(self.unreadable(item, error.to_string()).into());
        }
        debug!(path = %item.path, items = values.len(), "making an item of each value of a node");
        let items = values.iter().map(|value| self.layout.encode(&StoredItem::new(value.clone())));
        let write = |txn: Txn<'static>| items.fold(txn, |txn, item| txn.create_sequential(&prefix, item));
        let changed = self.commit_free(worker, item, write).await;
        self.shared.candidates.lock().forget_look();
        self.changed_free(worker, item, changed).await
    }

    /// Deletes an item that nobody has, and commits these writes with it.
    async fn commit_free(
        &self,
        worker: &mut QueueWorker,
        item: &ReadItem<'_>,
        writes: impl FnOnce(Txn<'static>) -> Txn<'static>,
    ) -> Result<RecordedTxn, TxnError> {
        let claim = self.claim_path(item.name).map_err(TxnError::Failed)?;
        let commit = |txn: Txn<'static>| {
            // Refused if any client has a claim.
            let txn = claim.iter().fold(txn, |txn, claim| txn.create(claim, b"").delete(claim, 0));
            writes(txn.delete(item.path, item.stat.version))
        };
        worker.record.commit(&worker.hold, commit).await
    }

    async fn changed_free(
        &self,
        worker: &QueueWorker,
        item: &ReadItem<'_>,
        changed: Result<RecordedTxn, TxnError>,
    ) -> Result<(), NotTaken> {
        match changed {
            Err(TxnError::Refused { .. }) if worker.record.is_broken() => Err(NotTaken::Restart),
            Err(error) if self.is_without_directory(item, &error) => Ok(self.make_claims_directory().await?),
            Err(TxnError::Refused { refusal: Refusal::NodeExists, .. }) if self.claims.is_some() => {
                self.met_claim(item, item.name.as_str());
                Ok(())
            }
            Ok(_) | Err(TxnError::Refused { .. }) => Ok(()),
            Err(error) if error.is_lost() => Err(NotTaken::Restart),
            Err(error) => Err(NotTaken::Failed(error.into())),
        }
    }

    /// Whether a claim was refused because its directory does not exist: another client has deleted it.
    fn is_without_directory(&self, item: &ReadItem<'_>, error: &TxnError) -> bool {
        let TxnError::Refused { path, refusal: Refusal::NoNode, .. } = error else { return false };
        let is_claim = |claim| *path == self.manager().whole_path(claim);
        self.claim_path(item.name).ok().flatten().as_ref().is_some_and(is_claim)
    }

    /// Whether no worker has the item. In the layouts of other clients, the transaction of the claim decides.
    async fn is_free(
        &self,
        item: &ReadItem<'_>,
        stored: &StoredItem,
        deadline: Deadline,
    ) -> Result<bool, NotTaken> {
        let Some(claim) = &stored.claim else { return Ok(true) };
        let is_listed = self.shared.candidates.lock().has_worker(claim);
        let mut known = if is_listed { ClaimNode::Exists } else { ClaimNode::Unread };
        loop {
            match judge(stored, known) {
                Verdict::Free => return Ok(true),
                Verdict::Claimed | Verdict::NotDue(_) | Verdict::Exhausted => {
                    self.met_claim(item, claim);
                    return Ok(false);
                }
                Verdict::ReadClaim => {
                    let node = self.workers.directory().child(claim).map_err(Error::from)?;
                    known = match self.read(&node, deadline).await? {
                        Some(_) => ClaimNode::Exists,
                        None => ClaimNode::Missing,
                    };
                }
            }
        }
    }

    /// The item has this claim, as it was seen after the item was read.
    fn met_claim(&self, item: &ReadItem<'_>, claim: &str) {
        if !self.shared.candidates.lock().met_claim_after(item.looks, item.name, claim) {
            // The taker that looked may wait already.
            self.shared.free.announce();
        }
    }

    /// The item stays in its place, and this process leaves it alone for a while.
    fn unreadable(&self, item: &ReadItem<'_>, cause: String) -> Error {
        let path = self.manager().whole_path(item.path);
        warn!(%path, %cause, "the data of an item is no value of its queue");
        let again = self.now().saturating_add(UNREADABLE_AGAIN);
        self.shared.candidates.lock().met_delay(item.name.clone(), again);
        WorkQueueError::Unreadable { path, cause }.into()
    }
}
