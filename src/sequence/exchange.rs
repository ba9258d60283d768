//! One hold turned into others, in one transaction: at no instant is there neither, and at none are there both.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use thiserror::Error as ThisError;
use tracing::{Instrument, debug_span};

use super::attempt::{Attempt, Done, Wanted};
use super::hold::Hold;
use super::line::Line;
use super::name::{Kind, Label, NodeName, Protection};
use crate::backend::{CreateMode, WriteOp};
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::error::{ConfigError, Error, Operation, Refusal};
use crate::path::ZnodePath;
use crate::request_size;
use crate::session::Word;

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
    word: Option<Word>,
    error: Option<Error>,
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
    /// The transaction was not committed before this instant: the request was sent then. Where an earlier
    /// [`commit`](Exchange::commit) of the same hold had no answer, and it is not known which of them was committed, it is
    /// when the first of them was sent. The nodes may be found long after the transaction: the instant of the answer
    /// bounds nothing.
    pub sent: BootInstant,
}

/// Why an exchange was not done.
#[derive(Debug, ThisError)]
pub enum ExchangeError {
    /// Nothing was changed, and the hold still stands: look, and try again.
    #[error("the exchange was not done")]
    NotDone {
        /// The hold as it was.
        hold: Box<Hold>,
        /// Which node's operation the server refused, and why; `None` when the link broke, or who is next was gone.
        refused: Option<(String, Refusal)>,
    },
    /// The hold is given up.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl Exchange {
    pub(super) fn of(hold: Hold) -> Self {
        Self { hold, wanted: Vec::new(), others: Vec::new(), word: None, error: None }
    }

    /// A contender's node in `line`, with the next number. Its directory is made if need be.
    pub fn enter(mut self, line: &Line) -> Self {
        let protection = self.next_protection();
        let path = line.directory().listed_child(&protection.name(line.label()));
        self.want(line.directory(), protection, path, line.data(), CreateMode::EphemeralSequential, true);
        self
    }

    /// A reader's node in the directory of this writer's hold, *with the hold's own number*: whoever waits behind the hold
    /// now waits behind this node. For any other hold or label [`commit`](Self::commit) fails with
    /// [`Error::Config`].
    pub fn turn_into(mut self, label: Label, data: &[u8]) -> Self {
        let protection = self.next_protection();
        match in_place(self.hold.path(), protection, label) {
            Some((directory, path)) => {
                self.want(&directory, protection, path, data, CreateMode::Ephemeral, true);
            }
            None => self.fail(no_reader_at(self.hold.path())),
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

    /// What the next one in line is [told](Hold::told), if it is of this process and nobody comes in between: what holds
    /// once the transaction is committed, and until the next holder changes it. It is not told where the hold
    /// [may have seen](Exchanged::is_fresh) what was out of date.
    pub fn telling<T: Any + Send + Sync>(self, word: T) -> Self {
        Self { word: Some(Arc::new(word)), ..self }
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
    pub async fn commit(self, deadline: Deadline) -> Result<Exchanged, ExchangeError> {
        let span = debug_span!("exchange", path = self.hold.path());
        let exchanged = self.commit_now(deadline).instrument(span).await;
        exchanged.inspect(|exchanged| exchanged.hold.iter().for_each(|hold| hold.shown(None)))
    }

    async fn commit_now(self, deadline: Deadline) -> Result<Exchanged, ExchangeError> {
        let Self { hold, wanted, others, word, mut error } = self;
        if hold.width() > 1 {
            error = Some(Error::Config(ConfigError::Setting {
                name: "exchange",
                value: format!("a hold of {} nodes", hold.width()),
                advice: "exchange a hold that rests on one node",
            }));
        }
        if let Some(error) = error {
            return Err(error.into());
        }
        hold.check().map_err(Error::Lost)?;
        let mut operations: Vec<WriteOp> = wanted.iter().map(|wanted| wanted.operation.clone()).collect();
        operations.extend(others);
        // The next one is the head then: were its node deleted by hand, strangers behind it would come in, too.
        let next = hold.node().next_in_line();
        operations
            .extend(next.iter().map(|next| WriteOp::Check { path: next.path().to_owned(), version: None }));
        operations.push(WriteOp::Delete { path: hold.path().to_owned(), version: None });
        request_size::check(operations.iter().map(WriteOp::bytes).sum()).map_err(Error::Config)?;
        // A reader may come to stand in a writer's place.
        let place = hold.node().position().filter(|place| place.kind == Kind::Lock);
        let departure = place.and_then(|place| hold.session().head_will_leave(place));
        let mut attempt = Attempt::new(hold.node(), wanted, true).in_doubt_since(hold.in_doubt_since());
        let refused = match attempt.commit(&operations, deadline).await? {
            Done::Made(made) => {
                let (is_fresh, sent) = (hold.has_fresh_looks(), made.sent);
                let made = attempt.settle(made.nodes)?;
                let word = word.filter(|_| is_fresh);
                departure.into_iter().for_each(|departure| departure.done(word.clone()));
                let new = hold.replaced_by(made, next.as_ref(), word);
                return Ok(Exchanged { hold: new, is_fresh, sent });
            }
            Done::Refused(path, Refusal::NoNode) if next.as_ref().is_some_and(|next| next.path() == path) => {
                if let Some(next) = next.filter(|next| next.end().is_none()) {
                    next.is_missing();
                }
                None
            }
            Done::Refused(path, refusal) => Some((path, refusal)),
            Done::Nothing => None,
        };
        // What may still come to stand is found by the next try, or by the janitor after the hold's end.
        Err(ExchangeError::NotDone { hold: Box::new(hold.unsettled(attempt.give_up())), refused })
    }
}

impl Hold {
    /// Makes a reader's hold beside this writer's, by a node *with this hold's own number*: who waits behind this hold
    /// waits behind both. It has this hold's fencing token. One round trip.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when this hold is lost; [`Error::Refused`] when the server will not have the node;
    /// [`Error::Config`] when this is no writer's hold, or the label no reader's; [`Error::NumbersUsedUp`] near the end
    /// of the numbers.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no node is left behind, and this hold stays.
    pub async fn beside(&self, label: Label, data: &[u8]) -> Result<Self, Error> {
        request_size::check(data.len())?;
        let node = self.node();
        let session = node.session().clone();
        loop {
            // A new name for every try: one that was given up may still come to stand, and is the janitor's then.
            let protection = Protection::new(session.settings().host.unique());
            let (directory, path) =
                in_place(self.path(), protection, label).ok_or_else(|| no_reader_at(self.path()))?;
            let operation = WriteOp::Create { path, data: data.to_owned(), mode: CreateMode::Ephemeral };
            let operations =
                [operation.clone(), WriteOp::Check { path: self.path().to_owned(), version: None }];
            let wanted = vec![Wanted { directory, protection, operation, is_held: true }];
            let mut attempt = Attempt::new(node, wanted, false);
            self.check()?;
            match attempt.commit(&operations, Deadline::never()).await? {
                Done::Made(made) => {
                    let mut made = attempt.settle(made.nodes)?.into_iter();
                    let first = made.next().ok_or(Error::Closed)?;
                    let (manager, token) = (self.manager().clone(), self.fencing_token());
                    let held = Self::new(manager, first, made.collect(), token, None);
                    held.shown(None);
                    return Ok(held);
                }
                Done::Refused(path, refusal) => {
                    return Err(Error::Refused { operation: Operation::Create, path, refusal });
                }
                Done::Nothing => {}
            }
        }
    }
}

/// Directory and whole path of a reader's node with the number of the writer's node at `path`.
fn in_place(path: &str, protection: Protection, label: Label) -> Option<(ZnodePath, String)> {
    let whole: ZnodePath = path.parse().ok()?;
    let directory = whole.parent()?;
    let own = NodeName::parse(whole.name()).filter(NodeName::is_ordered_by_number)?;
    // Only behind a writer does everyone look again when it goes. Anywhere else a node with a number that others have
    // passed already would be overlooked.
    if own.kind() != Kind::Write || label.kind() != Kind::Read {
        return None;
    }
    let name = format!("{}{:010}", protection.name(label), own.sequence());
    let path = directory.listed_child(&name);
    Some((directory, path))
}

/// Why there can be no reader's node with the number of the node at `path`.
fn no_reader_at(path: &str) -> Error {
    let name = path.rsplit('/').next().and_then(NodeName::parse);
    if name.is_some_and(|name| name.kind() == Kind::Write && !name.is_ordered_by_number()) {
        return uncounted(path);
    }
    Error::Config(ConfigError::Setting {
        name: "hold",
        value: path.to_owned(),
        advice: "only a writer's hold can become a reader's, or have one beside it; use Label::READ",
    })
}

/// Numbers have come to their end in this directory, and nothing can be told by them any more.
pub(super) fn uncounted(path: &str) -> Error {
    Error::NumbersUsedUp { path: path.to_owned() }
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
