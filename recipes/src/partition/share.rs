use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use lockkeeper_core::{Error, FencingToken};

/// The items that one member of a [`Partition`](super::Partition) has, and waits for: the latest state, as
/// far as the member knows.
#[derive(Clone, Debug, Default)]
pub struct PartitionShare {
    pub(super) members: u32,
    pub(super) items: u32,
    /// The items of this member.
    pub(super) mine: Vec<Arc<str>>,
    pub(super) held: BTreeMap<Arc<str>, FencingToken>,
    pub(super) error: Option<Error>,
}

impl PartitionShare {
    /// The number of members.
    #[must_use]
    pub fn members(&self) -> u32 {
        self.members
    }

    /// The number of items of the partition.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The items that belong to this member, in order, whether it holds them yet or not.
    pub fn mine(&self) -> impl Iterator<Item = &str> {
        self.mine.iter().map(|item| &**item)
    }

    /// The items that this member holds, in order, with the fencing token of each: also those that move to
    /// another member, until they are given up.
    pub fn held(&self) -> impl Iterator<Item = (&str, FencingToken)> {
        self.held.iter().map(|(item, token)| (&**item, *token))
    }

    /// The fencing token of an item, if this member holds it.
    #[must_use]
    pub fn fencing_token(&self, item: &str) -> Option<FencingToken> {
        self.held.get(item).copied()
    }

    /// Whether this member holds the items that belong to it, and no other.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.mine.iter().eq(self.held.keys())
    }

    /// Why the last attempt to acquire an item failed, until the next grant: the server refuses the node, for
    /// example. The member tries again.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }
}

impl Display for PartitionShare {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { members, items, mine, held, .. } = self;
        let (mine, held) = (mine.len(), held.len());
        write!(formatter, "holds {held} of {mine} items, of {items} in all over {members} members")
    }
}
