//! The next step of a member: a state machine without I/O, async or clock.
//!
//! The rules:
//!
//! * The member queues for the items that are its own by the [hash](super::hash), and for no other.
//! * An item that it holds stays with it until it belongs to another member *and* a contender waits for it.
//!   So no item is without an owner while its next owner is slow. A removed item is given up at once.
//! * A request to release an item that is the member's own, as far as it knows, makes the member look once
//!   more: the asking member may know more, or less.
//!
//! The mutex of each item, and not this machine, makes sure that no two members hold an item.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::hash::{Hashed, owner};
use super::item::ReleaseReason;

/// The name of an item.
pub(super) type Item = Arc<str>;

/// What the members share, as the views show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) members: Vec<Hashed<Arc<str>>>,
    pub(super) items: Vec<Hashed<Item>>,
    /// Whether this process is the member of this id.
    pub(super) is_member: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum ShareEvent {
    Shared(Shared),
    Granted(Item),
    /// A contender waits for the item, or a process asked for it.
    Wanted(Item),
    /// The guard of the item has ended.
    Ended(Item),
    /// The member leaves.
    Leave,
    /// The time to hand over is over.
    Hurry,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShareStep {
    /// Queue for the item.
    Contend(Item),
    /// Leave the queue.
    Withdraw(Item),
    /// Give the granted item to the application.
    Offer(Item),
    /// Release the granted item, which the application has not seen.
    Return(Item),
    Listen(Item, Listen),
    /// Ask the application to give up the item.
    Request(Item, ReleaseReason),
    /// Read the members and the items once more.
    Refresh,
}

/// For what a held item is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listen {
    /// A request to release it.
    Request,
    /// A contender behind it, or a request.
    Contender,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemPhase {
    Contending,
    Held(Listen),
    /// The application was asked to give it up.
    Requested,
}

/// The state machine of one member.
#[derive(Debug)]
pub(super) struct ShareEngine {
    id: Arc<str>,
    shared: Shared,
    /// The share of this member, in order.
    mine: Vec<Item>,
    phases: BTreeMap<Item, ItemPhase>,
    is_leaving: bool,
}

impl ShareEngine {
    pub(super) fn new(id: Arc<str>) -> Self {
        Self { id, shared: Shared::default(), mine: Vec::new(), phases: BTreeMap::new(), is_leaving: false }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The share of this member, in order.
    pub(super) fn mine(&self) -> &[Item] {
        &self.mine
    }

    /// Whether the member holds and awaits nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.phases.is_empty()
    }

    pub(super) fn handle(&mut self, event: ShareEvent) -> Vec<ShareStep> {
        match event {
            ShareEvent::Shared(shared) => {
                self.shared = shared;
                self.judge()
            }
            ShareEvent::Granted(item) => self.granted(item),
            ShareEvent::Wanted(item) => self.wanted(item),
            ShareEvent::Ended(item) => {
                self.phases.remove(&item);
                if self.is_mine(&item) { self.contend(item) } else { Vec::new() }
            }
            ShareEvent::Leave => {
                self.is_leaving = true;
                self.judge()
            }
            ShareEvent::Hurry => {
                self.is_leaving = true;
                self.mine = Vec::new();
                let held = self.phases.keys().cloned().collect::<Vec<_>>();
                held.into_iter().filter_map(|item| self.request(item, ReleaseReason::Left)).collect()
            }
        }
    }

    fn exists(&self, item: &str) -> bool {
        self.shared.items.binary_search_by(|other| (*other.name).cmp(item)).is_ok()
    }

    fn is_mine(&self, item: &Item) -> bool {
        self.mine.binary_search(item).is_ok()
    }

    fn share(&self) -> Vec<Item> {
        if !self.shared.is_member || self.is_leaving {
            return Vec::new();
        }
        let is_mine = |item: &&Hashed<Item>| owner(item, &self.shared.members) == Some(&self.id);
        self.shared.items.iter().filter(is_mine).map(|item| Arc::clone(&item.name)).collect()
    }

    /// Compares all items with what the members share now.
    fn judge(&mut self) -> Vec<ShareStep> {
        let mut steps = Vec::new();
        self.mine = self.share();
        for item in self.phases.keys().cloned().collect::<Vec<_>>() {
            if !self.is_mine(&item) {
                steps.extend(self.disown(item));
            }
        }
        for item in self.mine.clone() {
            match self.phases.get(&item) {
                None => steps.extend(self.contend(item)),
                // What was waited for may have been a request that is answered by now.
                Some(ItemPhase::Held(Listen::Contender)) => steps.push(self.listen(item, Listen::Request)),
                Some(_) => {}
            }
        }
        steps
    }

    /// The item is not this member's.
    fn disown(&mut self, item: Item) -> Option<ShareStep> {
        match *self.phases.get(&item)? {
            ItemPhase::Contending => {
                self.phases.remove(&item);
                Some(ShareStep::Withdraw(item))
            }
            ItemPhase::Held(_) if !self.exists(&item) => self.request(item, ReleaseReason::Removed),
            ItemPhase::Held(_) if self.is_leaving && self.is_alone() => {
                self.request(item, ReleaseReason::Left)
            }
            ItemPhase::Held(Listen::Contender) | ItemPhase::Requested => None,
            ItemPhase::Held(_) => Some(self.listen(item, Listen::Contender)),
        }
    }

    fn is_alone(&self) -> bool {
        self.shared.members.iter().all(|member| member.name == self.id)
    }

    fn contend(&mut self, item: Item) -> Vec<ShareStep> {
        self.phases.insert(Arc::clone(&item), ItemPhase::Contending);
        vec![ShareStep::Contend(item)]
    }

    fn listen(&mut self, item: Item, listen: Listen) -> ShareStep {
        self.phases.insert(Arc::clone(&item), ItemPhase::Held(listen));
        ShareStep::Listen(item, listen)
    }

    fn request(&mut self, item: Item, reason: ReleaseReason) -> Option<ShareStep> {
        match self.phases.get_mut(&item)? {
            phase @ ItemPhase::Held(_) => {
                *phase = ItemPhase::Requested;
                Some(ShareStep::Request(item, reason))
            }
            ItemPhase::Contending => {
                self.phases.remove(&item);
                Some(ShareStep::Withdraw(item))
            }
            ItemPhase::Requested => None,
        }
    }

    fn granted(&mut self, item: Item) -> Vec<ShareStep> {
        if self.phases.get(&item) != Some(&ItemPhase::Contending) || !self.is_mine(&item) {
            self.phases.remove(&item);
            return vec![ShareStep::Return(item)];
        }
        let listen = self.listen(Arc::clone(&item), Listen::Request);
        vec![ShareStep::Offer(item), listen]
    }

    fn wanted(&mut self, item: Item) -> Vec<ShareStep> {
        match self.phases.get(&item) {
            Some(ItemPhase::Held(_)) if self.is_mine(&item) => {
                vec![self.listen(item, Listen::Nothing), ShareStep::Refresh]
            }
            Some(ItemPhase::Held(_)) => {
                let reason = if self.is_leaving { ReleaseReason::Left } else { ReleaseReason::Moved };
                self.request(item, reason).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}
