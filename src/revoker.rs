use std::fmt::{self, Display, Formatter};

use tracing::{info, warn};

use crate::error::{ConfigError, Error, Operation, Refusal};
use crate::hold::{REVOKE, is_request};
use crate::inspect::{ContenderInfo, DATA_BYTES_MAX, Identity, Role, read_node};
use crate::manager::ConnectionManager;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::WireError;
use crate::znode::name::{Kind, NodeName};
use crate::znode::path::IntoPath;

/// Revokes holds and waits of other contenders: by a message, or by force.
///
/// It works on the result of an inspection ([`LockQueue::inspect`](crate::LockQueue::inspect), `inspect()` of
/// every recipe), after any filter. It never hits a later contender: the node must have been created by the
/// transaction that the inspection shows ([`ContenderInfo::czxid`]), and the server checks the version of the
/// node when it writes or deletes. The methods that take a path rely on the name alone: the name of a node of
/// this library, of Curator and of kazoo has an id that is never used again.
///
/// # Asking
///
/// [`ask`](Self::ask) writes `__REVOKE__` into the node, as Curator's `Revoker` does. A holder that listens
/// ([`Hold::revoke_requested`](crate::Hold::revoke_requested), Curator's `makeRevocable`) releases when it is
/// ready; another holder is not disturbed. The message overwrites the data of the node. [`ask`](Self::ask)
/// keeps it behind the message if the data is in this library's format ([`Identity`](crate::Identity)), so
/// that a holder that does not release stays known; [`ask_node`](Self::ask_node) does not know it. The
/// successor, which watches this node, reads the queue once more.
///
/// # By force: the risk
///
/// [`force_release`](Self::force_release) deletes the node. The successor is granted **at once, while the
/// former holder may still be working**: there are two holders. A connected holder gets an event, and its
/// `lost()` resolves; if it has held for less than a tenth of the session timeout, it learns of the loss by
/// the next confirmation, within a sixth of the timeout. A paused or disconnected holder learns of the loss
/// when it is back, and writes until then. So:
///
/// 1. Revoke only from a process that is known to be dead, or stop the process first.
/// 2. Otherwise fence the resource: set its newest token to
///    [`mark_above`](crate::FencingToken::mark_above) of the deleted node's
///    [token](ContenderInfo::fencing_token). Writes of the former holder by
///    [`Hold::txn`](crate::Hold::txn) are refused in any case.
///
/// After the delete of a node, only the promise of `txn()` holds for its lock.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use lockkeeper_core::{Deadline, Label, LockQueue, LossReason, Revoker, Role, Rule};
///
/// let queue = LockQueue::new(&manager, "/gate", Label::LOCK, Rule::MUTEX)?;
/// let held = queue.acquire(Deadline::never()).await?;
///
/// let seen = queue.inspect().await?;
/// let stale = seen.iter().filter(|of| of.role() == Role::Holder && of.identity().host() != Some("web-9"));
/// for gone in Revoker::new(&manager).force_release(stale).await? {
///     let mark = gone.fencing_token().map(|token| token.mark_above());
///     println!("{} is gone; refuse every token below {mark:?}", gone.path());
/// }
/// assert_eq!(held.lost().await.reason, LossReason::NodeDeleted);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Revoker {
    manager: ConnectionManager,
}

/// The revoker stopped before the end of its list. The contenders before the failure are in `done`. The node
/// at which it stopped may be changed ([`Error::outcome`]); the nodes after it are unchanged.
#[derive(Clone, Debug)]
pub struct RevokeError {
    /// The contenders that were asked, or whose nodes were deleted.
    pub done: Vec<ContenderInfo>,
    /// The error at which the revoker stopped.
    pub error: Error,
}

impl Display for RevokeError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped after {} of the nodes: {}", self.done.len(), self.error)
    }
}

/// The text has the error, so the source is the cause behind it.
impl std::error::Error for RevokeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.error)
    }
}

/// Returns the error without the list.
impl From<RevokeError> for Error {
    fn from(error: RevokeError) -> Self {
        error.error
    }
}

/// The action on a node.
#[derive(Clone, Debug)]
enum RevokeAction {
    /// Writes this message.
    Ask(Vec<u8>),
    Delete,
}

/// The message to a contender. Curator's holders compare all of their data with its bytes, and the data of a
/// candidate is its name for Curator's readers, too.
fn message(contender: &ContenderInfo) -> Vec<u8> {
    message_over(contender.data().unwrap_or_default(), contender.kind() == Some(Kind::LATCH))
}

/// The message over this data, of which an inspection keeps [`DATA_BYTES_MAX`] bytes.
fn message_over(data: &[u8], is_candidate: bool) -> Vec<u8> {
    // Of longer data the rest is not known, and the next request reads the message.
    let room = DATA_BYTES_MAX - REVOKE.len() - 1;
    match Identity::read(data).host() {
        _ if is_request(data) && data.len() < DATA_BYTES_MAX => data.to_vec(),
        Some(_) if !is_candidate && !is_request(data) && data.len() < room => [REVOKE, b" ", data].concat(),
        _ => REVOKE.to_vec(),
    }
}

impl Revoker {
    /// Creates a revoker that uses `manager`. Nothing is sent.
    #[must_use]
    pub fn new(manager: &ConnectionManager) -> Self {
        Self { manager: manager.clone() }
    }

    /// Asks these contenders to release. Returns those whose nodes existed.
    ///
    /// # Errors
    ///
    /// [`RevokeError`] with an [`Error::Config`] for a node that is no contender's, [`Error::Refused`] (no
    /// right to write), [`Error::Timeout`], [`Error::Unknown`] (the connection broke: a second message does
    /// no harm) or [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: some contenders may have been asked.
    pub async fn ask<'a>(
        &self,
        contenders: impl IntoIterator<Item = &'a ContenderInfo>,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        let all = contenders.into_iter().cloned().collect();
        self.each(all, |one| RevokeAction::Ask(message(one))).await
    }

    /// Asks the contender of this node to release. Returns `false` if the node does not exist. `node` is its
    /// path as in [`Hold::path`](crate::Hold::path) and [`ContenderInfo::path`].
    ///
    /// # Errors
    ///
    /// The errors inside of those of [`ask`](Self::ask).
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the contender may have been asked.
    pub async fn ask_node(&self, node: impl IntoPath) -> Result<bool, Error> {
        let path = self.manager.full_path(&node.into_path()?)?;
        check(path.as_str())?;
        self.reach(path.as_str(), RevokeAction::Ask(REVOKE.to_vec())).await
    }

    /// Deletes the nodes of these contenders, so that their successors are granted. Returns the contenders
    /// whose nodes existed, with the tokens to fence. Read [the risk](Self#by-force-the-risk) first.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask), and for a node that may not be deleted. The starts of a rate limiter are
    /// [`Error::Config`], because they cannot be given back.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: some nodes may have been deleted.
    pub async fn force_release<'a>(
        &self,
        contenders: impl IntoIterator<Item = &'a ContenderInfo>,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        self.each(contenders.into_iter().cloned().collect(), |_| RevokeAction::Delete).await
    }

    /// As [`force_release`](Self::force_release), for the contender of this node. Returns `None` if the node
    /// does not exist.
    ///
    /// # Errors
    ///
    /// The errors inside of those of [`force_release`](Self::force_release).
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the node may have been deleted.
    pub async fn force_release_node(&self, node: impl IntoPath) -> Result<Option<ContenderInfo>, Error> {
        let path = self.manager.full_path(&node.into_path()?)?;
        check(path.as_str())?;
        let (session, deadline) = self.session(path.as_str()).await?;
        let seen = read_node(&session, &self.manager, path.as_str(), deadline).await?;
        match seen {
            Some(seen) if self.reach(path.as_str(), RevokeAction::Delete).await? => Ok(Some(seen)),
            _ => Ok(None),
        }
    }

    async fn each(
        &self,
        all: Vec<ContenderInfo>,
        action: impl Fn(&ContenderInfo) -> RevokeAction,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        let mut done = Vec::new();
        for one in all {
            let kind = one.kind().filter(|_| !matches!(one.role(), Role::Recipe(_)));
            let reached = match check_kind(one.path().as_str(), kind) {
                Ok(()) => self.reach_shown(&one, &action(&one)).await,
                Err(error) => Err(error),
            };
            match reached {
                Ok(true) => done.push(one),
                Ok(false) => {}
                Err(error) => return Err(RevokeError { done, error }),
            }
        }
        Ok(done)
    }

    /// Returns whether the node that was shown existed. A node of that name which another transaction created
    /// is left alone.
    async fn reach_shown(&self, shown: &ContenderInfo, action: &RevokeAction) -> Result<bool, Error> {
        let whole = self.manager.full_path(&shown.path().into_path()?)?;
        let path = whole.as_str();
        let (session, deadline) = self.session(path).await?;
        loop {
            let mut reply = session.read(|wire| wire.exists(path));
            let failed = |error: WireError| Error::of_wire(Operation::Read, path, &error, deadline);
            let stat = session.await_reply(&mut reply, deadline).await.map_err(failed)?;
            let Some(stat) = stat.filter(|stat| stat.czxid == shown.stat().czxid) else {
                return Ok(false);
            };
            match act(&session, path, Some(stat.version), action, deadline).await {
                // The data was written since the read: the version is another one, the node may be the same.
                Err((_, WireError::Refused(Refusal::BadVersion))) if !deadline.has_passed() => {}
                answer => return reached(path, action, answer, deadline),
            }
        }
    }

    /// Returns whether the node existed.
    async fn reach(&self, path: &str, action: RevokeAction) -> Result<bool, Error> {
        let (session, deadline) = self.session(path).await?;
        let answer = act(&session, path, None, &action, deadline).await;
        reached(path, &action, answer, deadline)
    }

    async fn session(&self, path: &str) -> Result<(Session, Deadline), Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        Ok((self.manager.session(deadline, path).await?, deadline))
    }
}

/// Sends the request. The node must have this version, if there is one.
async fn act(
    session: &Session,
    path: &str,
    version: Option<i32>,
    action: &RevokeAction,
    deadline: Deadline,
) -> Result<(), (Operation, WireError)> {
    match action {
        RevokeAction::Ask(message) => {
            let mut reply = session.set_data(path, message, version);
            let answer = session.await_reply(&mut reply, deadline).await;
            answer.map(drop).map_err(|error| (Operation::Write, error))
        }
        RevokeAction::Delete => {
            let mut reply = session.write(|wire| wire.delete(path, version));
            session.await_reply(&mut reply, deadline).await.map_err(|error| (Operation::Delete, error))
        }
    }
}

fn reached(
    path: &str,
    action: &RevokeAction,
    answer: Result<(), (Operation, WireError)>,
    deadline: Deadline,
) -> Result<bool, Error> {
    match answer {
        Ok(()) => {
            match action {
                // Asking takes nothing away: members of a partition ask at each move of an item.
                RevokeAction::Ask(_) => info!(path, "a contender is asked to release"),
                RevokeAction::Delete => warn!(path, "revoked"),
            }
            Ok(true)
        }
        Err((_, WireError::Refused(Refusal::NoNode))) => Ok(false),
        Err((operation, error)) => Err(Error::of_wire(operation, path, &error, deadline)),
    }
}

/// Refuses a node that is no contender's, so that a mistake cannot delete a node of the application.
fn check(path: &str) -> Result<(), Error> {
    let name = path.rsplit('/').next().unwrap_or_default();
    check_kind(path, NodeName::parse(name).map(|name| name.kind()))
}

fn check_kind(path: &str, kind: Option<Kind>) -> Result<(), Error> {
    match kind {
        Some(kind) if kind != Kind::OTHER => Ok(()),
        _ => Err(Error::Config(ConfigError::Setting {
            name: "node",
            value: path.to_owned(),
            advice: "name the node of a holder or a waiter, as inspect() shows it",
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nodes_of_contenders_can_be_revoked() {
        for path in [
            "/a/_c_x-lock-0000000001",
            "/a/x__lock__0000000001",
            "/a/l/_c_x-lease-0000000001",
            "/a/_c_x-latch-0000000001",
        ] {
            assert!(check(path).is_ok(), "{path}");
        }
        for path in ["/", "/a", "/a/config", "/a/starts/_c_x-start-0000000001", "/a/gate-0000000001"] {
            assert!(check(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_request_keeps_what_the_node_said_as_long_as_the_next_one_can_read_all_of_it() {
        let said = |length: usize| format!("host=a pid=7 {}", "x".repeat(length - 13)).into_bytes();
        let longest = said(DATA_BYTES_MAX - REVOKE.len() - 2);
        let request = message_over(&longest, false);
        assert_eq!(request, [REVOKE, b" ", &longest].concat());
        assert_eq!(message_over(&request, false), request, "the next one reads it as a whole");
        assert_eq!(message_over(&said(longest.len() + 1), false), REVOKE);
        assert_eq!(message_over(&said(DATA_BYTES_MAX), false), REVOKE);
        assert_eq!(message_over(&longest, true), REVOKE, "the name of a candidate");
        assert_eq!(message_over(b"10.0.0.7", false), REVOKE, "data of the application's own");
    }
}
