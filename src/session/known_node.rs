use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::loss_notice::{Listener, LossNotice};
use super::node_flags::NodeFlags;
use super::origin::Origin;
use super::own_watch::{ArmedWatch, OwnWatch, SharedWatch};
use crate::error::{LossReason, Lost};
use crate::time::boot::BootInstant;

/// What is known about a contender's node of a session, waiting or held, and about its existence.
///
/// A hold that is lost stays lost, whatever is learned later.
pub(crate) struct KnownNode {
    number: u64,
    path: Arc<str>,
    flags: NodeFlags<BootInstant>,
    /// A task of the session awaits the watch on the node.
    has_deletion_watch: AtomicBool,
    /// Wakes the tasks that wait for a change of the node.
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
    /// The servers' time of the create, if known.
    created_at: Option<i64>,
    /// Whether the owner of the node was seen to be this session.
    is_owner_seen: AtomicBool,
    /// The data of the node.
    data: Arc<[u8]>,
}

/// Called once, with the loss of a hold.
pub(crate) type OnLoss = Listener<Lost>;

impl KnownNode {
    pub(super) fn new(number: u64, path: Arc<str>, origin: Origin, data: Arc<[u8]>) -> Self {
        Self {
            number,
            path,
            flags: NodeFlags::new(),
            has_deletion_watch: AtomicBool::new(false),
            changed: Notify::new(),
            loss: LossNotice::new(),
            watch: OwnWatch::default(),
            revoke_requested: AtomicBool::new(false),
            created_on: origin.created_on,
            created_at: origin.created_at,
            is_owner_seen: AtomicBool::new(origin.is_owner_seen),
            data,
        }
    }

    pub(super) fn created_on(&self) -> Option<u64> {
        self.created_on
    }

    pub(crate) fn created_at(&self) -> Option<i64> {
        self.created_at
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

    pub(crate) fn end_replacing(&self) {
        self.flags.set_replacing(false);
    }

    /// Records that a transaction that replaces the node may be applied at any time.
    pub(crate) fn set_replaced_in_doubt(&self) {
        self.flags.set_replaced_in_doubt();
    }

    /// Whether it is a loss if the node does not exist.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_given_up() && !self.flags.is_replacing()
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

    /// Whether a watch is set that has not fired.
    pub(crate) fn has_watch(&self) -> bool {
        self.watch.is_armed()
    }

    /// The loss that is recorded, of which queue and holder are told.
    pub(crate) fn recorded(&self) -> Result<(), Lost> {
        match self.loss.get() {
            Some((reason, _)) => Err(self.loss_by(*reason)),
            None => Ok(()),
        }
    }

    /// Wakes the tasks that wait in [`changed`](Self::changed).
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn loss_by(&self, reason: LossReason) -> Lost {
        Lost { path: (&*self.path).into(), reason }
    }

    /// A transaction that replaces the node may delete it from now on.
    pub(super) fn set_replacing(&self) {
        self.flags.set_replacing(true);
    }

    pub(super) fn is_replaced_in_doubt(&self) -> bool {
        self.flags.is_replaced_in_doubt()
    }

    /// Whether the lease ran out while the node was held.
    pub(super) fn has_lapsed(&self, expirations: impl FnOnce() -> u64) -> bool {
        self.flags.has_lapsed(expirations)
    }

    /// Whether the watch has fired because the node was deleted.
    pub(super) fn has_shown_deletion(&self) -> bool {
        self.watch.has_shown_deletion()
    }

    /// See [`OwnWatch::take_event`].
    pub(super) fn take_event<D, T>(
        &self,
        on_deleted: impl FnOnce() -> Option<D>,
        change: impl FnOnce(&mut ArmedWatch) -> T,
    ) -> (Option<D>, T) {
        self.watch.take_event(on_deleted, change)
    }

    /// The loss that is recorded, and when it was detected.
    pub(super) fn loss(&self) -> Option<(LossReason, BootInstant)> {
        self.loss.get().copied()
    }

    /// Records a loss. Returns whether it was the first one.
    pub(super) fn record(&self, reason: LossReason, now: BootInstant) -> bool {
        self.loss.record((reason, now))
    }

    /// Tells the holder, unless the node was given up.
    pub(super) fn tell_holder(&self, reason: LossReason) {
        self.loss.tell_holder(|| self.loss_by(reason));
    }

    /// Tells the listener. Returns whether there was one to tell.
    pub(super) fn tell(&self, lost: Lost) -> bool {
        self.loss.tell(lost)
    }

    /// Resolves at the next [`notify`](Self::notify) after it was armed.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}
