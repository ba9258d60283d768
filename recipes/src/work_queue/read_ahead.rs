//! The data of items, read for several takes by one request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Deadline, Stat};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::candidates::ItemCandidates;
use super::name::ItemName;

/// So many items are read beside the one that a taker needs, at most.
const AHEAD_MAX: usize = 32;

/// How long what was read is used. Of items that change, and of directories that are made anew, less is old.
const FRESH: Duration = Duration::from_secs(1);

/// The data and stat of an item; `None` if it does not exist.
pub(super) type ItemNode = Option<(Vec<u8>, Stat)>;

/// What takers of a process have read, or read now.
///
/// It may be old: a claim is refused unless the item has the version that was read. That is the same item as
/// long as the queue was not deleted since, and its numbers begun again. So a worker uses what was read while
/// its node was there, which is deleted with the queue, and the claim checks that node. Not promised: items
/// that are put into a directory of items that was deleted alone, by hand, less than [`FRESH`] before. In the
/// layouts of other clients the workers are elsewhere, and nothing is read ahead.
#[derive(Default)]
pub(super) struct ReadAhead {
    items: Mutex<ReadItems>,
    /// A request has ended.
    ended: Notify,
}

#[derive(Default)]
struct ReadItems {
    read: HashMap<ItemName, KeptRead>,
    /// How many requests were begun.
    begun: u64,
    /// The items that a request in flight reads.
    asked: HashSet<ItemName>,
    /// How many items the last request read beside the one that a taker needed: the next one reads twice as
    /// many, or none if what was read became old.
    ahead: usize,
}

struct KeptRead {
    node: ItemNode,
    fresh: Deadline,
    /// The number of its request.
    request: u64,
}

/// A take that needs the data of an item.
#[derive(Clone, Copy)]
pub(super) struct ItemTake<'a> {
    pub(super) name: &'a ItemName,
    /// Chooses the items that are read ahead, among several processes.
    pub(super) draw: usize,
    /// What these requests have read, and earlier ones, is not for its worker.
    pub(super) reads_before: u64,
    /// Nothing is read ahead: the items may be made anew while the worker lives.
    pub(super) is_alone: bool,
}

/// What a taker does that needs the data of an item.
pub(super) enum ReadStep {
    /// It has the data.
    Use(ItemNode),
    /// A request of another taker reads the item.
    Wait,
    Read(AskedItems),
}

/// The items of one request.
pub(super) struct AskedItems {
    ahead: Arc<ReadAhead>,
    names: Vec<ItemName>,
    /// Its number.
    request: u64,
}

impl Drop for AskedItems {
    fn drop(&mut self) {
        let mut items = self.ahead.items.lock();
        for name in &self.names {
            items.asked.remove(name);
        }
        drop(items);
        self.ahead.ended.notify_waiters();
    }
}

impl ReadAhead {
    /// Resolves at the end of a request that is in flight when it is called.
    pub(super) fn until_one_ends(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Forgets what was read: the items may be others.
    pub(super) fn forget(&self) {
        let mut items = self.items.lock();
        items.read.clear();
        items.ahead = 0;
    }

    /// An item was claimed by another process since it was read. The next request reads half as many.
    pub(super) fn was_late(&self) {
        let mut items = self.items.lock();
        items.read.clear();
        // The next request doubles it.
        items.ahead /= 4;
    }

    /// An item was claimed, so what was read of it is old.
    pub(super) fn claimed(&self, name: &ItemName) {
        self.items.lock().read.remove(name);
    }

    /// How many requests were begun.
    pub(super) fn begun(&self) -> u64 {
        self.items.lock().begun
    }

    /// What a take does next.
    pub(super) fn begin(
        self: &Arc<Self>,
        take: &ItemTake<'_>,
        candidates: &Mutex<ItemCandidates>,
    ) -> ReadStep {
        let ItemTake { name, draw, reads_before, is_alone } = *take;
        let mut items = self.items.lock();
        let before = items.read.len();
        items.read.retain(|_, item| !item.fresh.has_passed());
        let became_old = items.read.len() < before;
        if let Some(item) = items.read.remove(name).filter(|item| item.request > reads_before) {
            return ReadStep::Use(item.node);
        }
        if items.asked.contains(name) {
            return ReadStep::Wait;
        }
        items.ahead = if became_old { 0 } else { (items.ahead * 2).clamp(1, AHEAD_MAX) };
        let ahead = if is_alone { 0 } else { items.ahead };
        let mut names = vec![name.clone()];
        items.asked.insert(name.clone());
        for item in candidates.lock().draw_ahead(ahead, draw) {
            if !items.read.contains_key(&item) && items.asked.insert(item.clone()) {
                names.push(item);
            }
        }
        items.begun += 1;
        ReadStep::Read(AskedItems { ahead: Arc::clone(self), names, request: items.begun })
    }
}

impl AskedItems {
    pub(super) fn names(&self) -> &[ItemName] {
        &self.names
    }

    /// Keeps what was read of the others, and returns what was read of the first.
    pub(super) fn answered(self, nodes: Vec<ItemNode>) -> Option<ItemNode> {
        if nodes.len() < self.names.len() {
            // Large items: the next request asks for a few more than were answered.
            let mut items = self.ahead.items.lock();
            items.ahead = items.ahead.min(nodes.len().saturating_sub(1));
        }
        let mut nodes = nodes.into_iter();
        let first = nodes.next();
        let fresh = Deadline::after(FRESH);
        let nodes = nodes.map(|node| KeptRead { node, fresh, request: self.request });
        self.ahead.items.lock().read.extend(self.names.iter().skip(1).cloned().zip(nodes));
        first
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::candidates::{ListedShard, QueueLook};
    use super::super::item_layout::ItemLayout;
    use super::super::shard_number::ShardNumber;
    use super::*;

    /// So many items that are free.
    fn free(count: u32) -> Mutex<ItemCandidates> {
        let names = (0..count).map(|number| format!("100-{number:010}")).collect();
        let list = ListedShard { names, is_closed: false };
        let mut candidates = ItemCandidates::default();
        candidates.looked(
            ItemLayout::Own,
            QueueLook {
                living: BTreeSet::from([ShardNumber::FIRST]),
                lists: BTreeMap::from([(ShardNumber::FIRST, list)]),
                ..QueueLook::default()
            },
        );
        Mutex::new(candidates)
    }

    fn pop(candidates: &Mutex<ItemCandidates>) -> ItemName {
        candidates.lock().pop(0).unwrap()
    }

    fn of(name: &ItemName) -> ItemTake<'_> {
        ItemTake { name, draw: 0, reads_before: 0, is_alone: false }
    }

    /// Reads what a take asks for. Returns how many items that were; 0 if it has the data.
    fn read(ahead: &Arc<ReadAhead>, item: &ItemName, candidates: &Mutex<ItemCandidates>) -> usize {
        match ahead.begin(&of(item), candidates) {
            ReadStep::Use(_) => 0,
            ReadStep::Wait => panic!("nobody reads {item:?}"),
            ReadStep::Read(asked) => {
                let count = asked.names.len();
                assert_eq!(asked.names.first(), Some(item));
                assert!(asked.answered(vec![None; count]).is_some());
                count
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn as_long_as_all_is_used_each_request_reads_twice_as_many_items_ahead() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(150));
        let read: Vec<usize> = (0..150).map(|_| read(&ahead, &pop(&candidates), &candidates)).collect();
        let requests: Vec<usize> = read.into_iter().filter(|count| *count > 0).collect();
        assert_eq!(requests, [2, 3, 5, 9, 17, 33, 33, 33, 15]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_became_old_is_read_again_and_nothing_with_it() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(9));
        let take = || read(&ahead, &pop(&candidates), &candidates);
        assert_eq!([take(), take(), take()], [2, 0, 3]);
        tokio::time::advance(FRESH).await;
        assert_eq!([take(), take(), take()], [1, 2, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_is_forgotten_after_a_claim_and_after_a_late_one_half_as_much_is_read() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(60));
        let take = || read(&ahead, &pop(&candidates), &candidates);
        assert_eq!(take(), 2);
        let second = pop(&candidates);
        ahead.claimed(&second);
        assert_eq!(read(&ahead, &second, &candidates), 3);
        assert_eq!([take(), take(), take()], [0, 0, 5]);
        ahead.was_late();
        assert_eq!([take(), take(), take()], [3, 0, 0]);
        assert_eq!(take(), 5);
        ahead.forget();
        assert_eq!(take(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_is_being_read_is_waited_for_until_its_request_has_ended() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(3));
        let first = pop(&candidates);
        let ReadStep::Read(asked) = ahead.begin(&of(&first), &candidates) else { panic!() };
        let second = pop(&candidates);
        let ended = ahead.ended.notified();
        assert!(matches!(ahead.begin(&of(&second), &candidates), ReadStep::Wait));
        drop(asked);
        ended.await;
        assert!(matches!(ahead.begin(&of(&second), &candidates), ReadStep::Read(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_uses_nothing_that_was_read_before_it_was_there() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(9));
        assert_eq!(read(&ahead, &pop(&candidates), &candidates), 2);
        let second = pop(&candidates);
        let newer = ItemTake { reads_before: ahead.begun(), ..of(&second) };
        assert!(matches!(ahead.begin(&newer, &candidates), ReadStep::Read(_)));
        assert_eq!(read(&ahead, &second, &candidates), 5);
        let third = pop(&candidates);
        let older = ItemTake { reads_before: 1, ..of(&third) };
        assert!(matches!(ahead.begin(&older, &candidates), ReadStep::Use(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_short_answer_few_more_are_asked_for_and_alone_nothing_else() {
        let (ahead, candidates) = (Arc::<ReadAhead>::default(), free(60));
        let names = |take: &ItemTake<'_>, answered: usize| match ahead.begin(take, &candidates) {
            ReadStep::Read(asked) => {
                let count = asked.names.len();
                assert!(asked.answered(vec![None; answered.min(count)]).is_some());
                count
            }
            _ => 0,
        };
        let next = |answered| names(&of(&pop(&candidates)), answered);
        assert_eq!([next(9), next(9), next(9), next(9), next(9)], [2, 0, 3, 0, 0]);
        assert_eq!([next(2), next(9), next(9)], [5, 0, 3]);
        ahead.forget();
        let alone = pop(&candidates);
        assert_eq!(names(&ItemTake { is_alone: true, ..of(&alone) }, 9), 1);
    }
}
