//! A node of a hold or of a contender: its registration with the session, and the guard that deletes it.

use std::sync::Arc;

use crate::error::Refusal;
use crate::local::QueueEntry;
use crate::session::{OwnedNode, Session, janitor};
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, Reply, WireError, WriteOp};
use crate::znode::name::{Label, NodeName};

/// A node that a hold rests on.
pub(crate) struct HeldNode {
    // Drop order: the registration is removed first, then the node is deleted.
    pub(crate) registration: NodeRegistration,
    pub(crate) node_guard: NodeGuard,
    pub(crate) label: Label,
}

impl HeldNode {
    pub(crate) fn node(&self) -> &Arc<OwnedNode> {
        &self.registration.0
    }

    /// The sequence number of the node.
    pub(crate) fn sequence(&self) -> Option<i32> {
        NodeName::parse_with(self.node_guard.name(), &[self.label]).map(|name| name.sequence())
    }
}

/// The entry of a node in the register of its session. Dropping it marks the node as given up and removes the
/// entry. The delete may be sent only after that.
///
/// A loss that is not reported by then is reported first: a holder may have seen it.
pub(crate) struct NodeRegistration(pub(crate) Arc<OwnedNode>);

impl Drop for NodeRegistration {
    fn drop(&mut self) {
        let _ = self.0.settle();
        self.0.set_given_up();
        self.0.session().unregister(&self.0);
    }
}

/// An existing node of this session, as far as is known. Dropping the guard deletes the node in the
/// background.
pub(crate) struct NodeGuard {
    session: Session,
    path: Arc<str>,
    /// The node's entry in the local queue, if it has one.
    entry: Option<Arc<QueueEntry>>,
    is_deleted: bool,
}

impl NodeGuard {
    pub(crate) fn of(session: &Session, path: String) -> Self {
        Self { session: session.clone(), path: path.into(), entry: None, is_deleted: false }
    }

    pub(crate) fn attach(&mut self, entry: Option<Arc<QueueEntry>>) {
        self.entry = entry;
    }

    pub(crate) fn entry(&self) -> Option<&Arc<QueueEntry>> {
        self.entry.as_ref()
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn shared_path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    /// The node's name in its directory.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Records that the node no longer exists.
    pub(crate) fn mark_deleted(&mut self) {
        self.is_deleted = true;
        self.session.node_bytes().forget(&self.path);
        if let Some(entry) = &self.entry {
            entry.abandon();
        }
    }

    /// Sends the delete. If this contender was the head, the next contender of this session is the head from
    /// then on.
    fn send_delete(&mut self) -> Reply<()> {
        self.is_deleted = true;
        let plain = || self.session.write(|wire| wire.delete(&self.path, None));
        match &self.entry {
            Some(entry) => entry.release(|next| match next.is_empty() {
                true => plain(),
                false => delete_before(&self.session, &self.path, next),
            }),
            None => plain(),
        }
    }

    /// Deletes the node and waits for the reply. Returns `Ok(false)` if the node did not exist.
    ///
    /// Without a definite reply, and when this future is dropped, the janitor continues.
    pub(crate) async fn delete(mut self, deadline: Deadline) -> Result<bool, WireError> {
        if let Some(entry) = &self.entry {
            entry.await_successor(deadline).await;
        }
        let reply = self.send_delete();
        let mut leaving = DeleteInFlight { session: &self.session, path: &self.path, reply: Some(reply) };
        let answer = match &mut leaving.reply {
            Some(reply) => self.session.await_reply(reply, deadline).await,
            None => Ok(()),
        };
        let deleted = match answer {
            Ok(()) => true,
            Err(WireError::Refused(Refusal::NoNode)) => false,
            // The reply may still arrive.
            Err(WireError::Timeout) => return Err(WireError::Timeout),
            Err(error) => {
                leaving.reply = None;
                janitor::delete(&self.session, &self.path);
                return Err(error);
            }
        };
        leaving.reply = None;
        Ok(deleted)
    }
}

impl Drop for NodeGuard {
    fn drop(&mut self) {
        if !self.is_deleted && self.session.loss().is_none() {
            let reply = self.send_delete();
            janitor::delete_sent(&self.session, &self.path, reply);
        }
    }
}

/// Deletes a node of this session on condition that the new heads exist. If one of those were deleted by
/// hand, foreign contenders behind it would hold as well.
fn delete_before(session: &Session, path: &str, mut heads: Vec<Arc<OwnedNode>>) -> Reply<()> {
    let send = |session: &Session, path: &str, heads: &[Arc<OwnedNode>]| {
        let checks = heads.iter().map(|next| WriteOp::Check { path: next.path().to_owned(), version: None });
        let delete = WriteOp::Delete { path: path.to_owned(), version: None };
        session.send_multi(&checks.chain([delete]).collect::<Vec<_>>())
    };
    let mut committed = send(session, path, &heads);
    let (session, path) = (session.clone(), path.to_owned());
    Box::pin(async move {
        loop {
            match committed.await? {
                Ok(_) => return Ok(()),
                Err(MultiError::Operation { index, refusal }) if index < heads.len() => {
                    let next = heads.swap_remove(index);
                    if refusal == Refusal::NoNode {
                        next.on_missing();
                    }
                }
                Err(MultiError::Operation { refusal, .. }) => return Err(WireError::Refused(refusal)),
                Err(MultiError::Request(error)) => return Err(error),
            }
            committed = send(&session, &path, &heads);
        }
    })
}

/// A delete that is in flight.
struct DeleteInFlight<'a> {
    session: &'a Session,
    path: &'a str,
    reply: Option<Reply<()>>,
}

impl Drop for DeleteInFlight<'_> {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            janitor::delete_sent(self.session, self.path, reply);
        }
    }
}
