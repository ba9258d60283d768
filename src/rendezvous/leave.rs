//! A member leaves.

use std::sync::Arc;

use tracing::debug;

use super::admitted::Admitted;
use super::decide::{Leave, READY, Ready, is_in_round, leave};
use super::member_list::of_stat;
use super::place::Rendezvous;
use crate::error::release::ReleaseError;
use crate::error::{Error, Operation, Outcome, Phase, Refusal};
use crate::hold::{HeldNode, Hold, NodeGuard};
use crate::session::{Observation, Session, Stop};
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, WireError, WriteOp, existing};

/// The number of times that a delete is sent again at once, because members that leave at the same time have
/// changed what it rests on.
const AT_ONCE_MAX: u32 = 3;

/// Another member of the round.
struct Other {
    name: String,
    observation: Observation,
}

impl Admitted {
    /// Deletes the node of the member, and waits until no member of its round exists.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the member had been lost before. [`Error::Timeout`] if other members are still
    /// inside when `deadline` passes: this one has left. [`ReleaseError::Unconfirmed`] when it has not left
    /// by then: the manager retries the delete. [`Error::Refused`] without the right to read or delete,
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// The member has left, and the wait for the others continues in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the node is deleted in the background. The wait for the others ends.
    pub async fn leave(self, deadline: Deadline) -> Result<(), Error> {
        let Self { hold, ready, rendezvous, creates } = self;
        hold.settle().map_err(Error::Lost)?;
        let Hold { first, registration, manager, .. } = hold;
        let name = first.node_guard.name().to_owned();
        let deleted = rendezvous.delete(first, ready, deadline).await;
        registration.timer().ends_by(if deleted.is_ok() { "released" } else { "unconfirmed" });
        drop((registration, creates));
        deleted?;
        let waited = rendezvous.until_all_left(&name, ready, deadline).await;
        drop(manager);
        waited
    }
}

impl Rendezvous {
    /// Deletes the own node, as the last one of the round or not.
    async fn delete(&self, held_node: HeldNode, ready: Ready, deadline: Deadline) -> Result<(), Error> {
        let HeldNode { registration, mut node_guard, .. } = held_node;
        let node = Arc::clone(&registration.0);
        let session = node.session().clone();
        // From here on a missing node is no loss.
        drop(registration);
        let mut is_in_doubt = false;
        let mut again = 0_u32;
        loop {
            let deleted = self.delete_once(&session, &node_guard, ready, &mut is_in_doubt, deadline).await;
            let error = match deleted {
                Ok(Deleted::Yes) => {
                    node_guard.mark_deleted();
                    debug!(path = node.path(), "left");
                    return Ok(());
                }
                Ok(Deleted::Before) => {
                    node_guard.mark_deleted();
                    let lost = || Err(Error::Lost(node.was_deleted_before()));
                    return if is_in_doubt { Ok(()) } else { lost() };
                }
                Ok(Deleted::Again) => {
                    again += 1;
                    if again > AT_ONCE_MAX {
                        session.backoff(deadline).await;
                    }
                    continue;
                }
                Err(error) => error,
            };
            match session.retry_after(&error, Operation::Delete, node.path(), deadline).await {
                Ok(()) => {}
                // The node ends with its session, which lived until this call.
                Err(Stop::SessionEnded(_)) => return Ok(()),
                Err(Stop::Failed(Error::Timeout { path, .. })) => {
                    return Err(ReleaseError::Unconfirmed { path, cause: error.to_string() }.into());
                }
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    async fn delete_once(
        &self,
        session: &Session,
        own: &NodeGuard,
        ready: Ready,
        is_in_doubt: &mut bool,
        deadline: Deadline,
    ) -> Result<Deleted, WireError> {
        let other = self.find_other(session, own.name(), ready, false, deadline).await?;
        let mut reply = session.read(|wire| wire.data(&self.ready));
        let now = existing(session.await_reply(&mut reply, deadline).await)?;
        let now = now.map(|(_, stat)| of_stat(&stat));
        let delete = WriteOp::Delete { path: own.path().to_owned(), version: None };
        let (operations, own_index) = match leave(ready, other.as_ref().map(|other| other.name.as_str()), now)
        {
            Leave::Before(other) => {
                let path = self.full.listed_child(&other);
                (vec![WriteOp::Check { path, version: None }, delete], 1)
            }
            Leave::Last { closes: None } => (vec![delete], 0),
            Leave::Last { closes } => {
                (vec![delete, WriteOp::Delete { path: self.ready.clone(), version: closes }], 0)
            }
        };
        match session.multi(&operations, deadline).await {
            Ok(_) => Ok(Deleted::Yes),
            Err(MultiError::Operation { index, refusal: Refusal::NoNode }) if index == own_index => {
                Ok(Deleted::Before)
            }
            // Another member has left, or opened the barrier, meanwhile.
            Err(MultiError::Operation { refusal: Refusal::NoNode | Refusal::BadVersion, .. }) => {
                Ok(Deleted::Again)
            }
            Err(MultiError::Operation { refusal, .. }) => Err(WireError::Refused(refusal)),
            Err(MultiError::Request(error)) => {
                *is_in_doubt |= error.outcome() == Outcome::Unknown;
                Err(error)
            }
        }
    }

    /// Waits until no other member of the round exists.
    async fn until_all_left(&self, own: &str, ready: Ready, deadline: Deadline) -> Result<(), Error> {
        loop {
            let session = self.manager.session(deadline, self.full.as_str()).await?;
            let step = async {
                let Some(mut other) = self.find_other(&session, own, ready, true, deadline).await? else {
                    return Ok(true);
                };
                other.observation.changed().await;
                Ok(false)
            };
            let step = tokio::select! {
                biased;
                () = self.manager.closing() => return Err(Error::Closed),
                reason = session.ended() => Err(WireError::SessionEnded(reason)),
                step = step => step,
                () = deadline.passed() => {
                    let phase = Phase::Recipe("waiting for the others to leave".into());
                    let (path, waited) = (self.full.as_str().into(), deadline.waited());
                    return Err(Error::Timeout { phase, path, waited });
                }
            };
            let error = match step {
                Ok(true) => return Ok(()),
                Ok(false) => continue,
                Err(error) => error,
            };
            let retried = session.retry_after(&error, Operation::List, self.full.as_str(), deadline).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }

    /// Another member of the round, the last one by its name: all wait for the same one, and few lists
    /// follow.
    async fn find_other(
        &self,
        session: &Session,
        own: &str,
        ready: Ready,
        watches: bool,
        deadline: Deadline,
    ) -> Result<Option<Other>, WireError> {
        loop {
            let connection = session.ensure_synced(deadline).await?;
            let mut list = session.read(|wire| wire.children(self.full.as_str()));
            let names = existing(session.await_reply(&mut list, deadline).await)?;
            let mut names = names.unwrap_or_default();
            names.retain(|name| name != own && name != READY);
            names.sort_unstable_by(|one, other| other.cmp(one));
            let mut found = None;
            for name in names {
                let path = self.full.listed_child(&name);
                let node = if watches {
                    let mut reply = session.observe_data(&path, session.watch_budget().reserve(&path));
                    existing(session.await_reply(&mut reply, deadline).await)?
                        .map(|(_, stat, watch)| (stat, watch))
                } else {
                    let mut reply = session.read(|wire| wire.exists(&path));
                    session.await_reply(&mut reply, deadline).await?.map(|stat| (stat, None))
                };
                if let Some((stat, watch)) = node.filter(|(stat, _)| is_in_round(stat.czxid, ready)) {
                    if stat.ephemeral_owner == 0 {
                        self.warn_of_unowned(&name, &stat);
                        continue;
                    }
                    let observation = Observation::new(session, Some(connection), [watch]).seldom();
                    found = Some(Other { name, observation });
                    break;
                }
            }
            if session.connection() == Some(connection) {
                return Ok(found);
            }
        }
    }
}

/// What became of a delete.
enum Deleted {
    Yes,
    /// The node did not exist.
    Before,
    /// The round has changed: decide again.
    Again,
}
