use std::sync::Arc;

use super::name::{Label, Protection};
use crate::backend::{CreateMode, Created, MultiError, Reply, Stat, WireError, WriteOp};
use crate::deadline::Deadline;
use crate::error::{Outcome, Refusal};
use crate::path::ZnodePath;
use crate::session::{Leave, OwnNode, Session};

/// A create that was sent and whose outcome is not settled yet.
///
/// Dropped at any point, it leaves the rest to the janitor: a reply that is still coming, or a node that may stand.
pub(super) struct Claim {
    session: Session,
    directory: ZnodePath,
    protection: Protection,
    state: State,
}

enum State {
    /// The create is on its way.
    Asked(Reply<Created>),
    /// Its answer did not come: the node may stand, or still come to stand.
    Unresolved,
    /// There is no node, or it is no longer this claim's.
    Settled,
}

impl Claim {
    /// Sends the create.
    pub(super) fn ask(session: &Session, directory: &ZnodePath, label: Label, data: &[u8]) -> Self {
        let protection = Protection::new(session.settings().host.unique());
        let path = directory.listed_child(&protection.name(label));
        let reply = session.create(&path, data, CreateMode::EphemeralSequential);
        Self {
            session: session.clone(),
            directory: directory.clone(),
            protection,
            state: State::Asked(reply),
        }
    }

    /// A create that is part of a transaction: to be sent with the others.
    pub(super) fn together(
        session: &Session,
        directory: &ZnodePath,
        label: Label,
        data: &[u8],
    ) -> (Self, WriteOp) {
        let protection = Protection::new(session.settings().host.unique());
        let path = directory.listed_child(&protection.name(label));
        let create = WriteOp::Create { path, data: data.to_owned(), mode: CreateMode::EphemeralSequential };
        let (session, directory) = (session.clone(), directory.clone());
        (Self { session, directory, protection, state: State::Unresolved }, create)
    }

    /// There certainly is no node.
    pub(super) fn settle(&mut self) {
        self.state = State::Settled;
    }

    /// Waits for the create's answer. Cancel safe.
    pub(super) async fn answered(
        &mut self,
        deadline: Deadline,
    ) -> Result<(Standing, Option<Stat>), WireError> {
        let State::Asked(reply) = &mut self.state else {
            return Err(WireError::Broken("the create was answered already".to_owned()));
        };
        match self.session.answer(reply, deadline).await {
            Ok(created) => Ok((self.found(created.path), created.stat)),
            Err(error) => {
                match &error {
                    // The reply may still come: it stays here, for the janitor.
                    WireError::Timeout => {}
                    WireError::SessionEnded(_) => self.state = State::Settled,
                    error if error.outcome() == Outcome::NotApplied => self.state = State::Settled,
                    _ => self.state = State::Unresolved,
                }
                Err(error)
            }
        }
    }

    /// The node at `path` is the one this claim made.
    pub(super) fn found(&mut self, path: String) -> Standing {
        self.state = State::Settled;
        Standing::of(&self.session, path)
    }

    pub(super) fn protection(&self) -> Protection {
        self.protection
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let reply = match std::mem::replace(&mut self.state, State::Settled) {
            State::Asked(reply) => Some(reply),
            State::Unresolved => None,
            State::Settled => return,
        };
        if self.session.loss().is_none() {
            self.session.janitor().disown(&self.session, &self.directory, self.protection, reply);
        }
    }
}

/// A node of ours that stands, as far as we know. Dropped, it is deleted in the background.
pub(super) struct Standing {
    session: Session,
    path: Arc<str>,
    /// What the session knows of it.
    node: Option<Arc<OwnNode>>,
    is_gone: bool,
}

impl Standing {
    pub(super) fn of(session: &Session, path: String) -> Self {
        Self { session: session.clone(), path: path.into(), node: None, is_gone: false }
    }

    pub(super) fn known_as(&mut self, node: &Arc<OwnNode>) {
        self.node = Some(Arc::clone(node));
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

    /// The node is known to be gone.
    pub(super) fn is_gone(&mut self) {
        self.is_gone = true;
        if let Some(node) = &self.node {
            node.vanish();
        }
    }

    /// Sends the delete. From then on the next one in this process is the head, if this was.
    fn send_delete(&mut self) -> Reply<()> {
        self.is_gone = true;
        let plain = || self.session.write(|wire| wire.delete(&self.path, None));
        let Some(node) = &self.node else {
            return plain();
        };
        debug_assert!(node.is_given_up(), "its delete would be taken for someone else's");
        node.leave(|leave| match (leave, node.position()) {
            (Leave::AsHead(heads), Some(position)) => self.session.head_leaves(position, || match heads {
                [] => plain(),
                heads => delete_before(&self.session, &self.path, heads.to_vec()),
            }),
            _ => plain(),
        })
    }

    /// Deletes the node and waits for the answer. `Ok(false)` when it was gone already.
    ///
    /// Without a definite answer, and when this future is dropped, the janitor goes on.
    pub(super) async fn delete(mut self, deadline: Deadline) -> Result<bool, WireError> {
        let reply = self.send_delete();
        let mut leaving = Leaving { session: &self.session, path: &self.path, reply: Some(reply) };
        let answer = match &mut leaving.reply {
            Some(reply) => self.session.answer(reply, deadline).await,
            None => Ok(()),
        };
        let deleted = match answer {
            Ok(()) => true,
            Err(WireError::Refused(Refusal::NoNode)) => false,
            // The reply may still come.
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

impl Drop for Standing {
    fn drop(&mut self) {
        if !self.is_gone && self.session.loss().is_none() {
            let reply = self.send_delete();
            self.session.janitor().delete_sent(&self.session, &self.path, reply);
        }
    }
}

/// Deletes a node of ours if the next ones, which have nobody in front from now on, stand: were one deleted by hand,
/// strangers behind it would come in, too.
fn delete_before(session: &Session, path: &str, mut heads: Vec<Arc<OwnNode>>) -> Reply<()> {
    let send = |session: &Session, path: &str, heads: &[Arc<OwnNode>]| {
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
                    if refusal == Refusal::NoNode && next.end().is_none() {
                        next.is_missing();
                    }
                }
                Err(MultiError::Operation { refusal, .. }) => return Err(WireError::Refused(refusal)),
                Err(MultiError::Request(error)) => return Err(error),
            }
            committed = send(&session, &path, &heads);
        }
    })
}

/// A delete that is on its way.
struct Leaving<'a> {
    session: &'a Session,
    path: &'a str,
    reply: Option<Reply<()>>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.session.janitor().delete_sent(self.session, self.path, reply);
        }
    }
}

/// The creation zxid, if the server told one.
pub(super) fn czxid(stat: Option<&Stat>) -> Option<i64> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > 0)
}
