//! Nodes made by a transaction that rests on a node we hold: tried until it is known what became of it.

use std::sync::Arc;

use tracing::debug;

use super::claim::Standing;
use super::directory::{Lasting, make_directory};
use super::hold::Foothold;
use super::interruption::{pause, time_over};
use super::name::Protection;
use super::place::Entry;
use crate::backend::{MultiError, WireError, WriteOp, WriteResult};
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::path::ZnodePath;
use crate::session::{Origin, OwnNode, Resting, Session};

/// How often a directory is made again that was reaped between its making and our create.
const DIRECTORIES_MAX: usize = 8;

/// A node to be made.
pub(super) struct Wanted {
    pub(super) directory: ZnodePath,
    pub(super) protection: Protection,
    pub(super) operation: WriteOp,
    /// Whether the new hold rests on it; else it stays on its own.
    pub(super) is_held: bool,
}

/// A node that was made.
pub(super) struct MadeNode {
    path: String,
    origin: Origin,
}

/// What a try came to.
pub(super) enum Done {
    /// Committed.
    Made(Made),
    /// The server refused the operation on this node: nothing was done.
    Refused(String, Refusal),
    /// A look showed that nothing was done.
    Nothing,
}

/// What a committed transaction made.
pub(super) struct Made {
    /// The nodes wanted, in order.
    pub(super) nodes: Vec<MadeNode>,
    /// The transaction was not committed before this instant: the first request was sent then that may have done it.
    pub(super) sent: BootInstant,
}

/// What transactions without an answer may still do. Dropped, it leaves the nodes that they may make to the janitor.
pub(super) struct Unsettled {
    session: Session,
    nodes: Vec<(ZnodePath, Protection)>,
    /// When the first of these transactions was sent.
    since: Option<BootInstant>,
}

impl Unsettled {
    pub(super) fn none(session: &Session) -> Self {
        Self { session: session.clone(), nodes: Vec::new(), since: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.since.is_none()
    }

    /// When the first transaction was sent that has no answer.
    pub(super) fn since(&self) -> Option<BootInstant> {
        self.since
    }

    /// One of the tries was committed, so no other can be.
    pub(super) fn settle(&mut self) {
        self.nodes.clear();
        self.since = None;
    }

    pub(super) fn absorb(&mut self, mut other: Self) {
        self.since = self.since.into_iter().chain(other.since).min();
        for node in std::mem::take(&mut other.nodes) {
            if !self.nodes.contains(&node) {
                self.nodes.push(node);
            }
        }
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        if self.session.loss().is_some() {
            return;
        }
        for (directory, protection) in self.nodes.drain(..) {
            self.session.janitor().disown(&self.session, &directory, protection, None);
        }
    }
}

/// Tries to make nodes by a transaction that rests on a node we hold.
pub(super) struct Attempt {
    own: Arc<OwnNode>,
    session: Session,
    wanted: Vec<Wanted>,
    /// Whether the transaction takes the own node away.
    replaces: bool,
    /// When the first try before this attempt was sent that may have been committed.
    in_doubt_since: Option<BootInstant>,
    unsettled: Unsettled,
    resting: Resting,
}

impl Attempt {
    pub(super) fn new(own: &Arc<OwnNode>, wanted: Vec<Wanted>, replaces: bool) -> Self {
        let (session, resting) = (own.session().clone(), Resting::on([own]));
        let unsettled = Unsettled::none(&session);
        let (own, in_doubt_since) = (Arc::clone(own), None);
        Self { own, unsettled, session, wanted, replaces, in_doubt_since, resting }
    }

    /// The same transaction may have been committed already, by a request of that instant or later.
    pub(super) fn in_doubt_since(self, since: Option<BootInstant>) -> Self {
        Self { in_doubt_since: since, ..self }
    }

    /// `operations` begin with those of the nodes wanted and end with that of the own node.
    pub(super) async fn commit(&mut self, operations: &[WriteOp], deadline: Deadline) -> Result<Done, Error> {
        let mut directories_made = 0;
        loop {
            let (sent, before) = (self.session.now(), self.unsettled.since);
            let connection = self.session.connection();
            self.arm(sent);
            let committed = tokio::select! {
                biased;
                committed = self.session.multi(operations, deadline) => committed,
                lost = self.own.lost() => return Err(lost.into()),
            };
            let (index, refusal) = match committed {
                Ok(results) => return self.read(results, connection, sent),
                Err(MultiError::Operation { index, refusal }) => (index, refusal),
                Err(MultiError::Request(WireError::SessionEnded(reason))) => return Err(self.ended(reason)),
                Err(MultiError::Request(WireError::Refused(refusal))) => {
                    self.disarm(before);
                    if !refusal.is_transient() {
                        return Ok(Done::Refused(self.own.path().to_owned(), refusal));
                    }
                    pause(&self.session, deadline).await;
                    self.time_left(deadline)?;
                    continue;
                }
                Err(MultiError::Request(error)) => {
                    debug!(path = self.own.path(), %error, "a transaction without an answer; looking for its nodes");
                    return self.look(deadline, false).await;
                }
            };
            let is_own = index + 1 == operations.len();
            match refusal {
                // An earlier try was committed; or someone else deleted the own node.
                Refusal::NoNode if is_own => {
                    let is_only_try = before.is_none() && self.own.rests_once();
                    return self.look(deadline, is_only_try).await;
                }
                Refusal::NodeExists if index < self.wanted.len() => return self.look(deadline, false).await,
                Refusal::NoNode if index < self.wanted.len() && directories_made < DIRECTORIES_MAX => {
                    self.disarm(before);
                    directories_made += 1;
                    self.make_directory(index, deadline).await?;
                }
                refusal => {
                    self.disarm(before);
                    let path = operations.get(index).map(WriteOp::path).unwrap_or_default().to_owned();
                    return Ok(Done::Refused(path, refusal));
                }
            }
        }
    }

    /// From when the request is sent, the nodes may come to stand and the own one may go.
    fn arm(&mut self, sent: BootInstant) {
        self.unsettled.since.get_or_insert(sent);
        let held = self.wanted.iter().filter(|wanted| wanted.is_held);
        self.unsettled.nodes = held.map(|wanted| (wanted.directory.clone(), wanted.protection)).collect();
        if self.replaces {
            self.own.set_replacing(true);
        }
    }

    /// This try was certainly not committed; one of those `before` may have been.
    fn disarm(&mut self, before: Option<BootInstant>) {
        match before {
            None => self.unsettled.settle(),
            before => self.unsettled.since = before,
        }
    }

    /// Reads the answer to a request that was `sent` then; `connection` is the one there was before.
    fn read(
        &self,
        results: Vec<WriteResult>,
        connection: Option<u64>,
        sent: BootInstant,
    ) -> Result<Done, Error> {
        let mut nodes = Vec::new();
        for (result, wanted) in results.into_iter().zip(&self.wanted) {
            let WriteResult::Created(created) = result else {
                return Err(self.confused("an answer that does not fit the request"));
            };
            if let (true, Some(stat)) = (wanted.is_held, &created.stat) {
                self.session
                    .check_owner(&created.path, stat)
                    .map_err(|_| self.ended(LossReason::SessionReplaced))?;
            }
            let origin = Origin { made_on: connection, is_owner_seen: created.stat.is_some() };
            nodes.push(MadeNode { path: created.path, origin });
        }
        // The own node was there until now: no earlier try was committed.
        Ok(Done::Made(Made { nodes, sent }))
    }

    /// Finds out whether the transaction was committed; `is_only_try`, if no other try of it can have been.
    async fn look(&mut self, deadline: Deadline, is_only_try: bool) -> Result<Done, Error> {
        loop {
            // Its going would be the transaction's doing; everything else that ends it ends the search.
            self.own.check()?;
            match self.look_once(deadline).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {
                    self.own.set_replacing(false);
                    // A try may have been committed, and what it made be gone since: then nobody else deleted this one.
                    if self.replaces && !is_only_try {
                        self.own.set_given_up();
                    }
                    self.own.lose(LossReason::NodeDeleted);
                    return Err(self.own.loss_by(LossReason::NodeDeleted).into());
                }
                Err(WireError::SessionEnded(reason)) => return Err(self.ended(reason)),
                Err(error) => debug!(path = self.own.path(), %error, "looking again"),
            }
            pause(&self.session, deadline).await;
            self.time_left(deadline)?;
        }
    }

    /// `None` when neither the own node nor what was to replace it is there.
    async fn look_once(&self, deadline: Deadline) -> Result<Option<Done>, WireError> {
        let session = &self.session;
        // Back to back: what is read is read from a server that has caught up.
        let mut sync = session.read(|wire| wire.sync("/"));
        let mut own = session.read(|wire| wire.exists(self.own.path()));
        let lists = self.wanted.iter().map(|wanted| {
            let list = session.read(|wire| wire.children(wanted.directory.as_str()));
            (wanted, list)
        });
        let lists: Vec<_> = lists.collect();
        session.answer(&mut sync, deadline).await?;
        let own = session.answer(&mut own, deadline).await?;
        let mut found = Vec::new();
        for (wanted, mut list) in lists {
            let children = match session.answer(&mut list, deadline).await {
                Err(WireError::Refused(Refusal::NoNode)) => Vec::new(),
                children => children?,
            };
            let Some(child) = wanted.protection.find(&children) else {
                continue;
            };
            let path = wanted.directory.listed_child(child);
            if wanted.is_held {
                let mut reply = session.read(|wire| wire.exists(&path));
                match session.answer(&mut reply, deadline).await? {
                    Some(stat) => session.check_owner(&path, &stat)?,
                    None => continue,
                }
            }
            // Found over whatever connection: it says nothing of that one.
            found.push(MadeNode { path, origin: Origin::FOUND });
        }
        Ok(match (found.len() == self.wanted.len(), own) {
            (true, _) => Some(Done::Made(self.found(found))),
            (false, Some(_)) => Some(Done::Nothing),
            (false, None) => None,
        })
    }

    /// Which of the tries made the nodes is not known: the first may have.
    fn found(&self, nodes: Vec<MadeNode>) -> Made {
        let tries = self.in_doubt_since.into_iter().chain(self.unsettled.since);
        let sent = tries.min().unwrap_or_else(|| self.session.now());
        Made { nodes, sent }
    }

    async fn make_directory(&self, index: usize, deadline: Deadline) -> Result<(), Error> {
        let Some(wanted) = self.wanted.get(index) else {
            return Ok(());
        };
        match make_directory(&self.session, &wanted.directory, Lasting::WhileUsed, deadline).await {
            Ok(()) => Ok(()),
            Err(WireError::SessionEnded(reason)) => Err(self.ended(reason)),
            Err(error @ WireError::Refused(refusal)) if !refusal.is_transient() => {
                Err(Error::of_wire(Operation::Create, wanted.directory.as_str(), &error, deadline))
            }
            // Making a directory twice does no harm.
            Err(_) => {
                pause(&self.session, deadline).await;
                self.time_left(deadline)
            }
        }
    }

    /// What was made is held from here on; the own node is gone, or stays, as it was asked for.
    pub(super) fn settle(mut self, nodes: Vec<MadeNode>) -> Result<Vec<Foothold>, Error> {
        let mut made = Vec::new();
        for (MadeNode { path, origin }, wanted) in nodes.into_iter().zip(&self.wanted) {
            if wanted.is_held {
                let mut standing = Standing::of(&self.session, path);
                let node = self.session.own(standing.shared_path(), Arc::default(), None, origin);
                standing.known_as(&node);
                made.push(Foothold { entry: Entry(node), standing });
            }
        }
        self.unsettled.settle();
        self.resting.settle();
        // The hold it comes from must have been valid up to here.
        self.own.check()?;
        for foothold in &made {
            if !self.session.grant(foothold.node()) {
                return Err(self.own.loss_by(self.session.loss().unwrap_or(LossReason::LeaseRanOut)).into());
            }
            foothold.node().check()?;
        }
        Ok(made)
    }

    pub(super) fn give_up(mut self) -> Unsettled {
        self.own.set_replacing(false);
        if self.unsettled.is_empty() {
            self.resting.settle();
        }
        std::mem::replace(&mut self.unsettled, Unsettled::none(&self.session))
    }

    fn time_left(&self, deadline: Deadline) -> Result<(), Error> {
        match deadline.has_passed() {
            true => Err(time_over(deadline, self.own.path(), Phase::Answer)),
            false => Ok(()),
        }
    }

    fn ended(&self, reason: LossReason) -> Error {
        match reason {
            LossReason::Closed => Error::Closed,
            reason => self.own.loss_by(reason).into(),
        }
    }

    fn confused(&self, cause: &str) -> Error {
        Error::Unknown {
            operation: Operation::Commit,
            path: self.own.path().to_owned(),
            cause: cause.to_owned(),
        }
    }
}
