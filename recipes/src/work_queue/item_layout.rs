//! Whose nodes a queue has: the names of its items, their order, and their data. All of it is pure.
//!
//! Sources: Curator's `DistributedQueue`, `DistributedPriorityQueue`, `DistributedDelayQueue` and
//! `DistributedIdQueue`, and kazoo's `LockingQueue`.

use lockkeeper_core::{ConfigError, Error};

use super::curator_item;
use super::name::{ItemName, PRIORITY_MAX, prefix_of, without_shard};
use super::shard_number::ShardNumber;
use super::stored::StoredItem;

/// The priority of a put that names none.
const PRIORITY: u16 = 100;

/// Curator's `QUEUE_ITEM_NAME`: the begin of each name.
const CURATOR: &str = "queue-";

/// The begin of each name of kazoo's.
const KAZOO: &str = "entry-";

/// Curator's separator before and after a time or an id.
const SEPARATOR: char = '|';

/// Whose nodes a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ItemLayout {
    Own,
    /// Those of Curator's `DistributedQueue`.
    Curator,
    CuratorPriority,
    CuratorDelay,
    CuratorId,
    /// Those of kazoo's `LockingQueue`.
    Kazoo,
}

/// What a put says of its items, besides their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PutOptions<'a> {
    pub(super) priority: Option<u16>,
    pub(super) due: Option<i64>,
    pub(super) id: Option<&'a str>,
}

/// The data of an item's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeData {
    Item(StoredItem),
    /// Several items in one node, or none. Only Curator's `putMulti` writes this.
    Several(Vec<Vec<u8>>),
    Unreadable(&'static str),
}

impl ItemLayout {
    #[cfg(any(test, lockkeeper_fuzzing))]
    pub(super) const ALL: [Self; 6] =
        [Self::Own, Self::Curator, Self::CuratorPriority, Self::CuratorDelay, Self::CuratorId, Self::Kazoo];

    pub(super) fn is_own(self) -> bool {
        self == Self::Own
    }

    /// As errors name it.
    fn describe(self) -> &'static str {
        match self {
            Self::Own => "this queue",
            Self::Curator => "Curator's DistributedQueue",
            Self::CuratorPriority => "Curator's DistributedPriorityQueue",
            Self::CuratorDelay => "Curator's DistributedDelayQueue",
            Self::CuratorId => "Curator's DistributedIdQueue",
            Self::Kazoo => "kazoo's LockingQueue",
        }
    }

    /// The error of a call for which the nodes have no place.
    pub(super) fn has_no(self, name: &'static str, advice: &'static str) -> Error {
        let value = format!("in the nodes of {}", self.describe());
        Error::Config(ConfigError::Setting { name, value, advice })
    }

    /// Refuses what the names and the data cannot say.
    pub(super) fn check(self, options: PutOptions<'_>) -> Result<(), Error> {
        if let Some(priority) = options.priority {
            if !matches!(self, Self::Own | Self::CuratorPriority | Self::Kazoo) {
                return Err(self.has_no("priority", "put without a priority, or use another layout"));
            }
            if priority > PRIORITY_MAX {
                let (name, value) = ("priority", priority.to_string());
                let advice = "take 0 to 999; a lower one is taken first";
                return Err(ConfigError::Setting { name, value, advice }.into());
            }
        }
        if options.due.is_some() && !matches!(self, Self::Own | Self::CuratorDelay) {
            return Err(self.has_no("time", "put without a time, or use another layout"));
        }
        match (self, options.id) {
            (Self::CuratorId, None) => Err(self.has_no("put", "put with an id, by put_once()")),
            (Self::Own | Self::CuratorId, _) | (_, None) => Ok(()),
            _ => Err(self.has_no("id", "put without an id, or use another layout")),
        }
    }

    /// The part of a new item's name before the number. `now`: the time of the servers, as far as is known.
    pub(super) fn prefix(self, options: PutOptions<'_>, now: i64) -> String {
        let priority = options.priority.unwrap_or(PRIORITY);
        match self {
            Self::Own => format!("{priority:03}-"),
            Self::Curator => CURATOR.to_owned(),
            // A leading 1, as negative ones have a leading 0.
            Self::CuratorPriority => format!("{CURATOR}1{priority:08X}"),
            Self::CuratorDelay => format!("{CURATOR}|{:08X}|", options.due.unwrap_or(now).max(1)),
            Self::CuratorId => {
                let id = options.id.unwrap_or_default().replace(['/', SEPARATOR], "_");
                format!("{CURATOR}|{id}|")
            }
            Self::Kazoo => format!("{KAZOO}{priority:03}-"),
        }
    }

    /// The name of a child of the items' directory. `None` if it is no item.
    pub(super) fn parse(self, name: &str) -> Option<ItemName> {
        match self {
            Self::Own => own_priority(name).map(|priority| ItemName::of(name).of_priority(priority)),
            Self::Kazoo => name.starts_with(KAZOO).then(|| ItemName::of(name)),
            _ if !name.starts_with(CURATOR) => None,
            Self::CuratorDelay => Some(ItemName::of(name).due_at(epoch_of(name).unwrap_or_default())),
            Self::CuratorId => Some(match without_id(name) {
                Some(order) => ItemName::of(name).ordered_by(&order),
                None => ItemName::of(name),
            }),
            Self::Curator | Self::CuratorPriority => Some(ItemName::of(name)),
        }
    }

    /// The items among the children of a shard.
    pub(super) fn parse_all(self, shard: ShardNumber, names: &[String]) -> impl Iterator<Item = ItemName> {
        names.iter().filter_map(move |name| Some(self.parse(name)?.in_shard(shard)))
    }

    /// The name of a child of the directory of the failed items. `None` if it is none.
    pub(super) fn parse_failed(self, name: &str) -> Option<ItemName> {
        match self {
            Self::Own => {
                let (item, shard) = without_shard(name);
                Some(self.parse(item)?.in_shard(shard))
            }
            _ => self.parse(name),
        }
    }

    /// The data of the node that has this item.
    pub(super) fn encode(self, item: &StoredItem) -> Vec<u8> {
        match self {
            Self::Own => item.encode(),
            Self::Kazoo => item.value.clone(),
            _ => curator_item::encode(&item.value),
        }
    }

    /// What a node has. The version of the node counts how often an item of another client's layout was taken
    /// by this library: no other client writes it.
    pub(super) fn decode(self, item: &ItemName, data: &[u8], version: i32) -> NodeData {
        let of_peer = |value| StoredItem {
            attempts: u32::try_from(version).unwrap_or_default(),
            due: Some(item.due()),
            ..StoredItem::new(value)
        };
        match self {
            Self::Own => NodeData::Item(StoredItem::decode(data)),
            Self::Kazoo => NodeData::Item(of_peer(data.to_vec())),
            _ => match curator_item::decode(data) {
                Ok(mut values) if values.len() == 1 => {
                    NodeData::Item(of_peer(values.pop().unwrap_or_default()))
                }
                Ok(values) => NodeData::Several(values),
                Err(cause) => NodeData::Unreadable(cause),
            },
        }
    }

    /// The part before the number for an item that takes the place of this one, or of this failed one.
    pub(super) fn prefix_like(self, name: &str) -> String {
        let name = if self.is_own() { without_shard(name).0 } else { name };
        prefix_of(name).map_or_else(|| self.prefix(PutOptions::default(), 0), str::to_owned)
    }
}

pub(crate) fn is_own_name(name: &str) -> bool {
    own_priority(name).is_some()
}

fn own_priority(name: &str) -> Option<u16> {
    let is_number = |text: &str, digits| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    let (priority, number) = name.split_once('-')?;
    (is_number(priority, 3) && is_number(number, 10)).then(|| priority.parse().ok())?
}

/// `DistributedDelayQueue.getEpoch`: the text between the last two separators. Without a time, the item is
/// due.
fn epoch_of(name: &str) -> Option<i64> {
    let (before, _) = name.rsplit_once(SEPARATOR)?;
    let (_, epoch) = before.rsplit_once(SEPARATOR)?;
    i64::from_str_radix(epoch, 16).ok()
}

/// `DistributedIdQueue.parseId`: the name without what is between the first two separators.
fn without_id(name: &str) -> Option<String> {
    let (before, rest) = name.split_once(SEPARATOR)?;
    let (_, after) = rest.split_once(SEPARATOR)?;
    Some(format!("{before}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(layout: ItemLayout, priority: u16, due: i64, id: &str) -> PutOptions<'_> {
        let all = [
            PutOptions { priority: Some(priority), ..PutOptions::default() },
            PutOptions { due: Some(due), ..PutOptions::default() },
            PutOptions { id: Some(id), ..PutOptions::default() },
        ];
        all.into_iter().find(|options| layout.check(*options).is_ok()).unwrap_or_default()
    }

    #[test]
    fn an_item_has_the_name_that_its_layout_gives_it() {
        let prefixes =
            ItemLayout::ALL.map(|layout| layout.prefix(options(layout, 7, 0x19_1234_5678, "a/b|c"), 5));
        assert_eq!(
            prefixes,
            ["007-", "queue-", "queue-100000007", "queue-|1912345678|", "queue-|a_b_c|", "entry-007-"]
        );
        assert_eq!(ItemLayout::CuratorDelay.prefix(PutOptions::default(), 0x10), "queue-|00000010|");
    }

    #[test]
    fn the_order_of_names_is_the_order_of_work() {
        let cases: [(ItemLayout, &[&str]); 6] = [
            (ItemLayout::Own, &["099-0000000012", "100-0000000009", "100-0000000010"]),
            (ItemLayout::Curator, &["queue-0000000009", "queue-0000000010"]),
            (
                ItemLayout::CuratorPriority,
                &["queue-0FFFFFFFF0000000004", "queue-1000000010000000003", "queue-10000000A0000000001"],
            ),
            (
                ItemLayout::CuratorDelay,
                &["queue-0000000009", "queue-|000000FF|0000000008", "queue-|00000100|0000000001"],
            ),
            (ItemLayout::CuratorId, &["queue-|z|0000000001", "queue-|a|0000000002"]),
            (ItemLayout::Kazoo, &["entry-001-0000000002", "entry-100-0000000001"]),
        ];
        for (layout, sorted) in cases {
            let mut names: Vec<ItemName> =
                sorted.iter().rev().map(|name| layout.parse(name).unwrap()).collect();
            names.sort_unstable();
            assert!(names.iter().map(ItemName::as_str).eq(sorted.iter().copied()), "{names:?}");
        }
    }

    #[test]
    fn the_time_of_an_item_is_in_its_name() {
        let due = |name| ItemLayout::CuratorDelay.parse(name).unwrap().due();
        assert_eq!(due("queue-|0190A0B0C0|0000000001"), 0x01_90A0_B0C0);
        for name in ["queue-0000000001", "queue-|x|0000000001", "queue-|", "queue-||0000000001"] {
            assert_eq!(due(name), 0, "{name}");
        }
    }

    #[test]
    fn other_children_are_no_items() {
        for name in ["", "100-", "entry-100-0000000001", "100-000000001", "+10-0000000001", "100--000000001"]
        {
            assert_eq!(ItemLayout::Own.parse(name), None, "{name}");
        }
        for layout in ItemLayout::ALL {
            for name in ["workers", "records", "failed", "ids", "_c_1-worker-0000000001"] {
                assert_eq!(layout.parse(name), None, "{name}");
            }
        }
    }

    #[test]
    fn what_a_name_cannot_say_is_refused() {
        let with =
            |layout: ItemLayout, priority, due, id| layout.check(PutOptions { priority, due, id }).is_ok();
        let can = ItemLayout::ALL.map(|layout| {
            [
                with(layout, None, None, None),
                with(layout, Some(1), None, None),
                with(layout, None, Some(1), None),
                with(layout, None, None, Some("a")),
            ]
        });
        let expected = [
            [true, true, true, true],
            [true, false, false, false],
            [true, true, false, false],
            [true, false, true, false],
            [false, false, false, true],
            [true, true, false, false],
        ];
        assert_eq!(can, expected);
    }

    #[test]
    fn an_item_that_takes_the_place_of_another_has_the_begin_of_its_name() {
        let like = |name| ItemLayout::Curator.prefix_like(name);
        assert_eq!(like("queue-|id|0000000007"), "queue-|id|");
        assert_eq!([like("queue-é"), like("queue-"), like("")], [CURATOR, CURATOR, CURATOR]);
    }

    #[test]
    fn a_failed_item_has_a_name_of_its_own_in_each_shard() {
        let shards = ["items", "items-0000000007"].map(|name| ShardNumber::parse(name).unwrap());
        let names = shards.map(|shard| ItemLayout::Own.parse("099-0000000004").unwrap().in_shard(shard));
        let failed = names.clone().map(|name| name.among_failed());
        assert_eq!(failed, ["099-0000000004", "099-0000000004-0000000007"]);
        assert_eq!(failed.each_ref().map(|name| ItemLayout::Own.parse_failed(name)), names.map(Some));
        assert_eq!(failed.map(|name| ItemLayout::Own.prefix_like(&name)), ["099-", "099-"]);
        assert_eq!(ItemLayout::Kazoo.prefix_like("entry-7-0000000001"), "entry-7-");
        assert_eq!(ItemLayout::Own.parse_failed("099-0000000004-000000007"), None);
        assert_eq!(ItemLayout::Own.parse_failed("099-0000000004-0000000000"), None);
    }

    #[test]
    fn the_order_of_work_is_by_priority_then_shard_then_number() {
        let name =
            |shard, name| ItemLayout::Own.parse(name).unwrap().in_shard(ShardNumber::parse(shard).unwrap());
        let sorted = [
            name("items-0000000010", "099-0000000001"),
            name("items", "100-0000000009"),
            name("items-0000000001", "100-0000000002"),
            name("items-0000000010", "100-0000000001"),
        ];
        assert!(sorted.is_sorted(), "{sorted:?}");
    }

    #[test]
    fn the_version_of_a_node_counts_the_takes_in_the_layout_of_another_client() {
        for layout in [ItemLayout::Curator, ItemLayout::Kazoo] {
            let data = layout.encode(&StoredItem::new(b"a".to_vec()));
            let item = layout.parse("queue-1").or_else(|| layout.parse("entry-1")).unwrap();
            let NodeData::Item(stored) = layout.decode(&item, &data, 2) else { panic!("{layout:?}") };
            assert_eq!((stored.attempts, stored.value), (2, b"a".to_vec()));
        }
    }
}
