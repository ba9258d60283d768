use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// Which children a node had: its pzxid and their number.
///
/// The pzxid alone does not show it. Servers leave it as it is when they create a child of a node whose
/// counter of children has ended. A delete always changes it, and a create without a delete changes the
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedChildren(Zxid, i32);

impl ListedChildren {
    pub(super) fn of(stat: &Stat) -> Self {
        Self(stat.pzxid, stat.children)
    }
}
