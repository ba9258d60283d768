//! The members, as others see them.

use futures::future::join_all;

use super::decide::{READY, Ready, is_in_round};
use super::{Rendezvous, existing, of_stat};
use crate::error::{Error, Operation, Refusal};
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::{Stat, WireError};

/// How many bytes of a member's data are kept.
const DATA_BYTES_MAX: usize = 1024;

/// How many members are read at once.
const BATCH: usize = 128;

/// A member of a [`Rendezvous`], as its node shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    name: String,
    data: Option<Vec<u8>>,
    session: i64,
    czxid: i64,
    is_inside: bool,
}

/// The members of a [`Rendezvous`] at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendezvousInfo {
    members: Vec<MemberInfo>,
    unowned: Vec<MemberInfo>,
    ready: Option<Ready>,
}

impl MemberInfo {
    /// The name of its node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first 1024 bytes of the data of its node. `None` if this client may not read it.
    #[must_use]
    pub fn data(&self) -> Option<&[u8]> {
        self.data.as_deref()
    }

    /// The session of its node, which ends when the member crashes.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.session
    }

    /// The creation zxid of its node.
    #[must_use]
    pub fn czxid(&self) -> i64 {
        self.czxid
    }

    /// Whether the barrier was opened for it. It may not know yet. Otherwise it waits to enter.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.is_inside
    }
}

impl RendezvousInfo {
    /// The members, in the order in which they came.
    #[must_use]
    pub fn members(&self) -> &[MemberInfo] {
        &self.members
    }

    /// The persistent nodes: they belong to no session, so they are no members.
    #[must_use]
    pub fn unowned(&self) -> &[MemberInfo] {
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
        let deadline = Deadline::after(self.manager.operation_timeout());
        let session = self.manager.session(deadline, self.full.as_str()).await?;
        let path = self.full.as_str();
        self.read(&session, deadline)
            .await
            .map_err(|error| Error::of_wire(Operation::List, path, &error, deadline))
    }

    async fn read(&self, session: &Session, deadline: Deadline) -> Result<RendezvousInfo, WireError> {
        let mut sync = session.read(|wire| wire.sync(self.full.as_str()));
        let mut list = session.read(|wire| wire.children(self.full.as_str()));
        let mut ready = session.read(|wire| wire.data(&self.ready));
        session.await_reply(&mut sync, deadline).await?;
        let mut names = existing(session.await_reply(&mut list, deadline).await)?.unwrap_or_default();
        names.retain(|name| name != READY);
        let ready =
            existing(session.await_reply(&mut ready, deadline).await)?.map(|(_, stat)| of_stat(&stat));
        let mut members: Vec<MemberInfo> = Vec::with_capacity(names.len());
        for names in names.chunks(BATCH) {
            let asked = names.iter().map(async |name| {
                let path = self.full.listed_child(name);
                let data = session.read_one_of_many(&path, deadline).await;
                let mut stat = session.read(|wire| wire.exists(&path));
                (name, data, session.await_reply(&mut stat, deadline).await)
            });
            for (name, data, stat) in join_all(asked).await {
                let Some(stat) = stat? else { continue };
                members.push(member(name, data, &stat, ready)?);
            }
        }
        members.sort_by_key(|member| member.czxid);
        let (members, unowned) = members.into_iter().partition(|member| member.session != 0);
        Ok(RendezvousInfo { members, unowned, ready })
    }
}

fn member(
    name: &str,
    data: Result<(Vec<u8>, Stat), WireError>,
    stat: &Stat,
    ready: Option<Ready>,
) -> Result<MemberInfo, WireError> {
    let data = match data {
        Ok((mut data, _)) => {
            data.truncate(DATA_BYTES_MAX);
            Some(data)
        }
        Err(WireError::Refused(Refusal::NoAuth | Refusal::NoNode)) => None,
        Err(error) => return Err(error),
    };
    let is_inside = ready.is_some_and(|ready| is_in_round(stat.czxid, ready));
    let (session, czxid) = (stat.ephemeral_owner, stat.czxid);
    Ok(MemberInfo { name: name.to_owned(), data, session, czxid, is_inside })
}
