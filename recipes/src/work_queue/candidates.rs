//! The items that looks at the queue found: shared by all takers of a manager, so that not each of them lists
//! the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::item_layout::ItemLayout;
use super::name::ItemName;
use super::shard_number::ShardNumber;

/// After a collision with another process, takes go on among so many first items at least, and at most.
const WINDOW_MIN: usize = 16;
const WINDOW_MAX: usize = 1024;

/// Between the places of two items of the window that are drawn at one time: a prime number, beyond its size.
const STEP: usize = 7_919;

/// Each take makes the window smaller by this part.
const WINDOW_PART: usize = 32;

/// One list serves so many takes for each item in it: a list of 800 items is read once for 100 takes.
const ITEMS_PER_TAKE: usize = 8;

/// One look serves as many takes as a list of so many items at most: new items may have a lower priority.
const LOOK_MAX: usize = 10_000;

/// The list of a shard, as it was read.
#[derive(Debug, Default)]
pub(super) struct ListedShard {
    pub(super) names: Vec<String>,
    /// Nothing was put into the shard after the list.
    pub(super) is_closed: bool,
}

/// What one look at the queue has read.
#[derive(Debug, Default)]
pub(super) struct QueueLook {
    /// All shards that exist.
    pub(super) living: BTreeSet<ShardNumber>,
    /// The lists of all that are not [kept](ItemCandidates::is_kept).
    pub(super) lists: BTreeMap<ShardNumber, ListedShard>,
    /// The nodes that claim items.
    pub(super) workers: HashSet<String>,
    pub(super) now: i64,
}

/// The items to try, and the ones that are known to be claimed.
///
/// All of it is a hint: whether an item is free is decided by its node.
#[derive(Debug, Default)]
pub(super) struct ItemCandidates {
    shards: BTreeMap<ShardNumber, ShardItems>,
    /// The claim that each of these items has: the name of a worker, or in the layouts of other clients the
    /// name of the item itself. It ends only with the item, or with the node of this name.
    claimed: HashMap<ItemName, String>,
    workers: HashSet<String>,
    /// When each of these items is due.
    delayed: HashMap<ItemName, i64>,
    /// How many takes the last look still serves.
    left: usize,
    /// How many looks were recorded.
    looks: u64,
    /// Takes are among so many first items of the same priority: twice as many after each collision with
    /// another process, and fewer after each take. One, as long as no other process takes items.
    window: usize,
    /// The items of the window that are tried next.
    drawn: VecDeque<ItemName>,
}

/// The items of a shard that are neither known as claimed nor as delayed.
#[derive(Debug, Default)]
struct ShardItems {
    ready: BTreeSet<ItemName>,
    /// Those that a taker tries. What becomes of one is not always known.
    tried: BTreeSet<ItemName>,
    /// No item is new: the list is kept until it has served as many takes as it should.
    is_closed: bool,
    /// The list had no item.
    is_empty: bool,
    left: usize,
}

impl ShardItems {
    fn is_used_up(&self) -> bool {
        self.ready.is_empty() && self.tried.is_empty()
    }
}

impl ItemCandidates {
    /// Whether the next look needs no list of this shard.
    pub(super) fn is_kept(&self, shard: ShardNumber) -> bool {
        let is_delayed = || self.delayed.keys().any(|item| item.shard() == shard);
        self.shards.get(&shard).is_some_and(|items| {
            items.is_closed && (items.is_empty || (items.left > 0 && (!items.is_used_up() || is_delayed())))
        })
    }

    /// The shards that the next look lists, as far as they are known.
    pub(super) fn to_list(&self) -> BTreeSet<ShardNumber> {
        match self.shards.is_empty() {
            true => BTreeSet::from([ShardNumber::FIRST]),
            false => self.shards.keys().copied().filter(|shard| !self.is_kept(*shard)).collect(),
        }
    }

    /// Records a look.
    pub(super) fn looked(&mut self, layout: ItemLayout, look: QueueLook) {
        let QueueLook { living, lists, workers, now } = look;
        let listed: HashSet<ShardNumber> = lists.keys().copied().collect();
        self.shards.retain(|shard, _| living.contains(shard));
        for items in self.shards.values_mut() {
            // What became of these is asked again.
            items.ready.extend(std::mem::take(&mut items.tried));
        }
        for (shard, list) in lists.into_iter().filter(|(shard, _)| living.contains(shard)) {
            let items = layout.parse_all(shard, &list.names);
            let ready: BTreeSet<ItemName> = items.filter(|item| !workers.contains(item.as_str())).collect();
            let delayed = ready.iter().filter(|item| item.due() > now);
            self.delayed.extend(delayed.map(|item| (item.clone(), item.due())));
            let (is_closed, is_empty) = (list.is_closed, list.names.is_empty());
            let (tried, left) = (BTreeSet::new(), ready.len() / ITEMS_PER_TAKE + 1);
            self.shards.insert(shard, ShardItems { ready, tried, is_closed, is_empty, left });
        }
        let shards = &mut self.shards;
        // Of a list that is kept, an item whose claim has ended is tried again.
        let mut stays = |item: &ItemName, is_waiting: bool| {
            let Some(items) = shards.get_mut(&item.shard()) else { return false };
            let is_gone = listed.contains(&item.shard()) && !items.ready.contains(item);
            match is_waiting {
                _ if is_gone => {}
                true => drop(items.ready.remove(item)),
                false => drop(items.ready.insert(item.clone())),
            }
            is_waiting && !is_gone
        };
        self.claimed.retain(|item, worker| stays(item, workers.contains(worker)));
        self.delayed.retain(|item, due| stays(item, *due > now));
        self.workers = workers;
        self.looks += 1;
        let ready: usize = self.shards.values().map(|items| items.ready.len()).sum();
        // In the layouts of other clients a look lists all items.
        let most = if layout.is_own() { LOOK_MAX } else { usize::MAX };
        self.left = ready.min(most) / ITEMS_PER_TAKE + 1;
    }

    /// The next taker looks at the queue, and lists what is not kept.
    pub(super) fn forget_look(&mut self) {
        self.left = 0;
    }

    /// Forgets all lists: the directories may be others with the same names.
    pub(super) fn forget_lists(&mut self) {
        self.shards.clear();
        self.drawn.clear();
        self.left = 0;
    }

    /// The next item to try; `None` if a look is due. After collisions, one of the first items by `draw`, or
    /// all processes would meet again at the next one.
    pub(super) fn next(&mut self, draw: usize) -> Option<ItemName> {
        if self.left == 0 {
            return None;
        }
        self.pop(draw)
    }

    /// As [`next`](Self::next), also if the look has served as many takes as it should.
    pub(super) fn pop(&mut self, draw: usize) -> Option<ItemName> {
        let item = match self.pop_drawn() {
            Some(item) => item,
            None => {
                let count = self.in_window().count();
                self.in_window().nth(draw.checked_rem(count)?)?.clone()
            }
        };
        let items = self.shards.get_mut(&item.shard())?;
        items.ready.remove(&item);
        items.tried.insert(item.clone());
        Some(item)
    }

    /// The first of the items that were drawn before, if it is one to try still.
    fn pop_drawn(&mut self) -> Option<ItemName> {
        if self.window <= 1 {
            // The order is known again.
            self.drawn.clear();
        }
        loop {
            let item = self.drawn.pop_front()?;
            let is_ready = self.shards.get(&item.shard()).is_some_and(|items| items.ready.contains(&item));
            if is_ready && self.head().is_some_and(|head| item.is_beside(head)) {
                return Some(item);
            }
        }
    }

    fn head(&self) -> Option<&ItemName> {
        self.shards.values().filter_map(|items| items.ready.first()).min()
    }

    /// The items that one take is among. Those of the same priority are the first ones of each shard, and the
    /// shards are in order.
    fn in_window(&self) -> impl Iterator<Item = &ItemName> {
        let head = self.head();
        let is_beside = move |item: &&ItemName| head.is_some_and(|head| item.is_beside(head));
        let alike = self.shards.values().flat_map(move |items| items.ready.iter().take_while(is_beside));
        alike.take(self.window.max(1))
    }

    /// The items that will be tried next: the first ones, or so many of the window by `draw`.
    pub(super) fn draw_ahead(&mut self, count: usize, draw: usize) -> Vec<ItemName> {
        if self.window > 1 {
            let window: Vec<&ItemName> = self.in_window().collect();
            let places =
                (0..count).filter_map(|step| draw.wrapping_add(step * STEP).checked_rem(window.len()));
            let drawn: Vec<ItemName> =
                places.filter_map(|place| window.get(place).copied().cloned()).collect();
            self.drawn = drawn.iter().cloned().collect();
            return drawn;
        }
        let shards = self.shards.values();
        let mut first: Vec<&ItemName> = shards.flat_map(|items| items.ready.iter().take(count)).collect();
        first.sort_unstable();
        first.into_iter().take(count).cloned().collect()
    }

    /// A taker has claimed an item by the last look.
    pub(super) fn taken(&mut self, item: ItemName, worker: &str) {
        self.use_up(item.shard(), 1, 1);
        self.window -= self.window.div_ceil(WINDOW_PART);
        self.met_claim(item, worker);
    }

    /// The item is not free, or not there: the look serves fewer takes.
    pub(super) fn collided(&mut self, item: &ItemName) {
        self.use_up(item.shard(), ITEMS_PER_TAKE, 1);
        self.window = self.window.saturating_mul(2).clamp(WINDOW_MIN, WINDOW_MAX);
    }

    /// Another process has ended the item. Where one item is gone, others are: the list serves fewer takes.
    pub(super) fn missed(&mut self, item: &ItemName) {
        self.use_up(item.shard(), 0, ITEMS_PER_TAKE);
        self.ended(item);
    }

    /// So many takes less by this look, and by the list of this shard.
    fn use_up(&mut self, shard: ShardNumber, of_look: usize, of_list: usize) {
        self.left = self.left.saturating_sub(of_look);
        if let Some(items) = self.shards.get_mut(&shard) {
            items.left = items.left.saturating_sub(of_list);
        }
    }

    /// An item does not exist any more.
    pub(super) fn ended(&mut self, item: &ItemName) {
        self.set_aside(item);
        self.claimed.remove(item);
        self.delayed.remove(item);
    }

    fn set_aside(&mut self, item: &ItemName) {
        if let Some(items) = self.shards.get_mut(&item.shard()) {
            items.ready.remove(item);
            items.tried.remove(item);
        }
    }

    /// How many looks were recorded.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// The item names this worker, whose node existed at some time after so many looks. A later look may have
    /// shown that it is gone, and nobody would be told again: then the next take looks, and this returns
    /// `false`.
    pub(super) fn met_claim_after(&mut self, looks: u64, item: &ItemName, worker: &str) -> bool {
        if self.looks == looks {
            self.met_claim(item.clone(), worker);
            return true;
        }
        self.forget_look();
        false
    }

    /// The item names this worker, whose node exists.
    pub(super) fn met_claim(&mut self, item: ItemName, worker: &str) {
        self.set_aside(&item);
        self.workers.insert(worker.to_owned());
        self.claimed.insert(item, worker.to_owned());
    }

    /// The item is not due yet.
    pub(super) fn met_delay(&mut self, item: ItemName, due: i64) {
        self.set_aside(&item);
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
