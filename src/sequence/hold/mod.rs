mod foothold;
mod release;
mod work;

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use tracing::{debug, debug_span, field};

pub(super) use self::foothold::Foothold;
use super::attempt::Unsettled;
use super::exchange::Exchange;
use super::interruption::{Interruption, pause, time_left};
use super::line;
use super::look::{Changes, Looks, Sight};
use super::name::{Kind, NodeName};
use super::outlook::Outlook;
use super::parked::Parked;
use crate::backend::{Stat, WireError};
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Lost, Operation, Phase, Refusal};
use crate::manager::{ConnectionManager, Herald};
use crate::meter::Held;
use crate::request_size;
use crate::session::{Epoch, OwnNode, Session, Word};
use crate::token::FencingToken;
use crate::txn::Txn;

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
    token: FencingToken,
    // Dropped in this order: the nodes, and last the manager.
    first: Foothold,
    others: Vec<Foothold>,
    /// What it looks at beside the line.
    looks: Looks,
    /// What tries to exchange it may still come to.
    unsettled: Unsettled,
    /// Tells that it is given up, when it is dropped.
    herald: Arc<Herald>,
    manager: ConnectionManager,
}

impl Hold {
    pub(super) fn new(
        manager: ConnectionManager,
        first: Foothold,
        others: Vec<Foothold>,
        token: FencingToken,
        recipe: Option<&'static str>,
    ) -> Self {
        let unsettled = Unsettled::none(first.node().session());
        let nodes = std::iter::once(&first).chain(&others).map(Foothold::node);
        let (directory, name) = first.node().path().rsplit_once('/').unwrap_or_default();
        let kind = NodeName::parse(name).map_or(Kind::Other, |name| name.kind());
        let meter = Held::begin(manager.host(), recipe.unwrap_or_else(|| kind.recipe()));
        let herald = Herald::announce(manager.hold_board(), line::key(directory, kind), nodes, token, meter);
        Self { token, first, others, looks: Looks::default(), unsettled, herald, manager }
    }

    /// Gives the hold up and keeps its place, for the next one of this process: [`Parked::resume`].
    ///
    /// # Errors
    ///
    /// The hold itself, to be released, when that must not be: it is lost; it rests on several nodes; a transaction under it
    /// was dropped or had no answer, and might be committed in the next one's time; somebody
    /// [asked for it](Self::revocation); its numbers of hand-overs are used up; nobody is
    /// [let in any more](ConnectionManager::closing).
    pub fn park(self) -> Result<Parked, Box<Self>> {
        let node = self.node();
        let is_sole = self.others.is_empty() && self.unsettled.is_empty() && node.is_settled();
        let is_wanted_here = !node.is_asked_for() && !self.manager.is_closing();
        let next = self.token.handed_over().filter(|_| is_sole && is_wanted_here && self.check().is_ok());
        let Some(next) = next else {
            return Err(Box::new(self));
        };
        let Self { first, herald, manager, .. } = self;
        herald.meter().ends_by("released");
        Ok(Parked::new(first, next, herald.meter().recipe(), manager))
    }

    /// From now on metrics and spans take it for dropped, also if it is [parked](Self::park), which counts as released else.
    pub fn count_as_dropped(&self) {
        self.herald.meter().ends_by("dropped");
    }

    /// What can be seen of its place by who does not hold it.
    #[must_use]
    pub fn outlook(&self) -> Outlook {
        Outlook::on(self.node())
    }

    /// Opens the span that lasts as long as the hold, where the caller stands.
    pub(super) fn shown(&self, waited: Option<Duration>) {
        let meter = self.herald.meter();
        meter.show(debug_span!(
            "hold",
            path = self.path(),
            recipe = meter.recipe(),
            sequence = sequence(self.path()),
            token = %self.token,
            session = format_args!("{:#x}", self.session().id()),
            epoch = self.epoch().as_u64(),
            waited = waited.map(field::debug),
            outcome = field::Empty,
        ));
    }

    pub(super) fn looking_at(self, looks: Looks) -> Self {
        Self { looks, ..self }
    }

    pub(super) fn unsettled(mut self, more: Unsettled) -> Self {
        self.unsettled.absorb(more);
        self
    }

    /// Whether what was last looked at was seen over the present connection, or nothing was.
    pub(super) fn has_fresh_looks(&self) -> bool {
        self.looks.seen_on().is_none_or(|seen_on| Some(seen_on) == self.session().connection())
    }

    /// When the first try to exchange it was sent that has no answer, and may have been committed.
    pub(in crate::sequence) fn in_doubt_since(&self) -> Option<BootInstant> {
        self.unsettled.since()
    }

    /// The hold that takes this one's place; `None` for nothing to rest on. The own node is gone, and `next` stands.
    pub(super) fn replaced_by(
        self,
        footing: Vec<Foothold>,
        next: Option<&Arc<OwnNode>>,
        word: Option<Word>,
    ) -> Option<Self> {
        let Self { token, mut first, looks, mut unsettled, herald, manager, .. } = self;
        herald.meter().ends_by("exchanged");
        if let Some(next) = next {
            first.node().pass_on(next, word);
        }
        first.standing.is_gone();
        unsettled.settle();
        let mut footing = footing.into_iter();
        let new = footing.next()?;
        Some(Self::new(manager, new, footing.collect(), token, None).looking_at(looks))
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<OwnNode>> {
        std::iter::once(&self.first).chain(&self.others).map(Foothold::node)
    }

    pub(super) fn node(&self) -> &Arc<OwnNode> {
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
        Txn::under(&self.manager, self.nodes().collect())
    }

    /// Writes that are committed only if everything this hold and others rest on still exists.
    pub fn txn_with<'a>(&'a self, others: impl IntoIterator<Item = &'a Self>) -> Txn<'a> {
        let nodes = std::iter::once(self).chain(others).flat_map(Self::nodes);
        Txn::under(&self.manager, nodes.collect())
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
    pub fn width(&self) -> usize {
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

    /// Reads what its line [looks at](super::Line::looking_at), as it is while this hold stands.
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
    pub async fn look(&mut self, deadline: Deadline) -> Result<Vec<Sight>, Error> {
        self.looks.look(self.first.node(), deadline).await
    }

    /// As [`look`](Self::look), and sets watches: [`Changes`] tells when there is something else to see.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn watch(&mut self, deadline: Deadline) -> Result<(Vec<Sight>, Changes), Error> {
        self.looks.watch(self.first.node(), deadline).await
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
    pub async fn write(&self, data: &[u8], deadline: Deadline) -> Result<Stat, Error> {
        request_size::check(data.len()).map_err(Error::Config)?;
        let (node, session) = (self.node(), self.session());
        loop {
            node.check()?;
            let mut reply = session.set_data(node.path(), data, None);
            match session.answer(&mut reply, deadline).await {
                Ok(stat) => return Ok(stat),
                Err(WireError::SessionEnded(LossReason::Closed)) => return Err(Error::Closed),
                Err(WireError::SessionEnded(reason)) => return Err(node.loss_by(reason).into()),
                Err(WireError::Refused(Refusal::NoNode)) => {
                    node.lose(LossReason::NodeDeleted);
                    node.check()?;
                }
                Err(error @ WireError::Refused(refusal)) if !refusal.is_transient() => {
                    return Err(Error::of_wire(Operation::Write, node.path(), &error, deadline));
                }
                // Writing it twice does no harm.
                Err(error) => {
                    debug!(path = node.path(), %error, "writing again");
                    pause(session, deadline).await;
                    if let Err(Interruption::Fail(error)) = time_left(deadline, node.path(), Phase::Answer) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// What the hold before this one [told](Exchange::telling), if that was of this process and nobody came in between.
    #[must_use]
    pub fn told<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.node().word()?).downcast().ok()
    }

    /// Begins a transaction that turns this hold into others.
    pub fn exchange(self) -> Exchange {
        Exchange::of(self)
    }
}

/// The number of a node of ours.
pub(super) fn sequence(path: &str) -> Option<i32> {
    path.rsplit('/').next().and_then(NodeName::parse).map(|name| name.sequence())
}

impl Debug for Hold {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Hold")
            .field("path", &self.path())
            .field("width", &self.width())
            .field("token", &self.token)
            .field("valid", &self.is_valid())
            .finish_non_exhaustive()
    }
}
