//! The directories of the items: pure.

use lockkeeper_core::Stat;

/// The first directory, and the begin of the names of the others.
pub(crate) const ITEMS: &str = "items";

/// The digits of the number in the name of a shard.
const DIGITS: usize = 10;

/// The greatest number that a name has room for.
const NUMBER_MAX: u64 = 9_999_999_999;

/// The number of a directory of items. Of two items with the same priority, the one in the lower shard was
/// put first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShardNumber(u64);

impl ShardNumber {
    /// The first shard, which is never deleted.
    pub(crate) const FIRST: Self = Self(0);

    /// The last one that a name has room for.
    pub(super) const MAX: Self = Self(NUMBER_MAX);

    /// The shard that a child of the queue's path is. `None` if it is none.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(ITEMS)?;
        if rest.is_empty() {
            return Some(Self::FIRST);
        }
        let number = Self::parse_digits(rest.strip_prefix('-')?)?;
        (number != Self::FIRST).then_some(number)
    }

    pub(super) fn parse_digits(digits: &str) -> Option<Self> {
        let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok().map(Self))?
    }

    pub(super) fn digits(self) -> String {
        format!("{:010}", self.0)
    }

    /// The name of the directory.
    pub(crate) fn name(self) -> String {
        match self {
            Self::FIRST => ITEMS.to_owned(),
            number => format!("{ITEMS}-{}", number.digits()),
        }
    }

    /// The shard behind this one. `None` if no name has room for its number.
    pub(super) fn next(self) -> Option<Self> {
        (self.0 < NUMBER_MAX).then_some(Self(self.0 + 1))
    }
}

/// The directory of a shard, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShardStat {
    /// A shard is open as long as its data was never written.
    pub(super) version: i32,
    pub(super) items: u32,
    /// How many items were ever put into it.
    pub(super) made: i32,
}

impl ShardStat {
    pub(super) fn of(stat: &Stat) -> Self {
        let items = u32::try_from(stat.children).unwrap_or_default();
        Self { version: stat.version, items, made: stat.children_made() }
    }
}

/// What the puts of one process know of the shards.
///
/// As long as the last one is open, the others are closed, and items are only deleted there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownShards {
    pub(super) last: ShardNumber,
    /// The others have no more items than that.
    pub(super) others: u32,
    /// So many items may be put before the number of items is read again.
    pub(super) unread: u32,
}

impl KnownShards {
    /// The last shard, if these items may be put without another read.
    pub(super) fn take_unread(&mut self, items: u32) -> Option<ShardNumber> {
        self.unread = self.unread.checked_sub(items)?;
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_found_by_its_name() {
        for (name, number) in [("items", 0), ("items-0000000001", 1), ("items-9999999999", NUMBER_MAX)] {
            assert_eq!(ShardNumber::parse(name), Some(ShardNumber(number)));
            assert_eq!(ShardNumber(number).name(), name);
        }
    }

    #[test]
    fn a_child_of_another_name_is_no_shard() {
        let names = ["", "item", "items-", "items-x", "items-1", "items-0000000000", "items-00000000001"];
        for name in names.into_iter().chain(["items-+000000001", "workers", "items0000000001"]) {
            assert_eq!(ShardNumber::parse(name), None, "{name}");
        }
    }

    #[test]
    fn the_order_of_shards_is_that_of_their_numbers_and_has_an_end() {
        assert_eq!(ShardNumber::FIRST.next(), Some(ShardNumber(1)));
        assert!(ShardNumber(9) < ShardNumber(10));
        assert_eq!(ShardNumber(NUMBER_MAX).next(), None);
    }
}
