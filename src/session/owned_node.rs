//! A contender's node of this session.

use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Weak};

use futures::future::select;

use super::handle::Session;
use super::janitor;
use super::known_node::KnownNode;
use super::origin::Origin;
use super::own_watch::{ArmedWatch, armed};
use super::retry::Stop;
use super::watches::NodeWatch;
use crate::error::{Error, LossReason, Lost};
use crate::time::boot::BootInstant;

/// A contender's node of this session, waiting or held: what is known about it, and its session.
///
/// The clock, the session and the watch may imply a loss that is not recorded yet. A question reads it:
/// [`verdict`](Self::verdict). A deed [settles](Self::settle) it: the loss is recorded, its holder and its
/// queue are told, and the node of a hold whose lease ran out is deleted. What a question has seen stays
/// until it is settled.
pub(crate) struct OwnedNode {
    session: Session,
    known: Arc<KnownNode>,
}

impl Session {
    /// Registers a node of this session.
    pub(crate) fn register(&self, path: Arc<str>, data: Arc<[u8]>, origin: Origin) -> Arc<OwnedNode> {
        let make = |number| KnownNode::new(number, path, origin, data);
        let (known, loss) = self.owned_nodes().register(make);
        match loss {
            None => self.lease().wants_renewal(),
            Some(reason) => _ = self.lose(&known, reason),
        }
        Arc::new(self.node_of(known))
    }

    pub(super) fn upgraded(&self, known: &Weak<KnownNode>) -> Option<OwnedNode> {
        known.upgrade().map(|known| self.node_of(known))
    }

    fn node_of(&self, known: Arc<KnownNode>) -> OwnedNode {
        OwnedNode { session: self.clone(), known }
    }

    pub(super) fn held_nodes(&self) -> Vec<OwnedNode> {
        let held = self.owned_nodes().all(KnownNode::is_held);
        held.into_iter().map(|known| self.node_of(known)).collect()
    }

    /// Some of the nodes of this session.
    pub(super) fn some_nodes(&self, max: usize) -> Vec<OwnedNode> {
        self.owned_nodes().some(max).into_iter().map(|known| self.node_of(known)).collect()
    }
}

impl Deref for OwnedNode {
    type Target = KnownNode;

    fn deref(&self) -> &KnownNode {
        &self.known
    }
}

impl OwnedNode {
    /// Does not keep what is known of the node.
    pub(super) fn downgrade(&self) -> Weak<KnownNode> {
        Arc::downgrade(&self.known)
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// A transaction that replaces the node is sent: from now on it may have deleted the node.
    pub(crate) fn begin_replacing(&self) {
        self.settle_event(|_| self.known.set_replacing());
    }

    /// The reason of the loss if the node does not exist.
    pub(crate) fn missing_reason(&self) -> LossReason {
        match self.is_replaced_in_doubt() || !self.session.is_connection_verified() {
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

    /// The delete of a release found no node: another client had deleted it before.
    pub(crate) fn was_deleted_before(&self) -> Lost {
        let reason = self.missing_reason();
        self.session.end_node(self, reason);
        let deleted = self.loss_by(reason);
        match self.tell(deleted.clone()) {
            true => deleted,
            // The hold was lost, and the loss reported, before it was given up.
            false => self.recorded().err().unwrap_or(deleted),
        }
    }

    pub(crate) fn set_watch(&self, watch: NodeWatch) {
        let replaced = self.settle_event(|here| std::mem::replace(here, armed(watch)));
        drop(replaced);
    }

    /// Drops the watch: it may not have survived a reconnect.
    pub(crate) fn forget_watch(&self) {
        let forgotten = self.settle_event(Option::take);
        drop(forgotten);
    }

    /// Ends the hold or the wait. Returns whether this call was the first to do so.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        self.session.lose(self, reason)
    }

    /// As if another thread were in the middle of [`lose`](Self::lose): the loss is recorded, and no queue
    /// has noticed it.
    #[cfg(test)]
    pub(crate) fn record_loss(&self, reason: LossReason) {
        self.known.record(reason, self.session.now());
    }

    /// Whether the node still belongs to its contender, by the clock, the session and the watch. It has no
    /// effect: see [`settle`](Self::settle).
    pub(crate) fn verdict(&self) -> Result<(), Lost> {
        let implied = self.implied_loss();
        // Read last: what was settled meanwhile is recorded.
        self.recorded()?;
        implied.map_or(Ok(()), |reason| Err(self.loss_by(reason)))
    }

    fn implied_loss(&self) -> Option<LossReason> {
        if let Some(reason) = self.session.loss() {
            return Some(reason);
        }
        if self.has_run_out() {
            return Some(LossReason::LeaseRanOut);
        }
        (self.has_shown_deletion() && self.is_wanted()).then(|| self.missing_reason())
    }

    /// Whether the lease ran out while the node was held.
    fn has_run_out(&self) -> bool {
        self.known.has_lapsed(|| self.session.expirations())
    }

    /// Records what the clock, the session and the watch imply, and fails if the node is lost. Every deed
    /// that rests on the node begins with it, and every wait repeats it.
    ///
    /// If the lease ran out while the node was held, and the session lives on, the node must not block other
    /// contenders, so the janitor deletes it.
    pub(crate) fn settle(&self) -> Result<(), Lost> {
        if self.loss().is_none() {
            if let Some(reason) = self.session.loss() {
                self.lose(reason);
            } else if self.has_run_out() {
                // A node that was given up before is being deleted already.
                if self.lose(LossReason::LeaseRanOut) && !self.is_given_up() {
                    janitor::delete(&self.session, self.path());
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
            self.record(reason, self.session.now()).then_some(reason)
        };
        let (recorded, changed) = self.take_event(record, change);
        if let Some(reason) = recorded {
            self.session.report_end(self);
            self.tell_holder(reason);
        }
        changed
    }

    /// Resolves when the node is lost.
    pub(crate) async fn lost(&self) -> Lost {
        self.until(|| self.verdict().err()).await
    }

    /// Resolves when `probe` returns a value. It is called again when the node is lost, and at each
    /// [`notify`](KnownNode::notify). What the clock, the session and the watch imply is settled before: a
    /// watch that has fired would wake the task again and again.
    pub(crate) async fn until<T>(&self, probe: impl Fn() -> Option<T>) -> T {
        loop {
            // The listener is armed before the state is read, so no change is missed.
            let mut changed = pin!(self.changed());
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
        match (self.verdict(), self.loss()) {
            (Ok(()), _) => lease,
            (Err(_), Some((_, lost_at))) => lease.min(lost_at),
            (Err(_), None) => lease.min(self.session.now()),
        }
    }

    /// The error of a request for the holder of this node.
    pub(crate) fn error_of(&self, stop: Stop) -> Error {
        match stop {
            Stop::SessionEnded(reason) => self.loss_by(reason).into(),
            Stop::Failed(error) => error,
        }
    }
}

impl Debug for OwnedNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnedNode")
            .field("path", &self.path())
            .field("held", &self.is_held())
            .field("lost", &self.loss())
            .finish_non_exhaustive()
    }
}
