use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use futures::future::join_all;
use lockkeeper_core::{Error, Stat, WholePath};

use super::Group;
use super::member::{Member, MemberLayout};
use crate::inspection::{age_of, age_text};

/// How many requests of an inspection are in flight.
const BATCH: usize = 64;

/// The members of a [`Group`] at one time: a snapshot for people and tools, which may be stale when it is
/// read.
///
/// `{}` prints a line, and one for each member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInspection {
    path: WholePath,
    members: Vec<MemberInspection>,
    unowned: Vec<MemberInspection>,
}

/// A member of a [`GroupInspection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInspection {
    member: Member,
    payload: Vec<u8>,
    stat: Stat,
}

impl Group {
    /// Reads every member: a snapshot. It changes nothing, and needs only the right to read. The members of
    /// Curator and of kazoo are shown as well.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<GroupInspection, Error> {
        let mut names = self.manager.znodes().children(&self.path).await?.unwrap_or_default();
        names.sort_unstable();
        let mut members: Vec<MemberInspection> = Vec::with_capacity(names.len());
        for batch in names.chunks(BATCH) {
            for read in join_all(batch.iter().map(|name| self.read(name))).await {
                members.extend(read?);
            }
        }
        let (members, unowned) = members.into_iter().partition(|member| member.session() != 0);
        Ok(GroupInspection { path: self.manager.whole_path(&self.path), members, unowned })
    }

    /// `None` for a member that has left meanwhile.
    async fn read(&self, name: &str) -> Result<Option<MemberInspection>, Error> {
        let read = self.manager.znodes().read(self.path.child(name)?).await?;
        Ok(read.and_then(|(payload, stat)| {
            let member = Member::decode(name, &payload).ok()?;
            Some(MemberInspection { member, payload, stat })
        }))
    }
}

impl GroupInspection {
    /// The members, in the order of the names of their nodes.
    #[must_use]
    pub fn members(&self) -> &[MemberInspection] {
        &self.members
    }

    /// The persistent nodes: they belong to no session, so they are no members, and no crash removes them.
    #[must_use]
    pub fn unowned(&self) -> &[MemberInspection] {
        &self.unowned
    }
}

impl MemberInspection {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        self.member.id()
    }

    /// How the node shows the id.
    #[must_use]
    pub fn layout(&self) -> MemberLayout {
        self.member.layout()
    }

    /// The data of the node.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The session of the member, which owns the node; 0 for a node that is not ephemeral.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.stat.ephemeral_owner
    }

    /// The time since the node was created, by the clock of this machine.
    #[must_use]
    pub fn age(&self) -> Duration {
        age_of(&self.stat)
    }

    /// The stat of the node.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        &self.stat
    }
}

impl Display for GroupInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "group {}: {} members", self.path, self.members.len())?;
        self.members.iter().try_for_each(|member| write!(formatter, "\n  {member}"))?;
        self.unowned.iter().try_for_each(|node| write!(formatter, "\n  {node}  no member: persistent"))
    }
}

impl Display for MemberInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (id, bytes, age) = (self.id().escape_debug(), self.payload.len(), age_text(self.age()));
        write!(formatter, "{id}  {bytes} bytes  session {:#x}  ~{age}", self.session())
    }
}
