//! The items that one look at the queue found: shared by all takers of a manager, so that not each of them
//! lists the queue.

use std::collections::{HashMap, HashSet, VecDeque};

use super::item_layout::ItemLayout;
use super::name::ItemName;

/// After a collision with another process, a taker goes on to one of so many first items.
const SPREAD: usize = 16;

/// One list serves so many takes for each item in it: a list of 800 items is read once for 100 takes.
const ITEMS_PER_TAKE: usize = 8;

/// The items to try, and the ones that are known to be claimed.
///
/// All of it is a hint: whether an item is free is decided by its node.
#[derive(Debug, Default)]
pub(super) struct ItemCandidates {
    ready: VecDeque<ItemName>,
    /// The claim that each of these items has: the name of a worker, or in the layouts of other clients the
    /// name of the item itself. It ends only with the item, or with the node of this name.
    claimed: HashMap<ItemName, String>,
    workers: HashSet<String>,
    /// When each of these items is due.
    delayed: HashMap<ItemName, i64>,
    /// How many takes the last list still serves.
    left: usize,
}

impl ItemCandidates {
    /// Records a list of the items, and of the nodes that claim items.
    pub(super) fn listed(&mut self, layout: ItemLayout, items: &[String], workers: Vec<String>, now: i64) {
        let mut items: Vec<ItemName> = items.iter().filter_map(|name| layout.parse(name)).collect();
        items.sort_unstable();
        self.workers = workers.into_iter().collect();
        let (workers, listed) = (&self.workers, items.iter().collect::<HashSet<_>>());
        self.claimed.retain(|item, worker| listed.contains(item) && workers.contains(worker));
        self.delayed.retain(|item, due| listed.contains(item) && *due > now);
        self.left = items.len() / ITEMS_PER_TAKE + 1;
        for item in items.iter().filter(|item| item.due() > now) {
            self.delayed.insert(item.clone(), item.due());
        }
        items.retain(|item| {
            !self.claimed.contains_key(item)
                && !self.delayed.contains_key(item)
                && !self.workers.contains(item.as_str())
        });
        self.ready = items.into();
    }

    /// Forgets the list: the next taker lists.
    pub(super) fn forget_list(&mut self) {
        self.ready.clear();
        self.left = 0;
    }

    /// The next item to try; `None` if the queue must be listed. After a collision, one of the first items by
    /// `spread`, or all processes would meet again at the next one.
    pub(super) fn next(&mut self, spread: Option<usize>) -> Option<ItemName> {
        if self.left == 0 {
            return None;
        }
        self.pop(spread)
    }

    /// As [`next`](Self::next), also if the list has served as many takes as it should.
    pub(super) fn pop(&mut self, spread: Option<usize>) -> Option<ItemName> {
        let among = self.ready.len().min(SPREAD);
        match spread {
            Some(spread) if among > 0 => self.ready.remove(spread % among),
            _ => self.ready.pop_front(),
        }
    }

    /// A taker has claimed an item by the last list.
    pub(super) fn taken(&mut self, item: ItemName, worker: &str) {
        self.left = self.left.saturating_sub(1);
        self.met_claim(item, worker);
    }

    /// The item names this worker, whose node exists.
    pub(super) fn met_claim(&mut self, item: ItemName, worker: &str) {
        self.workers.insert(worker.to_owned());
        self.claimed.insert(item, worker.to_owned());
    }

    /// The item is not due yet.
    pub(super) fn met_delay(&mut self, item: ItemName, due: i64) {
        self.delayed.insert(item, due);
    }

    /// When the first of the delayed items is due.
    pub(super) fn next_due(&self) -> Option<i64> {
        self.delayed.values().min().copied()
    }

    /// Whether the last list of the workers has this one.
    pub(super) fn has_worker(&self, worker: &str) -> bool {
        self.workers.contains(worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: &[u32]) -> Vec<String> {
        numbers.iter().map(|number| format!("100-{number:010}")).collect()
    }

    fn item(number: u32) -> ItemName {
        ItemLayout::Own.parse(&format!("100-{number:010}")).unwrap()
    }

    #[test]
    fn one_taker_takes_the_first_item_first() {
        let mut candidates = ItemCandidates::default();
        assert_eq!(candidates.next(None), None);
        candidates.listed(ItemLayout::Own, &names(&[3, 1, 2]), Vec::new(), 0);
        assert_eq!([candidates.next(None), candidates.next(None)], [Some(item(1)), Some(item(2))]);
    }

    #[test]
    fn an_item_is_skipped_as_long_as_the_node_of_its_worker_is_listed() {
        let mut candidates = ItemCandidates::default();
        candidates.met_claim(item(1), "a");
        candidates.listed(ItemLayout::Own, &names(&[1, 2]), vec!["a".to_owned()], 0);
        assert_eq!(candidates.next(None), Some(item(2)));
        candidates.listed(ItemLayout::Own, &names(&[1, 2]), vec!["b".to_owned()], 0);
        assert_eq!(candidates.next(None), Some(item(1)));
    }

    #[test]
    fn a_delayed_item_is_skipped_until_it_is_due() {
        let mut candidates = ItemCandidates::default();
        candidates.met_delay(item(1), 10);
        candidates.listed(ItemLayout::Own, &names(&[1, 2]), Vec::new(), 9);
        assert_eq!((candidates.next(None), candidates.next_due()), (Some(item(2)), Some(10)));
        candidates.listed(ItemLayout::Own, &names(&[1, 2]), Vec::new(), 10);
        assert_eq!((candidates.next(None), candidates.next_due()), (Some(item(1)), None));
    }

    #[test]
    fn a_list_serves_takes_in_proportion_to_its_length() {
        for (length, takes) in [(1, 1), (8, 2), (800, 101)] {
            let mut candidates = ItemCandidates::default();
            candidates.listed(ItemLayout::Own, &names(&(0..length).collect::<Vec<_>>()), Vec::new(), 0);
            let mut taken = 0;
            while let Some(item) = candidates.next(None) {
                candidates.taken(item, "a");
                taken += 1;
            }
            assert_eq!(taken, takes.min(length), "{length}");
        }
    }

    #[test]
    fn a_collision_goes_on_among_the_first_items() {
        let mut candidates = ItemCandidates::default();
        candidates.listed(ItemLayout::Own, &names(&(0..40).collect::<Vec<_>>()), Vec::new(), 0);
        for spread in [5, 21, usize::MAX] {
            let next = candidates.next(Some(spread)).unwrap();
            assert!(next < item(20), "{next}");
        }
        candidates.forget_list();
        assert_eq!(candidates.next(Some(0)), None);
    }

    #[test]
    fn an_item_that_is_claimed_by_a_node_of_its_name_is_skipped() {
        let mut candidates = ItemCandidates::default();
        let items = ["queue-0000000001", "queue-0000000002"].map(str::to_owned);
        candidates.listed(ItemLayout::Curator, &items, vec![items[0].clone(), "workers".to_owned()], 0);
        assert_eq!(candidates.next(None).as_ref().map(ItemName::as_str), Some("queue-0000000002"));
        candidates.listed(ItemLayout::Curator, &items, Vec::new(), 0);
        assert_eq!(candidates.next(None).as_ref().map(ItemName::as_str), Some("queue-0000000001"));
    }

    #[test]
    fn an_item_with_a_time_in_its_name_is_skipped_until_it_is_due() {
        let mut candidates = ItemCandidates::default();
        let items = ["queue-|0000000A|0000000001".to_owned()];
        candidates.listed(ItemLayout::CuratorDelay, &items, Vec::new(), 9);
        assert_eq!((candidates.next(None), candidates.next_due()), (None, Some(10)));
        candidates.listed(ItemLayout::CuratorDelay, &items, Vec::new(), 10);
        assert!(candidates.next(None).is_some());
    }
}
