use thiserror::Error as ThisError;

use crate::error::{ConfigError, Error, Operation, Refusal};
use crate::manager::ConnectionManager;
use crate::queue::{ContenderInfo, Kind, NodeName, REVOKE, Role, read_node};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::WireError;
use crate::znode::path::{PathError, ZnodePath};

/// Takes locks away from who holds them: by asking, or by force.
///
/// It works on what an inspection showed ([`LockQueue::inspect`](crate::LockQueue::inspect), `inspect()` of
/// every recipe), filtered as you like. Nobody who came later is hit: a node's path is its own for ever.
///
/// # Asking
///
/// [`ask`](Self::ask) writes `__REVOKE__` into the node, as Curator's `Revoker` does. A holder that listens
/// ([`Hold::revoke_requested`](crate::Hold::revoke_requested), Curator's `makeRevocable`) lets go when it
/// likes; one that does not is not disturbed. What the node said of who it is, is overwritten. Who waits
/// right behind it looks at the line once more.
///
/// # By force: the risk
///
/// [`force_release`](Self::force_release) deletes the node. The next in line is granted **at once, while the
/// former holder may be in the middle of its work**: two holders. A running and connected holder is told by
/// an event, and its `lost()` resolves; one held for less than a tenth of the session timeout, by the next
/// confirmation, within a sixth of it. One that is paused or cut off is told when it is back, and writes
/// until then. So:
///
/// 1. Take it from a process that is known to be dead, or stop it first.
/// 2. Else fence the resource: let it refuse every [token](ContenderInfo::fencing_token) up to that of what
///    was deleted. What the former holder writes by [`Hold::txn`](crate::Hold::txn) is refused in any case.
///
/// Of the promises only that of `txn()` holds for a lock of which a node was deleted so.
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
/// let line = LockQueue::new(&manager, "/gate".parse()?, Label::LOCK, Rule::MUTEX)?;
/// let held = line.acquire(Deadline::never()).await?;
///
/// let seen = line.inspect().await?;
/// let stale = seen.iter().filter(|of| of.role() == Role::Holder && of.identity().host() != Some("web-9"));
/// for gone in Revoker::new(&manager).force_release(stale).await? {
///     println!("{} is gone; refuse every token up to {:?}", gone.path(), gone.fencing_token());
/// }
/// assert_eq!(held.lost().await.reason, LossReason::NodeDeleted);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Revoker {
    manager: ConnectionManager,
}

/// A revoker that did not come to the end of its list. What it had done is in it; the rest stands as it was,
/// but for the node at which it stopped, which may have been reached ([`Error::outcome`]).
#[derive(Clone, Debug, ThisError)]
#[error("stopped after {} of the nodes: {error}", .done.len())]
pub struct RevokeError {
    /// What was asked, or deleted, before.
    pub done: Vec<ContenderInfo>,
    /// What it stopped at.
    #[source]
    pub error: Error,
}

/// What is done to a node.
#[derive(Clone, Copy, Debug)]
enum RevokeAction {
    Ask,
    Delete,
}

impl Revoker {
    /// A revoker that works through `manager`. Nothing is sent.
    #[must_use]
    pub fn new(manager: &ConnectionManager) -> Self {
        Self { manager: manager.clone() }
    }

    /// Asks these contenders to let go; yields those whose nodes were there to be asked.
    ///
    /// # Errors
    ///
    /// [`RevokeError`] with [`Error::Config`] in it for a node that is no contender's, [`Error::Refused`] (no
    /// right to write), [`Error::Timeout`], [`Error::Unknown`] (the link broke: asking again does no harm) or
    /// [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: some may have been asked.
    pub async fn ask<'a>(
        &self,
        contenders: impl IntoIterator<Item = &'a ContenderInfo>,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        self.each(contenders.into_iter().cloned().collect(), RevokeAction::Ask).await
    }

    /// Asks the contender of this node to let go; `false` when there is no such node. `node` is its whole
    /// path, chroot included, as [`Hold::path`](crate::Hold::path) and [`ContenderInfo::path`] tell it.
    ///
    /// # Errors
    ///
    /// As what is in [`ask`](Self::ask)'s.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may have been asked.
    pub async fn ask_node<P>(&self, node: P) -> Result<bool, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path: ZnodePath = node.try_into().map_err(PathError::from)?;
        check(path.as_str())?;
        self.reach(path.as_str(), RevokeAction::Ask).await
    }

    /// Deletes the nodes of these contenders, so that the next in line are granted; yields those that were
    /// there, with the tokens to be fenced. Read [the risk](Self#by-force-the-risk) first.
    ///
    /// # Errors
    ///
    /// [`RevokeError`] as for [`ask`](Self::ask), for a node that may not be deleted, too; starts of a rate
    /// limiter are [`Error::Config`], since they cannot be given back.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: some may have been deleted.
    pub async fn force_release<'a>(
        &self,
        contenders: impl IntoIterator<Item = &'a ContenderInfo>,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        self.each(contenders.into_iter().cloned().collect(), RevokeAction::Delete).await
    }

    /// As [`force_release`](Self::force_release), for the contender of this node: `None` when there is no
    /// such node. `node` is its whole path, chroot included.
    ///
    /// # Errors
    ///
    /// As what is in [`force_release`](Self::force_release)'s.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: it may have been deleted.
    pub async fn force_release_node<P>(&self, node: P) -> Result<Option<ContenderInfo>, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path: ZnodePath = node.try_into().map_err(PathError::from)?;
        check(path.as_str())?;
        let (session, deadline) = self.session(path.as_str()).await?;
        let seen = read_node(&session, path.as_str(), deadline).await?;
        match seen {
            Some(seen) if self.reach(path.as_str(), RevokeAction::Delete).await? => Ok(Some(seen)),
            _ => Ok(None),
        }
    }

    async fn each(
        &self,
        all: Vec<ContenderInfo>,
        action: RevokeAction,
    ) -> Result<Vec<ContenderInfo>, RevokeError> {
        let mut done = Vec::new();
        for one in all {
            let reached = match check_kind(one.path(), one.kind().filter(|_| one.role() != Role::Start)) {
                Ok(()) => self.reach(one.path(), action).await,
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

    /// Whether there was such a node.
    async fn reach(&self, path: &str, action: RevokeAction) -> Result<bool, Error> {
        let (session, deadline) = self.session(path).await?;
        let (operation, answer) = match action {
            RevokeAction::Ask => {
                let mut reply = session.set_data(path, REVOKE, None);
                (Operation::Write, session.await_reply(&mut reply, deadline).await.map(drop))
            }
            RevokeAction::Delete => {
                let mut reply = session.write(|wire| wire.delete(path, None));
                (Operation::Delete, session.await_reply(&mut reply, deadline).await)
            }
        };
        match answer {
            Ok(()) => {
                tracing::warn!(path, deed = ?action, "revoked");
                Ok(true)
            }
            Err(WireError::Refused(Refusal::NoNode)) => Ok(false),
            Err(error) => Err(Error::of_wire(operation, path, &error, deadline)),
        }
    }

    async fn session(&self, path: &str) -> Result<(Session, Deadline), Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        Ok((self.manager.session(deadline, path).await?, deadline))
    }
}

/// Refuses what is no contender: a slip of the hand must not delete an application's node.
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
    fn only_contenders_can_be_reached() {
        for path in ["/a/_c_x-lock-0000000001", "/a/x__lock__0000000001", "/a/l/_c_x-lease-0000000001"] {
            assert!(check(path).is_ok(), "{path}");
        }
        for path in ["/", "/a", "/a/config", "/a/starts/_c_x-start-0000000001", "/a/latch-0000000001"] {
            assert!(check(path).is_err(), "{path}");
        }
    }
}
