//! Every interleaving of two producers and a client that deletes, at directories that are full at once: with
//! requests that are applied late.

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use super::super::decide::{ShardVerdict, is_over, judge_shard};
use super::super::shard_number::{ShardNumber, ShardStat};

/// A rule to break, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A put does not check that the directory is open.
    PutUnchecked,
    /// A close compares no version: one that is late closes whatever it finds.
    CloseTwice,
    /// The next directory is not made in the transaction that closes.
    NoNext,
    /// An empty directory is deleted although it is open.
    DeleteOpen,
}

const MISTAKES: [Mistake; 4] =
    [Mistake::PutUnchecked, Mistake::CloseTwice, Mistake::NoNext, Mistake::DeleteOpen];

/// The items that each producer puts.
const PUTS: u8 = 2;

/// The items of a directory.
const SIZE: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shard {
    version: i32,
    /// The puts that made the items, in order.
    items: Vec<u8>,
    /// What the directory had when it was closed.
    when_closed: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Request {
    Put { shard: usize, item: u8 },
    Close { shard: usize },
    Delete { shard: usize, version: i32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Producer {
    /// The last directory that it knows.
    known: usize,
    /// What it is about to send.
    next: Option<Request>,
    left: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    shards: Vec<Option<Shard>>,
    producers: [Producer; 2],
    deleter: Option<Request>,
    /// Requests that are applied later. The sender does not know.
    late: Vec<Request>,
    takes_left: u8,
    late_left: u8,
    done: u8,
    puts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The producer reads, or sends its request.
    Step(usize),
    /// The close of the producer has no answer, and is applied later.
    Lose(usize),
    /// An item is done.
    Take(usize),
    /// Somebody sees an empty directory, or sends the delete.
    Delete(usize),
    Late(usize),
}

#[derive(Clone, Debug)]
struct Scenario(Option<Mistake>);

impl World {
    fn new() -> Self {
        let producer = Producer { known: 0, next: None, left: PUTS };
        let first = Shard { version: 0, items: Vec::new(), when_closed: None };
        Self {
            shards: vec![Some(first)],
            producers: [producer; 2],
            deleter: None,
            late: Vec::new(),
            takes_left: 2,
            late_left: 2,
            done: 0,
            puts: 0,
        }
    }

    fn stat(&self, shard: usize) -> Option<ShardStat> {
        let seen = self.shards.get(shard)?.as_ref()?;
        Some(ShardStat { version: seen.version, items: u32::try_from(seen.items.len()).unwrap(), made: 0 })
    }

    fn last(&self) -> usize {
        self.shards.iter().rposition(Option::is_some).unwrap_or_default()
    }

    fn apply(&mut self, mistake: Option<Mistake>, request: Request) -> bool {
        let shard = match request {
            Request::Put { shard, .. } | Request::Close { shard } | Request::Delete { shard, .. } => shard,
        };
        let Some(found) = self.shards.get_mut(shard).and_then(Option::as_mut) else { return false };
        match request {
            Request::Put { item, .. } => {
                if found.version != 0 && mistake != Some(Mistake::PutUnchecked) {
                    return false;
                }
                found.items.push(item);
                self.puts += 1;
            }
            Request::Close { .. } => {
                let is_next_there = self.shards.get(shard + 1).is_some_and(Option::is_some);
                let Some(found) = self.shards.get_mut(shard).and_then(Option::as_mut) else { return false };
                let is_compared = mistake != Some(Mistake::CloseTwice);
                if is_compared && (found.version != 0 || is_next_there) {
                    return false;
                }
                found.version += 1;
                found.when_closed = Some(found.items.len());
                if mistake != Some(Mistake::NoNext) {
                    let next = Shard { version: 0, items: Vec::new(), when_closed: None };
                    self.shards.resize(self.shards.len().max(shard + 2), None);
                    self.shards[shard + 1] = Some(next);
                }
            }
            Request::Delete { version, .. } => {
                if found.version != version || !found.items.is_empty() {
                    return false;
                }
                self.shards[shard] = None;
            }
        }
        true
    }

    fn step(&mut self, mistake: Option<Mistake>, number: usize) {
        let producer = self.producers[number];
        let next = match producer.next {
            Some(request) => {
                let is_put = matches!(request, Request::Put { .. });
                if self.apply(mistake, request) && is_put {
                    self.producers[number].left -= 1;
                }
                None
            }
            None => match self.stat(producer.known).map(|stat| judge_shard(stat, 1, SIZE)) {
                Some(ShardVerdict::Open) => {
                    let item = u8::try_from(number).unwrap() * PUTS + producer.left;
                    Some(Request::Put { shard: producer.known, item })
                }
                Some(ShardVerdict::Full) => Some(Request::Close { shard: producer.known }),
                Some(ShardVerdict::Closed) | None => {
                    self.producers[number].known = self.last();
                    None
                }
            },
        };
        self.producers[number].next = next;
    }

    /// Nothing is put into a directory after it was closed.
    fn is_closed_for_ever(&self) -> bool {
        let mut shards = self.shards.iter().flatten();
        shards.all(|shard| shard.when_closed.is_none_or(|count| shard.items.len() <= count))
    }

    /// Only the last directory is open, and its number never comes again.
    fn is_last_alone_open(&self) -> bool {
        let living: Vec<&Shard> = self.shards.iter().flatten().collect();
        living
            .split_last()
            .is_some_and(|(last, others)| last.version == 0 && others.iter().all(|shard| shard.version == 1))
    }

    fn has_all_items(&self) -> bool {
        let items: usize = self.shards.iter().flatten().map(|shard| shard.items.len()).sum();
        items + usize::from(self.done) == usize::from(self.puts)
    }
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, producer) in world.producers.iter().enumerate() {
            if producer.left > 0 {
                actions.push(Action::Step(number));
            }
            if world.late_left > 0 && matches!(producer.next, Some(Request::Close { .. })) {
                actions.push(Action::Lose(number));
            }
        }
        for (number, shard) in world.shards.iter().enumerate() {
            let Some(shard) = shard else { continue };
            if world.takes_left > 0 && !shard.items.is_empty() {
                actions.push(Action::Take(number));
            }
            if world.deleter.is_none() && shard.items.is_empty() {
                actions.push(Action::Delete(number));
            }
        }
        if world.deleter.is_some() {
            actions.push(Action::Delete(0));
        }
        actions.extend((0..world.late.len()).map(Action::Late));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Step(number) => next.step(self.0, number),
            Action::Lose(number) => {
                let request = next.producers[number].next.take()?;
                next.late.push(request);
                next.late_left -= 1;
            }
            Action::Take(shard) => {
                next.shards[shard].as_mut()?.items.remove(0);
                next.done += 1;
                next.takes_left -= 1;
            }
            Action::Delete(shard) => match next.deleter.take() {
                Some(request) => drop(next.apply(self.0, request)),
                None => {
                    let stat = next.stat(shard)?;
                    let number = |count| (0..count).fold(ShardNumber::FIRST, |at, _| at.next().unwrap());
                    let is_over = is_over(number(shard), stat, number(next.last()));
                    if !is_over && self.0 != Some(Mistake::DeleteOpen) {
                        return None;
                    }
                    next.deleter = Some(Request::Delete { shard, version: stat.version });
                }
            },
            Action::Late(number) => {
                let request = next.late.remove(number);
                next.apply(self.0, request);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is put into a directory that was closed", |_, world: &World| {
                world.is_closed_for_ever()
            }),
            Property::always("the last directory alone is open", |_, world: &World| {
                world.is_last_alone_open()
            }),
            Property::always("no item is lost", |_, world: &World| world.has_all_items()),
        ]
    }
}

#[test]
fn no_interleaving_puts_into_a_directory_that_was_closed() {
    assert_right("directories of a work queue", &Scenario(None), Extent::usual(), 20);
}

#[test]
fn planted_mistakes_of_the_directories_are_caught() {
    for mistake in MISTAKES {
        assert_caught(&format!("directories, {mistake:?}"), &Scenario(None), &Scenario(Some(mistake)));
    }
}
