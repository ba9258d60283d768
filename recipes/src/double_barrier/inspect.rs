use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, NodeInfo, RendezvousInfo, WholePath, count_of};

use super::handle::DoubleBarrier;

/// The members of a [`DoubleBarrier`] at one time: a snapshot for people and tools, which may be stale when
/// it is read.
///
/// `{}` prints a line, and one for each member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubleBarrierInspection {
    path: WholePath,
    count: u32,
    info: RendezvousInfo,
}

impl DoubleBarrier {
    /// Reads the members: a snapshot, no older than the call, unless the servers' leader was deposed and does
    /// not know it. It enters nothing, and needs only the right to read. Members of Curator and kazoo are
    /// shown as well.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<DoubleBarrierInspection, Error> {
        let info = self.rendezvous.inspect().await?;
        let path = self.rendezvous.manager().whole_path(self.path());
        Ok(DoubleBarrierInspection { path, count: self.count, info })
    }
}

impl DoubleBarrierInspection {
    /// The ids of the members that are inside, in the order in which they came.
    pub fn inside(&self) -> impl Iterator<Item = String> {
        self.ids(true)
    }

    /// The ids of the members that wait to enter, in the order in which they came.
    pub fn waiting(&self) -> impl Iterator<Item = String> {
        self.ids(false)
    }

    /// Those of the expected members that are not there, neither inside nor waiting.
    #[must_use]
    pub fn missing<'a>(&self, expected: &[&'a str]) -> Vec<&'a str> {
        let here: Vec<String> = self.info.members().iter().map(id).collect();
        expected.iter().copied().filter(|id| !here.iter().any(|other| other == id)).collect()
    }

    /// How many more members a round needs to begin: none while members are inside.
    #[must_use]
    pub fn missing_count(&self) -> u32 {
        match self.inside().next() {
            Some(_) => 0,
            None => self.count.saturating_sub(count_of(self.waiting().count())),
        }
    }

    /// The members as their nodes show them, in the order in which they came.
    #[must_use]
    pub fn members(&self) -> &[NodeInfo] {
        self.info.members()
    }

    /// Whether this member is inside. It may not know yet.
    #[must_use]
    pub fn is_inside(&self, member: &NodeInfo) -> bool {
        self.info.is_inside(member)
    }

    /// The persistent nodes, in the order in which they were created: they belong to no session, so they are
    /// no members.
    #[must_use]
    pub fn unowned(&self) -> &[NodeInfo] {
        self.info.unowned()
    }

    fn ids(&self, is_inside: bool) -> impl Iterator<Item = String> {
        self.info.members().iter().filter(move |member| self.info.is_inside(member) == is_inside).map(id)
    }
}

/// The data of a member's node as text. Bytes that are not UTF-8 are replaced.
fn id(member: &NodeInfo) -> String {
    String::from_utf8_lossy(member.data().unwrap_or_default()).into_owned()
}

impl Display for DoubleBarrierInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (inside, waiting) = (self.inside().count(), self.waiting().count());
        write!(
            formatter,
            "double barrier {} of {}: {inside} inside, {waiting} waiting, {} missing",
            self.path,
            self.count,
            self.missing_count()
        )?;
        for member in self.members() {
            let role = if self.info.is_inside(member) { "inside" } else { "waits" };
            let (id, name, session) = (id(member), member.name().escape_debug(), member.session());
            write!(formatter, "\n  {role:6}  {session:#x}  {}  {name}", id.escape_debug())?;
        }
        let mut unowned = self.unowned().iter();
        unowned.try_for_each(|node| {
            write!(formatter, "\n  no member: persistent  {}", node.name().escape_debug())
        })
    }
}
