//! Tools of holds and managers that only authors of recipes need.
//!
//! They are methods of two traits, which `lockkeeper` does not re-export: a program that uses recipes does
//! not meet them on the types that it has in common with their authors.

use std::any::Any;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use crate::environment::ensure_runtime;
use crate::error::Error;
use crate::hold::{Hold, NamedNode, NodeMonitor};
use crate::manager::{ConnectionManager, WeakConnectionManager};
use crate::time::deadline::Deadline;
use crate::znode::name::Label;
use crate::znode::path::ZnodePath;

/// Methods of a [`Hold`] for authors of recipes.
pub trait HoldExt: Sized {
    /// Makes metrics and spans count this hold as dropped, also if it is [detached](Hold::detach), which
    /// counts as released otherwise.
    fn count_as_dropped(&self);

    /// From now on a loss of this hold is logged at debug only, and not counted in
    /// `lockkeeper_lost_total`, until [`report_loss`](Self::report_loss).
    ///
    /// While a hold is a step of an acquire, such as the turn to take permits, it protects no work, and the
    /// acquire queues again after its loss. So nobody has to look.
    fn defer_loss_report(&self);

    /// Ends [`defer_loss_report`](Self::defer_loss_report): the hold is the caller's now. A loss in between
    /// is reported at once.
    fn report_loss(&self);

    /// Records the call that acquired the hold, for messages: see [`HeldHere`](crate::HeldHere). The first
    /// place stays.
    fn set_place(&self, place: &'static Location<'static>);

    /// A monitor of the hold's node, for a task that does not hold it.
    #[must_use]
    fn monitor(&self) -> NodeMonitor;

    /// Whether a client asked for this hold, as far as this process knows: see
    /// [`Hold::revoke_requested`].
    #[must_use]
    fn is_revoke_requested(&self) -> bool;

    /// The [payload](crate::Exchange::with_payload) of the previous hold, if that hold was of this process
    /// and no foreign contender held in between.
    #[must_use]
    fn payload<T: Any + Send + Sync>(&self) -> Option<Arc<T>>;

    /// Guards the ephemeral node at `path`, which transactions of this hold create: make it before the first
    /// one is sent. Sends nothing. `gone` is called once a drop has left no node of this
    /// session at the path.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is too long with the chroot prepended.
    fn named_node(
        &self,
        path: &ZnodePath,
        gone: impl FnOnce() + Send + Sync + 'static,
    ) -> Result<NamedNode, Error>;

    /// The servers' time, in milliseconds since 1970: later than all times that the servers have reported
    /// before, if their clocks are never set back. For that the data of the hold's node, the first one if
    /// there are several, is written once more, unchanged.
    ///
    /// Every waiter that watches this node lists the directory once more. A
    /// [revoke request](Hold::revoke_requested) that was not received yet is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Timeout`], [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Session loss
    ///
    /// The hold is lost.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the node keeps its data in any case.
    fn server_time(&self, deadline: Deadline) -> impl Future<Output = Result<i64, Error>> + Send;

    /// The servers' time at which the hold's node was created, the first one if there are several, in
    /// milliseconds since 1970: no earlier than all times that the servers have reported before, if their
    /// clocks are never set back. `None` if no answer has shown it. Costs no request.
    #[must_use]
    fn created_at(&self) -> Option<i64>;

    /// Ends a hold of one node, which a committed transaction of its own has deleted. Sends nothing, where a
    /// drop would delete the node once more.
    fn end_deleted(self);

    /// Adds a reader's hold to this writer's, by a node *with this hold's own sequence number*: all waiters
    /// behind this hold wait behind both. The new hold has this hold's fencing token. One round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when this hold is lost; [`Error::Refused`] when the server refuses the node;
    /// [`Error::Config`] when this is not a writer's hold, or the label not a reader's;
    /// [`Error::SequenceExhausted`] near the end of the sequence numbers; [`Error::Unknown`] as for a
    /// [commit of an exchange](crate::Exchange::commit).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind, and this hold stays.
    fn add_reader(
        &self,
        label: Label,
        data: impl Into<Vec<u8>> + Send,
    ) -> impl Future<Output = Result<Self, Error>> + Send;
}

/// Methods of a [`ConnectionManager`] for authors of recipes.
pub trait ManagerExt {
    /// A table that recipes of this manager share. The first use creates it.
    ///
    /// State that must exist once per connection, such as the holds of each owner, belongs here and not in a
    /// static.
    #[must_use]
    fn shared_table<T: Default + Send + Sync + 'static>(&self) -> Arc<T>;

    /// Runs a task on the runtime that the manager connected on, whatever runtime the caller runs on, so that
    /// a task which serves all users of the manager does not stop with one of them. It is dropped if that
    /// runtime has ended.
    ///
    /// The end of the manager does not end the task, and a handle in the task keeps the manager alive.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    /// Fails where the caller has no tokio runtime, which the time limit of a call needs.
    ///
    /// # Errors
    ///
    /// [`Error::Config`].
    fn ensure_runtime(&self) -> Result<(), Error>;

    /// A handle that does not keep the manager alive, for a task that runs while no call waits for it.
    #[must_use]
    fn downgrade(&self) -> WeakConnectionManager;

    /// A name that no other call returns, in any process: a UUID.
    #[must_use]
    fn unique_name(&self) -> String;

    /// The earliest present time of the servers, in milliseconds since 1970, by the answer to the last write
    /// of the present session and the steady clock of this machine. `None` before the first write.
    ///
    /// An estimate, for how long to wait. Another leader may have another clock. What must be exact rests on
    /// the time of a write: see [`HoldExt::server_time`].
    #[must_use]
    fn estimated_server_time(&self) -> Option<i64>;
}

// A method of the type itself comes before one of a trait, so these call the type's own.
impl HoldExt for Hold {
    fn count_as_dropped(&self) {
        self.count_as_dropped();
    }

    fn defer_loss_report(&self) {
        self.defer_loss_report();
    }

    fn report_loss(&self) {
        self.report_loss();
    }

    fn set_place(&self, place: &'static Location<'static>) {
        self.registration.set_place(place);
    }

    fn monitor(&self) -> NodeMonitor {
        self.monitor()
    }

    fn is_revoke_requested(&self) -> bool {
        self.node().is_revoke_requested()
    }

    fn payload<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.payload()
    }

    fn named_node(
        &self,
        path: &ZnodePath,
        gone: impl FnOnce() + Send + Sync + 'static,
    ) -> Result<NamedNode, Error> {
        self.named_node(path, gone)
    }

    fn server_time(&self, deadline: Deadline) -> impl Future<Output = Result<i64, Error>> + Send {
        self.server_time(deadline)
    }

    fn created_at(&self) -> Option<i64> {
        self.node().created_at()
    }

    fn end_deleted(self) {
        self.end_deleted();
    }

    fn add_reader(
        &self,
        label: Label,
        data: impl Into<Vec<u8>> + Send,
    ) -> impl Future<Output = Result<Self, Error>> + Send {
        self.add_reader(label, data.into())
    }
}

impl ManagerExt for ConnectionManager {
    fn shared_table<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.shared_table()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(task);
    }

    fn ensure_runtime(&self) -> Result<(), Error> {
        ensure_runtime()
    }

    fn downgrade(&self) -> WeakConnectionManager {
        self.downgrade()
    }

    fn unique_name(&self) -> String {
        self.environment().unique().to_string()
    }

    fn estimated_server_time(&self) -> Option<i64> {
        self.present_session()?.server_time()
    }
}
