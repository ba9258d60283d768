//! The members, as others see them.

use super::decide::{READY, Ready, is_in_round};
use super::member_list::of_stat;
use super::place::Rendezvous;
use crate::error::{Error, Operation};
use crate::inspect::{DATA_BYTES_MAX, NodeInfo};
use crate::time::deadline::Deadline;
use crate::wire::{WireError, existing};

/// The members of a [`Rendezvous`] at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendezvousInfo {
    members: Vec<NodeInfo>,
    unowned: Vec<NodeInfo>,
    ready: Option<Ready>,
}

impl RendezvousInfo {
    /// The members, in the order in which they came.
    #[must_use]
    pub fn members(&self) -> &[NodeInfo] {
        &self.members
    }

    /// Whether the barrier was opened for this member. It may not know yet. Otherwise it waits to enter.
    #[must_use]
    pub fn is_inside(&self, member: &NodeInfo) -> bool {
        self.ready.is_some_and(|ready| is_in_round(member.czxid(), ready))
    }

    /// The persistent nodes: they belong to no session, so they are no members.
    #[must_use]
    pub fn unowned(&self) -> &[NodeInfo] {
        &self.unowned
    }

    /// Whether the node exists that opens the barrier. It may be from an earlier round.
    #[must_use]
    pub fn has_ready_node(&self) -> bool {
        self.ready.is_some()
    }
}

impl Rendezvous {
    /// Reads the members: a snapshot, no older than the call, unless the servers' leader was deposed and does
    /// not know it. Needs only the right to read.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RendezvousInfo, Error> {
        self.manager.until_answered(|| self.inspect_once()).await
    }

    async fn inspect_once(&self) -> Result<RendezvousInfo, Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        let session = self.manager.session(deadline, self.full.as_str()).await?;
        let path = self.full.as_str();
        let failed = |error: WireError| Error::of_wire(Operation::List, path, &error, deadline);
        let mut sync = session.read(|wire| wire.sync(path));
        let mut list = session.read(|wire| wire.children(path));
        let mut ready = session.read(|wire| wire.data(&self.ready));
        session.await_reply(&mut sync, deadline).await.map_err(failed)?;
        let names = existing(session.await_reply(&mut list, deadline).await).map_err(failed)?;
        let mut names = names.unwrap_or_default();
        names.retain(|name| name != READY);
        let ready = existing(session.await_reply(&mut ready, deadline).await).map_err(failed)?;
        let ready = ready.map(|(_, stat)| of_stat(&stat));
        let mut members = NodeInfo::read(&self.manager, &session, &self.full, names, DATA_BYTES_MAX).await?;
        members.sort_by_key(NodeInfo::czxid);
        let (members, unowned) = members.into_iter().partition(|member| member.session() != 0);
        Ok(RendezvousInfo { members, unowned, ready })
    }
}
