//! Several engines over a model of the server, in random order: nobody starves, and only what has to move
//! moves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::Partition;
use super::super::decide::{Item, Listen, ShareEngine, ShareEvent, ShareStep, Shared};
use super::super::hash::Hashed;

const MEMBERS: usize = 4;
const ITEMS: usize = 10;

fn id(member: usize) -> Item {
    format!("member-{member}").into()
}

fn item(number: usize) -> Item {
    format!("item-{number}").into()
}

/// A member with its engine, and what the server and the application do for it.
struct Member {
    engine: ShareEngine,
    /// What it does not know yet: the members and the items as they were.
    unseen: VecDeque<(BTreeSet<usize>, BTreeSet<usize>)>,
    listens: BTreeMap<Item, Listen>,
    /// The guards of the application, and whether it was asked to give them up.
    guards: BTreeMap<Item, bool>,
}

/// What happens next: to a member, by number.
#[derive(Clone, Debug)]
enum Happening {
    Join(usize),
    Kill(usize),
    Add(usize),
    Remove(usize),
    /// The member sees the next change.
    See(usize),
    /// The head of an item's queue gets its grant.
    Grant(usize),
    /// A member that listens hears of a contender.
    Hear(usize),
    /// The application gives up what it was asked for.
    GiveUp(usize),
}

#[derive(Default)]
struct World {
    members: BTreeMap<usize, Member>,
    items: BTreeSet<usize>,
    /// The queue of each item; the head holds it if its guard exists.
    queues: BTreeMap<Item, VecDeque<usize>>,
    moves: usize,
}

impl World {
    fn tell(&mut self) {
        let all: BTreeSet<usize> = self.members.keys().copied().collect();
        for member in self.members.values_mut() {
            member.unseen.push_back((all.clone(), self.items.clone()));
        }
    }

    fn handle(&mut self, number: usize, event: ShareEvent) {
        let Some(member) = self.members.get_mut(&number) else { return };
        for step in member.engine.handle(event) {
            match step {
                ShareStep::Contend(item) => self.queues.entry(item).or_default().push_back(number),
                ShareStep::Withdraw(item) | ShareStep::Return(item) => {
                    self.queues.entry(item).or_default().retain(|other| *other != number);
                }
                ShareStep::Offer(item) => {
                    self.moves += 1;
                    assert!(member.guards.insert(item, false).is_none(), "two guards of one item");
                }
                ShareStep::Listen(item, listen) => _ = member.listens.insert(item, listen),
                ShareStep::Request(item, _) => *member.guards.get_mut(&item).unwrap() = true,
                ShareStep::Refresh => {
                    while member.unseen.len() > 1 {
                        member.unseen.pop_front();
                    }
                }
            }
        }
    }

    fn see(&mut self, number: usize) -> bool {
        let Some(member) = self.members.get_mut(&number) else { return false };
        let Some((members, items)) = member.unseen.pop_front() else { return false };
        let members = members.into_iter().map(|member| Hashed::new(id(member))).collect();
        let mut items: Vec<_> = items.into_iter().map(|number| Hashed::new(item(number))).collect();
        items.sort_by(|one, other| one.name.cmp(&other.name));
        self.handle(number, ShareEvent::Shared(Shared { members, items, is_member: true }));
        true
    }

    /// The head of the queue, if it has no guard yet.
    fn grant(&mut self, name: &Item) -> bool {
        let Some(head) = self.queues.get(name).and_then(|queue| queue.front().copied()) else { return false };
        if self.members[&head].guards.contains_key(name) {
            return false;
        }
        self.handle(head, ShareEvent::Granted(name.clone()));
        true
    }

    fn hear(&mut self, number: usize) -> bool {
        let Some(member) = self.members.get(&number) else { return false };
        let is_wanted = |(item, listen): &(&Item, &Listen)| {
            let waits = self.queues.get(*item).is_some_and(|queue| queue.len() > 1);
            member.guards.get(*item) == Some(&false) && waits && **listen != Listen::Nothing
        };
        let Some(item) = member.listens.iter().find(is_wanted).map(|(item, _)| item.clone()) else {
            return false;
        };
        // The watch is used up.
        self.members.get_mut(&number).unwrap().listens.insert(item.clone(), Listen::Nothing);
        self.handle(number, ShareEvent::Wanted(item));
        true
    }

    fn give_up(&mut self, number: usize) -> bool {
        let Some(member) = self.members.get_mut(&number) else { return false };
        let Some(item) = member.guards.iter().find(|(_, asked)| **asked).map(|(item, _)| item.clone()) else {
            return false;
        };
        member.guards.remove(&item);
        let queue = self.queues.get_mut(&item).unwrap();
        assert_eq!(queue.pop_front(), Some(number), "a holder is the head");
        self.handle(number, ShareEvent::Ended(item));
        true
    }

    fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Join(number) => {
                if self.members.contains_key(&number) {
                    return;
                }
                let member = Member {
                    engine: ShareEngine::new(id(number)),
                    unseen: VecDeque::new(),
                    listens: BTreeMap::new(),
                    guards: BTreeMap::new(),
                };
                self.members.insert(number, member);
                self.tell();
            }
            Happening::Kill(number) => {
                self.members.remove(&number);
                self.queues.values_mut().for_each(|queue| queue.retain(|other| *other != number));
                self.tell();
            }
            Happening::Add(number) => {
                self.items.insert(number);
                self.tell();
            }
            Happening::Remove(number) => {
                self.items.remove(&number);
                self.tell();
            }
            Happening::See(number) => _ = self.see(number),
            Happening::Grant(number) => _ = self.grant(&item(number)),
            Happening::Hear(number) => _ = self.hear(number),
            Happening::GiveUp(number) => _ = self.give_up(number),
        }
    }

    /// Everything that can happen without a change of members or items, until nothing more can.
    fn settle(&mut self) {
        loop {
            let mut is_changed = false;
            for number in 0..MEMBERS {
                is_changed |= self.see(number) || self.hear(number) || self.give_up(number);
            }
            for number in 0..ITEMS {
                is_changed |= self.grant(&item(number));
            }
            if !is_changed {
                return;
            }
        }
    }

    /// Each item, and the member that has it.
    fn owners(&self) -> BTreeMap<Item, usize> {
        let guards = self
            .members
            .iter()
            .flat_map(|(number, member)| member.guards.keys().map(|of| (of.clone(), *number)));
        let all: Vec<_> = guards.collect();
        let owners: BTreeMap<_, _> = all.iter().cloned().collect();
        assert_eq!(owners.len(), all.len(), "two members have one item");
        owners
    }

    /// Each item, and the member that should have it.
    fn expected(&self) -> BTreeMap<Item, usize> {
        let ids: Vec<Item> = self.members.keys().map(|number| id(*number)).collect();
        let owner = |number: &usize| {
            let name = item(*number);
            let owner = Partition::owner_among(&name, ids.iter().map(|id| &**id))?.to_owned();
            Some((name, self.members.keys().copied().find(|number| *id(*number) == *owner)?))
        };
        self.items.iter().filter_map(owner).collect()
    }
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (0..MEMBERS).prop_map(Happening::Join),
        1 => (0..MEMBERS).prop_map(Happening::Kill),
        2 => (0..ITEMS).prop_map(Happening::Add),
        1 => (0..ITEMS).prop_map(Happening::Remove),
        6 => (0..MEMBERS).prop_map(Happening::See),
        6 => (0..ITEMS).prop_map(Happening::Grant),
        6 => (0..MEMBERS).prop_map(Happening::Hear),
        6 => (0..MEMBERS).prop_map(Happening::GiveUp),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn in_the_end_each_item_is_with_the_member_it_belongs_to(all in vec(happenings(), 0..200)) {
        let mut world = World::default();
        for happening in &all {
            world.happen(happening);
            world.owners();
        }
        world.settle();
        prop_assert_eq!(world.owners(), world.expected());
        prop_assert!(world.queues.values().all(|queue| queue.len() <= 1), "a contender is left");
    }

    #[test]
    fn a_change_of_a_settled_group_moves_its_share_and_nothing_else(
        members in 1..MEMBERS, joins in any::<bool>(), items in 1..=ITEMS,
    ) {
        let mut world = World::default();
        (0..members).for_each(|number| world.happen(&Happening::Join(number)));
        (0..items).for_each(|number| world.happen(&Happening::Add(number)));
        world.settle();
        let before = world.owners();
        let moves = world.moves;
        world.happen(&if joins { Happening::Join(members) } else { Happening::Kill(members - 1) });
        world.settle();
        let after = world.owners();
        let moved = after.iter().filter(|(item, owner)| before.get(*item) != Some(owner)).count();
        prop_assert_eq!(world.moves - moves, moved);
        prop_assert_eq!(after, world.expected());
    }
}
