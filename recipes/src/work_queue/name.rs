use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use super::shard_number::ShardNumber;

/// The directories of a queue, beside those of the items.
pub(crate) const RECORDS: &str = "records";
pub(crate) const WORKERS: &str = "workers";
pub(crate) const FAILED: &str = "failed";

/// The greatest priority.
pub(super) const PRIORITY_MAX: u16 = 999;

/// The digits of the number that the server appends.
const NUMBER_DIGITS: usize = 10;

/// The name of an item. The order of these is the order of work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ItemName {
    /// The item is not taken before this time, in milliseconds since 1970, if its name has one. Otherwise 0.
    due: i64,
    /// In our own layout. Otherwise 0: it is in the text.
    priority: u16,
    /// In our own layout. Otherwise the first one.
    shard: ShardNumber,
    /// The text that the order is by, behind all that.
    order: Arc<str>,
    name: Arc<str>,
}

impl ItemName {
    /// A name whose order is that of its text.
    pub(super) fn of(name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self { due: 0, priority: 0, shard: ShardNumber::FIRST, order: Arc::clone(&name), name }
    }

    pub(super) fn due_at(self, due: i64) -> Self {
        Self { due, ..self }
    }

    pub(super) fn ordered_by(self, order: &str) -> Self {
        Self { order: order.into(), ..self }
    }

    pub(super) fn of_priority(self, priority: u16) -> Self {
        Self { priority, ..self }
    }

    pub(super) fn in_shard(self, shard: ShardNumber) -> Self {
        Self { shard, ..self }
    }

    pub(super) fn due(&self) -> i64 {
        self.due
    }

    /// Whether the order of work of the two is that of their puts: they have the same priority.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.priority == other.priority
    }

    /// The directory that has the item.
    pub(super) fn shard(&self) -> ShardNumber {
        self.shard
    }

    pub(super) fn as_str(&self) -> &str {
        &self.name
    }

    /// The name of the item among the failed ones: those of all shards are in one directory.
    pub(super) fn among_failed(&self) -> String {
        match self.shard {
            ShardNumber::FIRST => self.name.to_string(),
            shard => format!("{}-{}", self.name, shard.digits()),
        }
    }
}

/// The name that a failed item had, and its shard.
pub(super) fn without_shard(failed: &str) -> (&str, ShardNumber) {
    let split = failed.match_indices('-').nth(1).and_then(|(at, _)| failed.split_at_checked(at));
    let shard = split.and_then(|(name, rest)| Some((name, ShardNumber::parse_digits(rest.get(1..)?)?)));
    // Those of the first shard have none in their names.
    shard.filter(|(_, shard)| *shard != ShardNumber::FIRST).unwrap_or((failed, ShardNumber::FIRST))
}

/// The part of a name before the number that the server has appended.
pub(super) fn prefix_of(name: &str) -> Option<&str> {
    let (prefix, number) = name.split_at_checked(name.len().checked_sub(NUMBER_DIGITS)?)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(prefix)
}

impl Display for ItemName {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}
