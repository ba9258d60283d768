use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{ContenderInfo, Error, NodeInfo, Role, WholePath};

use super::handle::{BATCH, Partition};

/// The members and the items of a [`Partition`] at one time: a snapshot for people and tools, which may be
/// stale when it is read.
///
/// `{}` prints a line, and one for each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionInspection {
    path: WholePath,
    members: Vec<String>,
    unowned: Vec<String>,
    items: Vec<PartitionItem>,
}

/// An item of a [`PartitionInspection`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionItem {
    name: String,
    owner: Option<String>,
    contenders: Vec<ContenderInfo>,
}

impl Partition {
    /// Reads the members, the items, and the holder and the waiters of each item: a snapshot, no older than
    /// the call. It enters no queue, and needs only the right to read.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to list), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<PartitionInspection, Error> {
        let (members, unowned) = self.members_and_unowned().await?;
        let names = self.items().await?;
        let mut items = Vec::with_capacity(names.len());
        for batch in names.chunks(BATCH) {
            let queues = batch.iter().map(|name| self.queue(name, "")).collect::<Result<Vec<_>, _>>()?;
            let Some((first, others)) = queues.split_first() else { continue };
            for (name, contenders) in batch.iter().zip(first.inspect_with(others).await?) {
                let owner = Self::owner_among(name, members.iter().map(String::as_str));
                items.push(PartitionItem { name: name.clone(), owner: owner.map(str::to_owned), contenders });
            }
        }
        Ok(PartitionInspection { path: self.whole_path(), members, unowned, items })
    }

    /// The names of the ephemeral nodes of the group, and of the persistent ones.
    async fn members_and_unowned(&self) -> Result<(Vec<String>, Vec<String>), Error> {
        let nodes = NodeInfo::children_of(&self.manager, self.group()?.path()).await?;
        let (members, unowned): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| node.session() != 0);
        let names = |nodes: Vec<NodeInfo>| nodes.iter().map(|node| node.name().to_owned()).collect();
        Ok((names(members), names(unowned)))
    }
}

impl PartitionInspection {
    /// The ids of the members, in order.
    #[must_use]
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// The names of the persistent nodes among the members: they belong to no session, so no item belongs to
    /// them.
    #[must_use]
    pub fn unowned(&self) -> &[String] {
        &self.unowned
    }

    /// The items, in the order of their names.
    #[must_use]
    pub fn items(&self) -> &[PartitionItem] {
        &self.items
    }

    /// The items that are not where they belong: free, or held by another member than their owner. Moves
    /// take a moment; an item that stays here has a member that does not give it up, or that cannot take it.
    pub fn misplaced(&self) -> impl Iterator<Item = &PartitionItem> {
        self.items.iter().filter(|item| !item.is_placed())
    }

    /// How many items each holder has, by the id of the member.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<String, u32> {
        let mut shares = BTreeMap::new();
        for holder in self.items.iter().filter_map(PartitionItem::held_by) {
            *shares.entry(holder).or_default() += 1;
        }
        shares
    }
}

impl PartitionItem {
    /// The name of the item.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The member that the item belongs to, among the members of this inspection.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The holder, as its node shows it.
    #[must_use]
    pub fn holder(&self) -> Option<&ContenderInfo> {
        self.contenders.iter().find(|of| of.role() == Role::Holder)
    }

    /// The id of the member that holds the item. `__REVOKE__` for a holder that was asked to give it up; with
    /// a space and the id behind it, if the id has the form of an [`Identity`](lockkeeper_core::Identity).
    #[must_use]
    pub fn held_by(&self) -> Option<String> {
        let data = self.holder()?.data()?;
        Some(String::from_utf8_lossy(data).into_owned())
    }

    /// The holder and the waiters, in the order of the queue.
    #[must_use]
    pub fn contenders(&self) -> &[ContenderInfo] {
        &self.contenders
    }

    fn is_placed(&self) -> bool {
        self.owner.is_some() && self.owner == self.held_by()
    }
}

impl Display for PartitionInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (members, items) = (self.members.len(), self.items.len());
        let misplaced = self.misplaced().count();
        write!(
            formatter,
            "partition {}: {items} items over {members} members, {misplaced} on the move",
            self.path
        )?;
        for name in &self.unowned {
            write!(formatter, "\n  {}  no member: persistent", name.escape_debug())?;
        }
        for item in &self.items {
            let holder = item.held_by().unwrap_or_else(|| "nobody".to_owned());
            write!(formatter, "\n  {}  held by {}", item.name.escape_debug(), holder.escape_debug())?;
            if let Some(owner) = item.owner().filter(|_| !item.is_placed()) {
                write!(formatter, ", belongs to {}", owner.escape_debug())?;
            }
        }
        Ok(())
    }
}
