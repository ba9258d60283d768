//! A contender's node of this session.

use std::fmt::{self, Debug, Formatter};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::select;
use tokio::sync::Notify;

use super::loss_notice::{Listener, LossNotice};
use super::node_flags::NodeFlags;
use super::own_watch::{ArmedWatch, OwnWatch, SharedWatch, armed};
use super::{Origin, Reservation, Session};
use crate::error::{LossReason, Lost};
use crate::time::boot::BootInstant;
use crate::wire::Watch;

/// A contender's node of this session, waiting or held, and what is known about its existence.
///
/// A hold that is lost stays lost, whatever is learned later. The clock, the session and the watch may imply
/// a loss that is not recorded yet. A question reads it: [`verdict`](Self::verdict). A deed
/// [settles](Self::settle) it: the loss is recorded, its holder and its queue are told, and the node of a
/// hold whose lease ran out is deleted. What a question has seen stays until it is settled.
pub(crate) struct OwnedNode {
    number: u64,
    path: Arc<str>,
    session: Session,
    flags: NodeFlags<BootInstant>,
    /// A task of the session awaits the watch on the node.
    has_deletion_watch: AtomicBool,
    /// Wakes the tasks that wait in [`until`](OwnedNode::until).
    changed: Notify,
    /// Why the node is lost, and when that was detected. Given up when the node is neither held nor waiting
    /// any more, before its delete is sent: its deletion is no loss then.
    loss: LossNotice<(LossReason, BootInstant), Lost>,
    /// A watch on the node itself, if one was set.
    watch: OwnWatch,
    /// A revoke message was seen.
    revoke_requested: AtomicBool,
    /// The connection that created the node, if known.
    created_on: Option<u64>,
    /// Whether the owner of the node was seen to be this session.
    is_owner_seen: AtomicBool,
    /// The data of the node.
    data: Arc<[u8]>,
}

/// Called once, with the loss of a hold.
pub(crate) type OnLoss = Listener<Lost>;

impl OwnedNode {
    pub(super) fn new(
        number: u64,
        path: Arc<str>,
        session: Session,
        origin: Origin,
        data: Arc<[u8]>,
    ) -> Self {
        Self {
            number,
            path,
            session,
            flags: NodeFlags::new(),
            has_deletion_watch: AtomicBool::new(false),
            changed: Notify::new(),
            loss: LossNotice::new(),
            watch: OwnWatch::default(),
            revoke_requested: AtomicBool::new(false),
            created_on: origin.created_on,
            is_owner_seen: AtomicBool::new(origin.is_owner_seen),
            data,
        }
    }

    pub(super) fn created_on(&self) -> Option<u64> {
        self.created_on
    }

    pub(super) fn is_owner_seen(&self) -> bool {
        self.is_owner_seen.load(Ordering::Acquire)
    }

    pub(super) fn set_owner_seen(&self) {
        self.is_owner_seen.store(true, Ordering::Release);
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its name in its directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Its number within the session.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_held(&self) -> bool {
        self.flags.is_held()
    }

    /// Records that the node is neither held nor waiting any more. Must be called before its delete is sent.
    pub(crate) fn set_given_up(&self) {
        self.loss.set_given_up();
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.loss.is_given_up()
    }

    /// A transaction that replaces the node is sent: from now on it may have deleted the node.
    pub(crate) fn begin_replacing(&self) {
        self.settle_event(|_| self.flags.set_replacing(true));
    }

    pub(crate) fn end_replacing(&self) {
        self.flags.set_replacing(false);
    }

    /// Records that a transaction that replaces the node may be applied at any time.
    pub(crate) fn set_replaced_in_doubt(&self) {
        self.flags.set_replaced_in_doubt();
    }

    /// The reason of the loss if the node does not exist.
    pub(crate) fn missing_reason(&self) -> LossReason {
        match self.flags.is_replaced_in_doubt() || !self.session.is_connection_verified() {
            true => LossReason::NodeMissing,
            false => LossReason::NodeDeleted,
        }
    }

    /// The node was seen not to exist. That is a loss unless a request of this session may have deleted it.
    pub(crate) fn on_missing(&self) {
        if self.is_wanted() {
            self.lose(self.missing_reason());
        }
    }

    /// Whether it is a loss if the node does not exist.
    fn is_wanted(&self) -> bool {
        !self.is_given_up() && !self.flags.is_replacing()
    }

    /// The delete of a release found no node: another client had deleted it before.
    pub(crate) fn was_deleted_before(&self) -> Lost {
        let reason = self.missing_reason();
        self.end_by(reason);
        let deleted = self.loss_by(reason);
        match self.loss.tell(deleted.clone()) {
            true => deleted,
            // The hold was lost, and the loss reported, before it was given up.
            false => self.recorded().err().unwrap_or(deleted),
        }
    }

    pub(super) fn mark_held(&self, expirations: u64, now: BootInstant) {
        self.flags.mark_held(expirations, now);
    }

    /// Calls `listener`, which replaces an earlier one, when the hold is lost; at once if it is lost already.
    pub(crate) fn on_loss(&self, listener: OnLoss) {
        self.loss.listen(listener, |(reason, _)| self.loss_by(*reason));
    }

    pub(super) fn begin_txn(&self) {
        self.flags.begin_txn();
    }

    pub(super) fn settle_txn(&self) {
        self.flags.settle_txn();
    }

    /// Whether no transaction in flight rests on the node.
    pub(crate) fn is_settled(&self) -> bool {
        self.flags.is_settled()
    }

    /// Whether exactly one transaction in flight rests on the node.
    pub(crate) fn rests_once(&self) -> bool {
        self.flags.rests_once()
    }

    pub(crate) fn set_revoke_requested(&self) {
        self.revoke_requested.store(true, Ordering::Release);
    }

    pub(crate) fn is_revoke_requested(&self) -> bool {
        self.revoke_requested.load(Ordering::Acquire)
    }

    pub(super) fn is_held_since(&self, instant: BootInstant) -> bool {
        self.flags.is_held_since(&instant)
    }

    /// Returns `false` if a task awaits its watch already.
    pub(super) fn begin_deletion_watch(&self) -> bool {
        !self.has_deletion_watch.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_deletion_watch(&self) {
        self.has_deletion_watch.store(false, Ordering::Release);
    }

    pub(crate) fn watch(&self) -> Option<SharedWatch> {
        self.watch.get()
    }

    pub(crate) fn set_watch(&self, watch: Watch, reservation: Reservation) {
        let replaced = self.settle_event(|here| std::mem::replace(here, armed(watch, reservation)));
        drop(replaced);
    }

    /// Drops the watch: it may not have survived a reconnect.
    pub(crate) fn forget_watch(&self) {
        let forgotten = self.settle_event(Option::take);
        drop(forgotten);
    }

    /// Whether a watch is set that has not fired.
    pub(crate) fn has_watch(&self) -> bool {
        self.watch.is_armed()
    }

    /// Ends the hold or the wait. Returns whether this call was the first to do so.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        let first = self.end_by(reason);
        if first {
            self.loss.tell_holder(|| self.loss_by(reason));
        }
        first
    }

    /// As if another thread were in the middle of [`lose`](Self::lose): the loss is recorded, and no queue
    /// has noticed it.
    #[cfg(test)]
    pub(crate) fn record_loss(&self, reason: LossReason) {
        self.loss.record((reason, self.session.now()));
    }

    fn end_by(&self, reason: LossReason) -> bool {
        let first = self.loss.record((reason, self.session.now()));
        if first {
            self.report_end();
        }
        first
    }

    fn report_end(&self) {
        // A lost node needs no confirmation.
        self.session.unregister(self);
        if let Some(table) = self.session.existing_table() {
            table.node_lost(self);
        }
        self.notify();
    }

    /// Whether the node still belongs to its contender, by the clock, the session and the watch. It has no
    /// effect: see [`settle`](Self::settle).
    pub(crate) fn verdict(&self) -> Result<(), Lost> {
        let implied = self.implied_loss();
        // Read last: what was settled meanwhile is recorded.
        self.recorded()?;
        implied.map_or(Ok(()), |reason| Err(self.loss_by(reason)))
    }

    /// The loss that is recorded, of which queue and holder are told.
    pub(crate) fn recorded(&self) -> Result<(), Lost> {
        match self.loss.get() {
            Some((reason, _)) => Err(self.loss_by(*reason)),
            None => Ok(()),
        }
    }

    fn implied_loss(&self) -> Option<LossReason> {
        if let Some(reason) = self.session.loss() {
            return Some(reason);
        }
        if self.has_lapsed() {
            return Some(LossReason::LeaseRanOut);
        }
        (self.watch.has_shown_deletion() && self.is_wanted()).then(|| self.missing_reason())
    }

    fn has_lapsed(&self) -> bool {
        self.flags.has_lapsed(|| self.session.expirations())
    }

    /// Records what the clock, the session and the watch imply, and fails if the node is lost. Every deed
    /// that rests on the node begins with it, and every wait repeats it.
    ///
    /// If the lease ran out while the node was held, and the session lives on, the node must not block other
    /// contenders, so the janitor deletes it.
    pub(crate) fn settle(&self) -> Result<(), Lost> {
        if self.loss.get().is_none() {
            if let Some(reason) = self.session.loss() {
                self.lose(reason);
            } else if self.has_lapsed() {
                // A node that was given up before is being deleted already.
                if self.lose(LossReason::LeaseRanOut) && !self.is_given_up() {
                    self.session.janitor().delete(&self.session, &self.path);
                }
            } else {
                self.settle_event(|_| ());
            }
        }
        self.recorded()
    }

    /// Applies the event of the watch, if it has fired, and then changes the watch, or what its event means.
    fn settle_event<T>(&self, change: impl FnOnce(&mut ArmedWatch) -> T) -> T {
        let record = || {
            let reason = self.is_wanted().then(|| self.missing_reason())?;
            self.loss.record((reason, self.session.now())).then_some(reason)
        };
        let (recorded, changed) = self.watch.take_event(record, change);
        if let Some(reason) = recorded {
            self.report_end();
            self.loss.tell_holder(|| self.loss_by(reason));
        }
        changed
    }

    /// Resolves when the node is lost.
    pub(crate) async fn lost(&self) -> Lost {
        self.until(|| self.verdict().err()).await
    }

    /// Wakes the tasks that wait in [`until`](Self::until).
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Resolves when `probe` returns a value. It is called again when the node is lost, and at each
    /// [`notify`](Self::notify). What the clock, the session and the watch imply is settled before: a watch
    /// that has fired would wake the task again and again.
    pub(crate) async fn until<T>(&self, probe: impl Fn() -> Option<T>) -> T {
        loop {
            // The listener is armed before the state is read, so no change is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let _ = self.settle();
            if let Some(seen) = probe() {
                return seen;
            }
            // The session's tasks watch the clock and the session, and notify. The watch on the node wakes by
            // itself.
            match self.watch() {
                Some(watch) => drop(select(changed, watch).await),
                None => changed.await,
            }
        }
    }

    /// The instant before which the node cannot have ended with its session. In the past once the node is
    /// lost.
    pub(crate) fn valid_until(&self) -> BootInstant {
        let lease = self.session.lease_valid_until();
        match (self.verdict(), self.loss.get()) {
            (Ok(()), _) => lease,
            (Err(_), Some((_, lost_at))) => lease.min(*lost_at),
            (Err(_), None) => lease.min(self.session.now()),
        }
    }

    pub(crate) fn loss_by(&self, reason: LossReason) -> Lost {
        Lost { path: (&*self.path).into(), reason }
    }
}

impl Debug for OwnedNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnedNode")
            .field("path", &self.path)
            .field("held", &self.is_held())
            .field("lost", &self.loss.get())
            .finish_non_exhaustive()
    }
}
