//! The node of a member.

use std::sync::Arc;

use tracing::debug;
use uuid::Uuid;

use super::place::Rendezvous;
use crate::error::{Error, Operation, Outcome, Phase, Refusal};
use crate::hold::{NodeGuard, NodeRegistration};
use crate::queue::{LostCreates, StepError};
use crate::session::{Origin, ParentLifetime, Session, janitor, make_queue_directory};
use crate::time::deadline::Deadline;
use crate::wire::{CreateMode, Stat, WireError};
use crate::znode::name::{CreateId, Label};
use crate::znode::zxid::Zxid;

/// The label of the members' nodes. Clients of other libraries name theirs as they like.
pub(super) const MEMBER: Label = match Label::new("member") {
    Ok(label) => label,
    Err(_) => panic!("not a label"),
};

/// The node of a member that is not inside yet. A drop of it deletes the node.
pub(super) struct EnteringMember {
    pub(super) registration: NodeRegistration,
    // Drop order: the node is deleted before a late create is looked for.
    pub(super) node_guard: NodeGuard,
    pub(super) creates: MemberCreates,
    pub(super) czxid: Zxid,
}

/// The creates of one member in one session, which all have the same path.
///
/// Dropped while the node of one may exist or may still be created, it has the janitor delete that node.
pub(super) struct MemberCreates {
    session: Session,
    path: String,
    /// One is in flight, or its node has no guard yet.
    is_open: bool,
    /// How many have no answer: one may be applied after the node was deleted.
    in_doubt: u32,
}

impl Drop for MemberCreates {
    fn drop(&mut self) {
        if self.is_open || self.in_doubt > 0 {
            janitor::delete_own(&self.session, &self.path, None, true, Box::new(|| ()));
        }
    }
}

impl Rendezvous {
    /// The path of the node of a member with this id.
    pub(super) fn member_path(&self, id: Uuid) -> String {
        self.full.listed_child(&CreateId::new(id).name(MEMBER))
    }

    /// Creates the node of the member.
    pub(super) async fn create_member(&self, deadline: Deadline) -> Result<EnteringMember, Error> {
        // One path for all tries, in later sessions as well: so the call is one member at every instant,
        // however late the create of an earlier try is applied.
        let path = self.member_path(self.manager.environment().unique());
        loop {
            let session = self.manager.session_for_acquire(deadline, self.full.as_str()).await?;
            session.mark_used();
            match self.create_in(&session, &path, deadline).await {
                Ok(member) => return Ok(member),
                Err(StepError::Restart) => {}
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
    }

    async fn create_in(
        &self,
        session: &Session,
        path: &str,
        deadline: Deadline,
    ) -> Result<EnteringMember, StepError> {
        let (session, path) = (session.clone(), path.to_owned());
        let mut creates = MemberCreates { session, path, is_open: false, in_doubt: 0 };
        let mut lost_creates = LostCreates::default();
        loop {
            if let Some((stat, origin)) = self.try_create(&mut creates, &mut lost_creates, deadline).await? {
                let node_guard = NodeGuard::of(&creates.session, creates.path.clone());
                creates.is_open = false;
                let data = Arc::clone(&self.node_data);
                let registered = creates.session.register(node_guard.shared_path(), data, origin);
                let registration = NodeRegistration(registered);
                return Ok(EnteringMember { registration, node_guard, creates, czxid: stat.czxid });
            }
        }
    }

    /// `None`: try again.
    async fn try_create(
        &self,
        creates: &mut MemberCreates,
        lost_creates: &mut LostCreates,
        deadline: Deadline,
    ) -> Result<Option<(Stat, Origin)>, StepError> {
        let (session, path) = (creates.session.clone(), creates.path.clone());
        let connection = session.connection();
        creates.is_open = true;
        let mut reply = session.create(&path, &self.node_data, CreateMode::Ephemeral);
        let error = match session.await_reply(&mut reply, deadline).await {
            Ok(created) => {
                let origin = Origin::answered(connection, created.stat.as_ref());
                let stat = match created.stat {
                    Some(stat) => Some(stat),
                    None => self.stat(&session, &path, deadline).await?,
                };
                return Ok(stat.map(|stat| (stat, origin)));
            }
            Err(WireError::Refused(Refusal::NodeExists)) => {
                let adopted = self.adopt(&session, &path, deadline).await?;
                creates.in_doubt = creates.in_doubt.saturating_sub(u32::from(adopted.is_some()));
                return Ok(adopted.map(|stat| (stat, Origin::FOUND)));
            }
            Err(WireError::Timeout) => {
                return Err(Error::timed_out(deadline, self.full.as_str(), Phase::Answer).into());
            }
            Err(error) => error,
        };
        creates.is_open = false;
        creates.in_doubt += u32::from(error.outcome() == Outcome::Unknown);
        match &error {
            WireError::Refused(Refusal::NoNode) => {
                make_queue_directory(&session, &self.full, ParentLifetime::WhileUsed, deadline).await?;
            }
            WireError::Broken(_) => {
                debug!(path, %error, "a create without an answer; creating the member's node again");
                // A node that was created after all is adopted by the next create.
                if self.stat(&session, &path, deadline).await?.is_none() {
                    lost_creates.add(&session, self.full.as_str(), &error, deadline).await?;
                }
            }
            error => {
                debug!(path, %error, "creating the member's node again");
                session.retry_after(error, Operation::Create, self.full.as_str(), deadline).await?;
            }
        }
        Ok(None)
    }

    /// An earlier create of the same member was applied after all. `None` if this session does not own its
    /// node.
    async fn adopt(
        &self,
        session: &Session,
        path: &str,
        deadline: Deadline,
    ) -> Result<Option<Stat>, StepError> {
        let Some(stat) = self.stat(session, path, deadline).await? else { return Ok(None) };
        if stat.ephemeral_owner == session.id() {
            return Ok(Some(stat));
        }
        debug!(path, owner = stat.ephemeral_owner, "deleting the node that an earlier session created");
        let mut reply = session.write(|wire| wire.delete(path, None));
        match session.await_reply(&mut reply, deadline).await {
            Ok(()) | Err(WireError::Refused(Refusal::NoNode)) => {}
            Err(error) => session.retry_after(&error, Operation::Delete, path, deadline).await?,
        }
        Ok(None)
    }

    async fn stat(
        &self,
        session: &Session,
        path: &str,
        deadline: Deadline,
    ) -> Result<Option<Stat>, StepError> {
        loop {
            let mut reply = session.read(|wire| wire.exists(path));
            match session.await_reply(&mut reply, deadline).await {
                Ok(stat) => return Ok(stat),
                Err(error) => session.retry_after(&error, Operation::Read, path, deadline).await?,
            }
        }
    }
}
