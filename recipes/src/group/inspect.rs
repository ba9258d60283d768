use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, NodeInfo, WholePath};

use super::handle::Group;
use super::member::{Member, MemberLayout};
use crate::inspection::age_text;

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
    node: NodeInfo,
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
        let member = |node: NodeInfo| {
            let member = Member::decode(node.name(), node.data().unwrap_or_default()).ok()?;
            Some(MemberInspection { member, node })
        };
        let nodes = NodeInfo::children_of(&self.manager, &self.path).await?.into_iter();
        let (members, unowned) = nodes.filter_map(member).partition(|member| member.node.session() != 0);
        Ok(GroupInspection { path: self.manager.whole_path(&self.path), members, unowned })
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

    /// The node of the member. Its data is the payload.
    #[must_use]
    pub fn node(&self) -> &NodeInfo {
        &self.node
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
        let (id, bytes) = (self.id().escape_debug(), self.node.data().unwrap_or_default().len());
        let (session, age) = (self.node.session(), age_text(self.node.age()));
        write!(formatter, "{id}  {bytes} bytes  session {session:#x}  ~{age}")
    }
}
