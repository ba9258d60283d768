use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use lockkeeper_lock::count_of;
use tracing::{debug_span, field};

use super::node::HeldNode;
use super::reads::{Changes, Prefetch, ReadResult};
use super::transaction::UnresolvedNodes;
use crate::error::{Error, Lost, Operation, Refusal};
use crate::manager::{ConnectionManager, HoldRegistration};
use crate::session::{Epoch, OwnedNode, Session};
use crate::telemetry::timers::HoldTimer;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::txn::{Txn, of_several_managers};
use crate::wire::WireError;
use crate::znode::fencing_token::FencingToken;
use crate::znode::name::Kind;
use crate::znode::path::ZnodePath;
use crate::znode::whole_path::WholePath;

/// A hold: the head of a queue, until it is released, dropped or lost.
///
/// A hold is *valid* as long as the server cannot have granted the lock to another contender. A lost hold
/// stays lost, even after a reconnect. A hold rests on one node, or on several that were created together:
/// then all of them must exist.
///
/// Dropping a hold releases it in the background; [`release`](Self::release) waits until the server has
/// deleted its nodes. A hold keeps the manager alive. A hold that is leaked ([`std::mem::forget`]) blocks the
/// queue until the session ends.
#[must_use = "a hold that is not kept is released at once"]
#[clippy::has_significant_drop]
pub struct Hold {
    pub(crate) token: FencingToken,
    // Drop order: the nodes first, the manager last.
    pub(crate) first: HeldNode,
    pub(crate) others: Vec<HeldNode>,
    /// The nodes that the holder reads outside the queue.
    pub(crate) reads: Prefetch,
    /// The nodes that unresolved exchanges of this hold may still create.
    pub(crate) unresolved: UnresolvedNodes,
    /// Announces the end of the hold when it is dropped.
    pub(crate) registration: Arc<HoldRegistration>,
    pub(crate) manager: ConnectionManager,
}

impl Hold {
    pub(crate) fn new(
        manager: ConnectionManager,
        first: HeldNode,
        others: Vec<HeldNode>,
        token: FencingToken,
        recipe: Option<&'static str>,
    ) -> Self {
        let unresolved = UnresolvedNodes::none(first.node().session());
        let nodes = std::iter::once(&first).chain(&others).map(HeldNode::node);
        let directory = first.node().path().rsplit_once('/').unwrap_or_default().0;
        let kind = first.label.kind();
        let timer = HoldTimer::begin(manager.environment(), recipe.unwrap_or_else(|| kind.metric_name()));
        let registration = HoldRegistration::announce(
            manager.hold_registry(),
            key(directory, kind),
            ZnodePath::of_node(manager.below_chroot(first.node().path())),
            nodes,
            token,
            timer,
        );
        Self { token, first, others, reads: Prefetch::default(), unresolved, registration, manager }
    }

    pub(crate) fn count_as_dropped(&self) {
        self.registration.timer().ends_by("dropped");
    }

    pub(crate) fn defer_loss_report(&self) {
        self.registration.defer_loss_report();
    }

    pub(crate) fn report_loss(&self) {
        self.registration.report_loss();
    }

    /// Opens the span that lasts as long as the hold, inside the caller's current span.
    pub(crate) fn start_span(&self, waited: Option<Duration>) {
        let timer = self.registration.timer();
        timer.show(debug_span!(
            "hold",
            path = self.full_path(),
            recipe = timer.recipe(),
            sequence = self.first.sequence(),
            token = %self.token,
            session = format_args!("{:#x}", self.session().id()),
            epoch = self.epoch().as_u64(),
            waited = waited.map(field::debug),
            outcome = field::Empty,
        ));
    }

    pub(crate) fn with_reads(self, reads: Prefetch) -> Self {
        Self { reads, ..self }
    }

    pub(crate) fn unresolved(mut self, more: UnresolvedNodes) -> Self {
        self.unresolved.absorb(more);
        self
    }

    /// Whether the last reads arrived over the present connection, or there were none.
    pub(crate) fn has_current_reads(&self) -> bool {
        self.reads.is_current(self.session())
    }

    /// Whether an exchange without a reply may have been committed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.unresolved.is_in_doubt()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<OwnedNode>> {
        std::iter::once(&self.first).chain(&self.others).map(HeldNode::node)
    }

    pub(crate) fn node(&self) -> &Arc<OwnedNode> {
        self.first.node()
    }

    /// The session in which all nodes of this hold were created.
    pub(crate) fn session(&self) -> &Session {
        self.node().session()
    }

    /// The token to fence writes with: greater than that of every earlier holder of this queue.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// Whether the server cannot have granted the lock to another contender yet. Costs no request.
    ///
    /// Reads the clock at each call: the first call after too long a pause returns `false`.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), and returns the reason.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the hold is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.nodes().try_for_each(|node| node.verdict())
    }

    /// As [`check`](Self::check), and applies a loss that is not recorded yet.
    pub(crate) fn settle(&self) -> Result<(), Lost> {
        self.nodes().try_for_each(|node| node.settle())
    }

    /// The instant until which the server cannot have granted the lock to another contender by expiring the
    /// session, as far as is known now. It advances while the ensemble confirms the session, and lies in the
    /// past once the hold is lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.others
            .iter()
            .fold(self.node().valid_until(), |until, other| until.min(other.node().valid_until()))
    }

    /// Resolves when the hold is lost: in a running process, before the server can grant the lock to another
    /// contender.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call returns the same loss.
    pub async fn lost(&self) -> Lost {
        select_all(self.nodes().map(|node| node.lost().boxed())).await.0
    }

    /// Writes that are committed only if the hold's node still exists: exact, whatever the clocks do.
    pub fn txn(&self) -> Txn<'_> {
        self.txn_with([])
    }

    /// Writes that are committed only if all nodes of this hold and the others still exist. All of them must
    /// have one manager: otherwise [`commit`](Txn::commit) fails with [`Error::Config`].
    pub fn txn_with<'a>(&'a self, others: impl IntoIterator<Item = &'a Self>) -> Txn<'a> {
        let mut nodes: Vec<&Arc<OwnedNode>> = self.nodes().collect();
        let mut has_one_manager = true;
        for other in others {
            has_one_manager &= other.manager.is_same_as(&self.manager);
            nodes.extend(other.nodes());
        }
        let txn = Txn::under(&self.manager, nodes);
        if has_one_manager { txn } else { txn.refused(of_several_managers("holds")) }
    }

    /// The path of the hold's node, below the manager's chroot. The first one, if there are several.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.registration.path()
    }

    /// The paths of all nodes that the hold rests on, below the manager's chroot.
    pub fn paths(&self) -> impl Iterator<Item = ZnodePath> {
        self.nodes().map(|node| ZnodePath::of_node(self.manager.below_chroot(node.path())))
    }

    /// The path of the hold's node with the chroot, for errors and logs.
    #[must_use]
    pub fn whole_path(&self) -> WholePath {
        self.full_path().into()
    }

    /// The path of the hold's node on the server.
    pub(crate) fn full_path(&self) -> &str {
        self.node().path()
    }

    /// The number of nodes that the hold rests on.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        count_of(self.others.len()).saturating_add(1)
    }

    /// The epoch of the session the hold belongs to.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.session().epoch()
    }

    /// The manager the hold belongs to.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Reads the nodes that its queue [names](crate::LockQueue::with_reads), as they are while this hold is
    /// valid.
    ///
    /// The first call sends nothing if the hold was granted at once: the reads were sent behind the list that
    /// granted it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Timeout`], [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn read(&mut self, deadline: Deadline) -> Result<Vec<ReadResult>, Error> {
        self.reads.read(self.first.node(), deadline).await
    }

    /// As [`read`](Self::read), and sets watches: [`Changes`] reports when one of the nodes may have changed.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn watch(&mut self, deadline: Deadline) -> Result<(Vec<ReadResult>, Changes), Error> {
        self.reads.watch(self.first.node(), deadline).await
    }

    pub(crate) async fn server_time(&self, deadline: Deadline) -> Result<i64, Error> {
        let (node, session) = (self.node(), self.session());
        loop {
            node.settle()?;
            let mut reply = session.set_data(node.path(), node.data(), None);
            match session.await_reply(&mut reply, deadline).await {
                Ok(stat) => {
                    // The lease may have run out, and another contender hold, before the answer came.
                    node.settle()?;
                    return Ok(stat.mtime);
                }
                Err(WireError::Refused(Refusal::NoNode)) => {
                    node.lose(node.missing_reason());
                    node.settle()?;
                }
                Err(error) => {
                    let retry = session.retry_after(&error, Operation::Write, node.path(), deadline);
                    retry.await.map_err(|stop| node.error_of(stop))?;
                }
            }
        }
    }
}

/// The key under which holds are announced: readers and writers share a directory, but not a queue.
pub(crate) fn key(directory: &str, kind: Kind) -> String {
    format!("{directory} {kind:?}")
}

impl Debug for Hold {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("path", &self.full_path())
            .field("node_count", &self.node_count())
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}
