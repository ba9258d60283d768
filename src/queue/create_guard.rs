use crate::error::Outcome;
use crate::hold::NodeGuard;
use crate::session::{Session, janitor};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, Created, Reply, Stat, WireError, WriteOp};
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
            janitor::clean_unresolved(&self.session, &self.directory, self.create_id, reply);
        }
    }
}

/// The creation zxid, if the server returned one.
pub(super) fn czxid(stat: Option<&Stat>) -> Option<i64> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > 0)
}
