use std::sync::Arc;

use super::local_queues::QueueEntry;
use crate::error::{Outcome, Refusal};
use crate::session::{OwnedNode, Session};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, Created, MultiError, Reply, Stat, WireError, WriteOp};
use crate::znode::name::{CreateId, Label};
use crate::znode::path::ZnodePath;

/// A create that was sent and whose outcome is not settled yet.
///
/// Dropped at any point, it leaves the rest to the janitor: a pending reply, or a node that may exist.
pub(super) struct CreateGuard {
    session: Session,
    directory: ZnodePath,
    create_id: CreateId,
    state: CreateState,
}

enum CreateState {
    /// The create is in flight.
    Sent(Reply<Created>),
    /// No reply arrived: the node may exist, or may still be created.
    Unresolved,
    /// There is no node, or another guard owns it.
    Settled,
}

impl CreateGuard {
    /// Sends the create.
    pub(super) fn send(session: &Session, directory: &ZnodePath, label: Label, data: &[u8]) -> Self {
        let create_id = CreateId::new(session.settings().environment.unique());
        let path = directory.listed_child(&create_id.name(label));
        let reply = session.create(&path, data, CreateMode::EphemeralSequential);
        Self {
            session: session.clone(),
            directory: directory.clone(),
            create_id,
            state: CreateState::Sent(reply),
        }
    }

    /// A create that is part of a transaction. The caller sends it with the others.
    pub(super) fn in_multi(
        session: &Session,
        directory: &ZnodePath,
        label: Label,
        data: &[u8],
    ) -> (Self, WriteOp) {
        let create_id = CreateId::new(session.settings().environment.unique());
        let path = directory.listed_child(&create_id.name(label));
        let create = WriteOp::Create { path, data: data.to_owned(), mode: CreateMode::EphemeralSequential };
        let (session, directory) = (session.clone(), directory.clone());
        (Self { session, directory, create_id, state: CreateState::Unresolved }, create)
    }

    /// Records that no node was created.
    pub(super) fn settle(&mut self) {
        self.state = CreateState::Settled;
    }

    /// Waits for the reply to the create. Cancel safe.
    pub(super) async fn wait_created(
        &mut self,
        deadline: Deadline,
    ) -> Result<(NodeGuard, Option<Stat>), WireError> {
        let CreateState::Sent(reply) = &mut self.state else {
            return Err(WireError::Broken("the create was answered already".to_owned()));
        };
        match self.session.await_reply(reply, deadline).await {
            Ok(created) => Ok((self.found(created.path), created.stat)),
            Err(error) => {
                match &error {
                    // The reply may still arrive. It stays here for the janitor.
                    WireError::Timeout => {}
                    WireError::SessionEnded(_) => self.state = CreateState::Settled,
                    error if error.outcome() == Outcome::NotApplied => self.state = CreateState::Settled,
                    _ => self.state = CreateState::Unresolved,
                }
                Err(error)
            }
        }
    }

    /// The create made the node at `path`.
    pub(super) fn found(&mut self, path: String) -> NodeGuard {
        self.state = CreateState::Settled;
        self.session.node_bytes().found(&path);
        NodeGuard::of(&self.session, path)
    }

    pub(super) fn create_id(&self) -> CreateId {
        self.create_id
    }
}

impl Drop for CreateGuard {
    fn drop(&mut self) {
        let reply = match std::mem::replace(&mut self.state, CreateState::Settled) {
            CreateState::Sent(reply) => Some(reply),
            CreateState::Unresolved => None,
            CreateState::Settled => return,
        };
        if self.session.loss().is_none() {
            self.session.janitor().clean_unresolved(&self.session, &self.directory, self.create_id, reply);
        }
    }
}

/// An existing node of this session, as far as is known. Dropping the guard deletes the node in the
/// background.
pub(super) struct NodeGuard {
    session: Session,
    path: Arc<str>,
    /// The node's entry in the local queue, if it has one.
    entry: Option<Arc<QueueEntry>>,
    is_deleted: bool,
}

impl NodeGuard {
    pub(super) fn of(session: &Session, path: String) -> Self {
        Self { session: session.clone(), path: path.into(), entry: None, is_deleted: false }
    }

    pub(super) fn attach(&mut self, entry: Option<Arc<QueueEntry>>) {
        self.entry = entry;
    }

    pub(super) fn entry(&self) -> Option<&Arc<QueueEntry>> {
        self.entry.as_ref()
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn shared_path(&self) -> Arc<str> {
        Arc::clone(&self.path)
    }

    /// The node's name in its directory.
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Records that the node no longer exists.
    pub(super) fn mark_deleted(&mut self) {
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
    pub(super) async fn delete(mut self, deadline: Deadline) -> Result<bool, WireError> {
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
                self.session.janitor().delete(&self.session, &self.path);
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
            self.session.janitor().delete_sent(&self.session, &self.path, reply);
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
            self.session.janitor().delete_sent(self.session, self.path, reply);
        }
    }
}

/// The creation zxid, if the server returned one.
pub(super) fn czxid(stat: Option<&Stat>) -> Option<i64> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > 0)
}
