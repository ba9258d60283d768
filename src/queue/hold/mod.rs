mod release;
mod run;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use tracing::{debug_span, field};

use super::held_node::HeldNode;
use super::lock_queue;
use super::node_transaction::UnresolvedNodes;
use super::prefetch::{Changes, Prefetch, ReadResult};
use crate::config::limits;
use crate::error::{ConfigError, Error, Lost, Operation, Refusal};
use crate::manager::{ConnectionManager, HoldRegistration};
use crate::session::{Epoch, OwnedNode, Session};
use crate::telemetry::timers::HoldTimer;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::txn::Txn;
use crate::wire::{Stat, WireError};
use crate::znode::fencing_token::FencingToken;

/// A hold: the first place in a line, until it is released, dropped or lost.
///
/// It is *valid* as long as the server cannot have given the place to anyone else. Once lost it stays lost, also
/// when the connection comes back. It rests on one node, or on several that were made together: then all of them
/// must stand.
///
/// Dropping it gives the place up in the background; [`release`](Self::release) waits until the server has done it.
/// It keeps the manager alive. A hold that is leaked ([`std::mem::forget`]) blocks the line until the session ends.
#[must_use = "a hold that is not kept is released at once"]
#[clippy::has_significant_drop]
pub struct Hold {
    pub(super) token: FencingToken,
    // Dropped in this order: the nodes, and last the manager.
    pub(super) first: HeldNode,
    pub(super) others: Vec<HeldNode>,
    /// What it looks at beside the line.
    pub(super) reads: Prefetch,
    /// What tries to exchange it may still come to.
    pub(super) unresolved: UnresolvedNodes,
    /// Tells that it is given up, when it is dropped.
    pub(super) registration: Arc<HoldRegistration>,
    pub(super) manager: ConnectionManager,
}

impl Hold {
    pub(super) fn new(
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
            lock_queue::key(directory, kind),
            nodes,
            token,
            timer,
        );
        Self { token, first, others, reads: Prefetch::default(), unresolved, registration, manager }
    }

    /// From now on metrics and spans take it for dropped, also if it is [parked](Self::detach), which counts as released else.
    pub fn count_as_dropped(&self) {
        self.registration.timer().ends_by("dropped");
    }

    /// Opens the span that lasts as long as the hold, where the caller stands.
    pub(super) fn start_span(&self, waited: Option<Duration>) {
        let timer = self.registration.timer();
        timer.show(debug_span!(
            "hold",
            path = self.path(),
            recipe = timer.recipe(),
            sequence = self.first.sequence(),
            token = %self.token,
            session = format_args!("{:#x}", self.session().id()),
            epoch = self.epoch().as_u64(),
            waited = waited.map(field::debug),
            outcome = field::Empty,
        ));
    }

    pub(super) fn with_reads(self, reads: Prefetch) -> Self {
        Self { reads, ..self }
    }

    pub(super) fn unresolved(mut self, more: UnresolvedNodes) -> Self {
        self.unresolved.absorb(more);
        self
    }

    /// Whether what was last looked at was seen over the present connection, or nothing was.
    pub(super) fn has_current_reads(&self) -> bool {
        self.reads.seen_on().is_none_or(|seen_on| Some(seen_on) == self.session().connection())
    }

    /// When the first try to exchange it was sent that has no answer, and may have been committed.
    pub(in crate::queue) fn in_doubt_since(&self) -> Option<BootInstant> {
        self.unresolved.since()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<OwnedNode>> {
        std::iter::once(&self.first).chain(&self.others).map(HeldNode::node)
    }

    pub(super) fn node(&self) -> &Arc<OwnedNode> {
        self.first.node()
    }

    /// The session everything of this hold was made in.
    pub(super) fn session(&self) -> &Session {
        self.node().session()
    }

    /// The token to fence writes with: greater than that of every earlier holder of this line.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// Whether the server cannot have given the place to anyone else yet. Costs no request.
    ///
    /// Reads the clock at each call: false at the first look after a pause that was too long.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.check().is_ok()
    }

    /// As [`is_valid`](Self::is_valid), and says why not.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the hold is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.nodes().try_for_each(|node| node.check())
    }

    /// The instant until which the server cannot have given the place to anyone else by expiring the session, as far
    /// as is known now. It moves on while the ensemble confirms the session, and lies in the past once the hold is
    /// lost.
    #[must_use]
    pub fn valid_until(&self) -> BootInstant {
        self.others
            .iter()
            .fold(self.node().valid_until(), |until, other| until.min(other.node().valid_until()))
    }

    /// Resolves when the hold is lost: in a running process, before the server can give the place to anyone else.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a loss is told again to whoever asks later.
    pub async fn lost(&self) -> Lost {
        select_all(self.nodes().map(|node| node.lost().boxed())).await.0
    }

    /// Writes that are committed only if the hold's node still exists: exact, whatever the clocks do.
    pub fn txn(&self) -> Txn<'_> {
        self.txn_with([])
    }

    /// Writes that are committed only if everything this hold and others rest on still exists. All of them must have
    /// one manager: else [`commit`](Txn::commit) fails with [`Error::Config`].
    pub fn txn_with<'a>(&'a self, others: impl IntoIterator<Item = &'a Self>) -> Txn<'a> {
        let mut nodes: Vec<&Arc<OwnedNode>> = self.others.iter().map(HeldNode::node).collect();
        let mut has_one_manager = true;
        for other in others {
            has_one_manager &= other.manager.is_same_as(&self.manager);
            nodes.extend(other.nodes());
        }
        let txn = Txn::under(&self.manager, self.node(), nodes);
        if has_one_manager {
            return txn;
        }
        txn.refused(Error::Config(ConfigError::Setting {
            name: "holds",
            value: "of several managers".to_owned(),
            advice: "commit one transaction for the holds of each connection manager",
        }))
    }

    /// The path of the hold's node, chroot included; of the first, if there are several.
    #[must_use]
    pub fn path(&self) -> &str {
        self.node().path()
    }

    /// The paths of all nodes it rests on, chroot included.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes().map(|node| node.path())
    }

    /// On how many nodes it rests.
    #[must_use]
    pub fn node_count(&self) -> usize {
        1 + self.others.len()
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

    /// Reads what its line [looks at](super::LockQueue::with_reads), as it is while this hold stands.
    ///
    /// The first call costs nothing when the place was granted at once: the reads were sent along, behind the list
    /// that granted it.
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

    /// As [`read`](Self::read), and sets watches: [`Changes`] tells when there is something else to see.
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

    /// Writes the data of its node, of the first if there are several. The stat's `mtime` is the servers' time then: later
    /// than all they have told before, if their clocks do not go back.
    ///
    /// Who waits behind it looks at the line once more.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], [`Error::Timeout`], [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the data may be written all the same.
    pub async fn write_own_node(&self, data: &[u8], deadline: Deadline) -> Result<Stat, Error> {
        limits::check(data.len()).map_err(Error::Config)?;
        let (node, session) = (self.node(), self.session());
        loop {
            node.check()?;
            let mut reply = session.set_data(node.path(), data, None);
            match session.await_reply(&mut reply, deadline).await {
                Ok(stat) => return Ok(stat),
                Err(WireError::Refused(Refusal::NoNode)) => {
                    node.lose(node.missing_reason());
                    node.check()?;
                }
                Err(error) => {
                    let retry = session.retry_after(&error, Operation::Write, node.path(), deadline);
                    retry.await.map_err(|stop| node.error_of(stop))?;
                }
            }
        }
    }
}

impl Debug for Hold {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("path", &self.path())
            .field("node_count", &self.node_count())
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}
