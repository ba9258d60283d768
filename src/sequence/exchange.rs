//! One hold turned into others, in one transaction: at no instant is there neither, and at none are there both.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use thiserror::Error as ThisError;
use tracing::{debug, instrument};

use super::claim::Standing;
use super::directory::{Lasting, make_directory};
use super::hold::{Foothold, Hold};
use super::interruption::{pause, time_over};
use super::line::Line;
use super::name::{Label, NodeName, Protection};
use super::place::Entry;
use crate::backend::{CreateMode, MultiError, WireError, WriteOp, WriteResult};
use crate::deadline::Deadline;
use crate::error::{Error, LossReason, Operation, Phase, Refusal};
use crate::path::ZnodePath;
use crate::request_size;
use crate::session::{OwnNode, Session};

/// How often a directory is made again that was reaped between its making and our create.
const DIRECTORIES_MAX: usize = 8;

/// A transaction that ends a hold and makes nodes in its place.
///
/// It commits only while the hold's own node stands, and deletes that node: so it is committed at most once, however
/// often it has to be tried, and a link that breaks on the way leaves no doubt that a look cannot settle.
///
/// # Cancel safety
///
/// Dropped before or during [`commit`](Self::commit), it gives up the hold and whatever was made in its place.
#[must_use = "nothing happens before commit()"]
pub struct Exchange {
    hold: Hold,
    wanted: Vec<Wanted>,
    others: Vec<WriteOp>,
    error: Option<Error>,
}

/// A node to be made.
struct Wanted {
    directory: ZnodePath,
    protection: Protection,
    operation: WriteOp,
    /// Whether the new hold rests on it; else it stays on its own.
    is_held: bool,
}

/// What a committed exchange gave.
#[derive(Debug)]
#[must_use]
pub struct Exchanged {
    /// The new hold; `None` if the exchange made no node for one. It has the old one's fencing token.
    pub hold: Option<Hold>,
    /// Whether everything the old hold [looked at](Hold::look) was seen over the connection that carried the
    /// transaction. If not, it may have been out of date: look again before relying on it.
    pub is_fresh: bool,
}

/// Why an exchange was not done.
#[derive(Debug, ThisError)]
pub enum ExchangeError {
    /// Nothing was changed, and the hold still stands: look, and try again.
    #[error("the exchange was not done")]
    NotDone {
        /// The hold as it was.
        hold: Box<Hold>,
        /// Which node's operation the server refused, and why; `None` when the link broke.
        refused: Option<(String, Refusal)>,
    },
    /// The hold is given up.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl Exchange {
    pub(super) fn of(hold: Hold) -> Self {
        Self { hold, wanted: Vec::new(), others: Vec::new(), error: None }
    }

    /// A contender's node in `line`, with the next number. Its directory is made if need be.
    pub fn enter(mut self, line: &Line) -> Self {
        let protection = self.next_protection();
        let path = line.directory().listed_child(&protection.name(line.label()));
        self.want(line.directory(), protection, path, line.data(), CreateMode::EphemeralSequential, true);
        self
    }

    /// A contender's node in the hold's own directory, *with the hold's own number*: whoever waits behind the hold now
    /// waits behind this node.
    pub fn turn_into(mut self, label: Label, data: &[u8]) -> Self {
        let protection = self.next_protection();
        match in_place(self.hold.path(), protection, label) {
            Some((directory, path)) => {
                self.want(&directory, protection, path, data, CreateMode::Ephemeral, true);
            }
            None => self.fail(uncounted(self.hold.path())),
        }
        self
    }

    /// A numbered node in `directory` that stays when the session ends. It is no part of the new hold.
    pub fn leave(mut self, directory: &ZnodePath, label: Label, data: &[u8]) -> Self {
        let protection = self.next_protection();
        match self.hold.manager().full_path(directory) {
            Ok(full) => {
                let path = full.listed_child(&protection.name(label));
                self.want(&full, protection, path, data, CreateMode::PersistentSequential, false);
            }
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Commits only if the node has this version.
    pub fn check(self, path: &ZnodePath, version: i32) -> Self {
        self.also(path, |path| WriteOp::Check { path, version: Some(version) })
    }

    /// Writes a node's data, if it has this version.
    pub fn set(self, path: &ZnodePath, data: Vec<u8>, version: i32) -> Self {
        self.also(path, |path| WriteOp::SetData { path, data, version: Some(version) })
    }

    /// Deletes a node, whatever version it has.
    pub fn delete(self, path: &ZnodePath) -> Self {
        self.also(path, |path| WriteOp::Delete { path, version: None })
    }

    fn also(mut self, path: &ZnodePath, operation: impl FnOnce(String) -> WriteOp) -> Self {
        match self.hold.manager().full_path(path) {
            Ok(full) => self.others.push(operation(full.to_string())),
            Err(error) => self.fail(error.into()),
        }
        self
    }

    /// Names that depend on the hold's own node alone: only one try can be committed, so all may have the same.
    fn next_protection(&self) -> Protection {
        let number = u128::try_from(self.wanted.len()).unwrap_or_default() + 1;
        match Protection::of(self.hold.path()) {
            Some(own) => own.derived(number),
            None => Protection::new(self.hold.session().settings().host.unique()),
        }
    }

    fn want(
        &mut self,
        directory: &ZnodePath,
        protection: Protection,
        path: String,
        data: &[u8],
        mode: CreateMode,
        is_held: bool,
    ) {
        let operation = WriteOp::Create { path, data: data.to_owned(), mode };
        self.wanted.push(Wanted { directory: directory.clone(), protection, operation, is_held });
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Commits. One round trip, and no other request, when all goes well.
    ///
    /// # Errors
    ///
    /// [`ExchangeError::NotDone`] with the hold as it was, when the server refused an operation, or the link broke and
    /// a look showed that nothing had been done. [`ExchangeError::Failed`] when the hold was lost, the deadline passed
    /// without an answer, or an argument cannot be right.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: dropped, it gives up the hold and whatever was made in its place.
    #[instrument(level = "debug", skip_all, fields(node = self.hold.path()))]
    pub async fn commit(self, deadline: Deadline) -> Result<Exchanged, ExchangeError> {
        let Self { hold, wanted, others, error } = self;
        if let Some(error) = error {
            return Err(error.into());
        }
        hold.check().map_err(Error::Lost)?;
        let mut operations: Vec<WriteOp> = wanted.iter().map(|wanted| wanted.operation.clone()).collect();
        operations.extend(others);
        operations.push(WriteOp::Delete { path: hold.path().to_owned(), version: None });
        request_size::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        let mut attempt = Attempt::new(hold.node(), wanted, true);
        let refused = match attempt.commit(&operations, deadline).await? {
            Done::Made(paths) => {
                let is_fresh = hold.has_fresh_looks();
                return Ok(Exchanged { hold: hold.replaced_by(attempt.settle(paths)?), is_fresh });
            }
            Done::Refused(path, refusal) => Some((path, refusal)),
            Done::Nothing => None,
        };
        // What may still come to stand is found by the next try, or by the janitor after the hold's end.
        Err(ExchangeError::NotDone { hold: Box::new(hold.unsettled(attempt.give_up())), refused })
    }
}

impl Hold {
    /// Makes a further hold beside this one, by a node *with this hold's own number*: who waits behind this hold waits
    /// behind both. It has this hold's fencing token. One round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when this hold is lost; [`Error::Refused`] when the server will not have the node.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind, and this hold stays.
    pub async fn beside(&self, label: Label, data: &[u8]) -> Result<Self, Error> {
        request_size::check(data.len())?;
        let node = self.node();
        let session = node.session().clone();
        // The name is the same at every try: that it is there already means that an earlier one was committed.
        let protection = Protection::new(session.settings().host.unique());
        let (directory, path) =
            in_place(self.path(), protection, label).ok_or_else(|| uncounted(self.path()))?;
        let operation = WriteOp::Create { path, data: data.to_owned(), mode: CreateMode::Ephemeral };
        let operations = [operation.clone(), WriteOp::Check { path: self.path().to_owned(), version: None }];
        let wanted = vec![Wanted { directory, protection, operation, is_held: true }];
        let mut attempt = Attempt::new(node, wanted, false);
        loop {
            self.check()?;
            match attempt.commit(&operations, Deadline::never()).await? {
                Done::Made(paths) => {
                    let mut made = attempt.settle(paths)?.into_iter();
                    let first = made.next().ok_or(Error::Closed)?;
                    return Ok(Self::new(
                        self.manager().clone(),
                        first,
                        made.collect(),
                        self.fencing_token(),
                    ));
                }
                Done::Refused(path, refusal) => {
                    return Err(Error::Refused { operation: Operation::Create, path, refusal });
                }
                Done::Nothing => {}
            }
        }
    }
}

/// Directory and whole path of a node with the number of the node at `path`.
fn in_place(path: &str, protection: Protection, label: Label) -> Option<(ZnodePath, String)> {
    let whole: ZnodePath = path.parse().ok()?;
    let directory = whole.parent()?;
    let own = NodeName::parse(whole.name()).filter(NodeName::is_ordered_by_number)?;
    let name = format!("{}{:010}", protection.name(label), own.sequence());
    let path = directory.listed_child(&name);
    Some((directory, path))
}

/// Numbers have come to their end in this directory, and nothing can be told by them any more.
pub(super) fn uncounted(path: &str) -> Error {
    Error::NumbersUsedUp { path: path.to_owned() }
}

/// What a try came to.
enum Done {
    /// Committed; the paths of the nodes wanted, in order.
    Made(Vec<String>),
    /// The server refused the operation on this node: nothing was done.
    Refused(String, Refusal),
    /// A look showed that nothing was done.
    Nothing,
}

/// Nodes of ours that may come to stand by a transaction without an answer. Dropped, it leaves them to the janitor.
pub(super) struct Unsettled {
    session: Session,
    nodes: Vec<(ZnodePath, Protection)>,
}

impl Unsettled {
    pub(super) fn none(session: &Session) -> Self {
        Self { session: session.clone(), nodes: Vec::new() }
    }

    /// One of the tries was committed, so no other can be.
    pub(super) fn settle(&mut self) {
        self.nodes.clear();
    }

    pub(super) fn absorb(&mut self, mut other: Self) {
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
struct Attempt {
    own: Arc<OwnNode>,
    session: Session,
    wanted: Vec<Wanted>,
    /// Whether the transaction takes the own node away.
    replaces: bool,
    unsettled: Unsettled,
}

impl Attempt {
    fn new(own: &Arc<OwnNode>, wanted: Vec<Wanted>, replaces: bool) -> Self {
        let session = own.session().clone();
        Self { own: Arc::clone(own), unsettled: Unsettled::none(&session), session, wanted, replaces }
    }

    /// `operations` begin with those of the nodes wanted and end with that of the own node.
    async fn commit(&mut self, operations: &[WriteOp], deadline: Deadline) -> Result<Done, Error> {
        let mut directories_made = 0;
        loop {
            let before = self.arm();
            let committed = tokio::select! {
                biased;
                committed = self.session.multi(operations, deadline) => committed,
                lost = self.own.lost() => return Err(lost.into()),
            };
            let (index, refusal) = match committed {
                Ok(results) => return self.read(results),
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
                    return self.look(deadline).await;
                }
            };
            let is_own = index + 1 == operations.len();
            match refusal {
                // An earlier try was committed; or someone else deleted the own node.
                Refusal::NoNode if is_own => return self.look(deadline).await,
                Refusal::NodeExists if index < self.wanted.len() => return self.look(deadline).await,
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
    fn arm(&mut self) -> bool {
        let was_armed = !self.unsettled.nodes.is_empty();
        let held = self.wanted.iter().filter(|wanted| wanted.is_held);
        self.unsettled.nodes = held.map(|wanted| (wanted.directory.clone(), wanted.protection)).collect();
        if self.replaces {
            self.own.set_leaving(true);
        }
        was_armed
    }

    /// This try was certainly not committed; an earlier one may have been.
    fn disarm(&mut self, was_armed: bool) {
        if !was_armed {
            self.unsettled.settle();
        }
    }

    fn read(&self, results: Vec<WriteResult>) -> Result<Done, Error> {
        let mut paths = Vec::new();
        for (result, wanted) in results.into_iter().zip(&self.wanted) {
            let WriteResult::Created(created) = result else {
                return Err(self.confused("an answer that does not fit the request"));
            };
            if let (true, Some(stat)) = (wanted.is_held, &created.stat) {
                self.session
                    .check_owner(&created.path, stat)
                    .map_err(|_| self.ended(LossReason::SessionReplaced))?;
            }
            paths.push(created.path);
        }
        Ok(Done::Made(paths))
    }

    /// Finds out whether the transaction was committed.
    async fn look(&mut self, deadline: Deadline) -> Result<Done, Error> {
        loop {
            // Its going would be the transaction's doing; everything else that ends it ends the search.
            self.own.check()?;
            match self.look_once(deadline).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {
                    self.own.set_leaving(false);
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
            found.push(path);
        }
        Ok(match (found.len() == self.wanted.len(), own) {
            (true, _) => Some(Done::Made(found)),
            (false, Some(_)) => Some(Done::Nothing),
            (false, None) => None,
        })
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
    fn settle(mut self, paths: Vec<String>) -> Result<Vec<Foothold>, Error> {
        let mut made = Vec::new();
        for (path, wanted) in paths.into_iter().zip(&self.wanted) {
            if wanted.is_held {
                let standing = Standing::of(&self.session, path.clone());
                made.push(Foothold { entry: Entry(self.session.own(path)), standing });
            }
        }
        self.unsettled.settle();
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

    fn give_up(mut self) -> Unsettled {
        self.own.set_leaving(false);
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

impl Debug for Exchange {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Exchange")
            .field("hold", &self.hold)
            .field("wanted", &self.wanted.len())
            .finish_non_exhaustive()
    }
}
