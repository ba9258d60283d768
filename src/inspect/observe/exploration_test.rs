//! Every interleaving of three contenders, two servers that may be behind, and an observer that moves between
//! them.

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use super::{Report, Reported};
use crate::znode::zxid::Zxid;

const CONTENDERS: usize = 3;

/// A mistake that is planted in what the observer remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Any head of a list is reported.
    StaleHead,
    /// The end of a head is not reported before the next one.
    NoneOmitted,
    /// A queue that is empty from the beginning is not reported.
    EmptyOmitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Write {
    Create,
    /// Deletes the node that this write created.
    Delete(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Observing {
    Listing,
    /// The list showed this node as the head.
    Reading(usize),
    /// For a change of the head.
    WatchingHead(usize),
    /// For a node in an empty queue.
    WatchingQueue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    /// A node is known by the index of the write that created it. Its creation zxid is one more.
    writes: Vec<Write>,
    /// How many writes each server has applied.
    applied: [usize; 2],
    server: usize,
    observing: Observing,
    remembered: Reported,
    /// The last report, and the newest head of all.
    last: Option<Option<Zxid>>,
    newest: Zxid,
    violation: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Write(Write),
    Apply(usize),
    /// The observer connects to the other server.
    Move,
    Observe,
}

#[derive(Clone, Debug)]
struct Scenario {
    mistake: Option<Mistake>,
}

impl World {
    /// The nodes that exist after so many writes.
    fn nodes(&self, applied: usize) -> Vec<usize> {
        let writes = &self.writes[..applied];
        let is_left = |node: &usize| !writes.contains(&Write::Delete(*node));
        (0..applied).filter(|node| writes[*node] == Write::Create).filter(is_left).collect()
    }

    fn seen(&self) -> Vec<usize> {
        self.nodes(self.applied[self.server])
    }

    fn can_observe(&self) -> bool {
        match self.observing {
            Observing::Listing | Observing::Reading(_) => true,
            Observing::WatchingHead(node) => !self.seen().contains(&node),
            Observing::WatchingQueue => !self.seen().is_empty(),
        }
    }

    fn observe(&mut self, mistake: Option<Mistake>) {
        let seen = self.seen();
        self.observing = match self.observing {
            Observing::Listing if seen.is_empty() => {
                let _ = self.update(None, mistake);
                Observing::WatchingQueue
            }
            Observing::Listing => Observing::Reading(seen[0]),
            Observing::Reading(node) if !seen.contains(&node) => Observing::Listing,
            Observing::Reading(node) => {
                let czxid = i64::try_from(node).unwrap() + 1;
                let is_stale = self.update(Some(Zxid::new(czxid)), mistake);
                if is_stale { Observing::Listing } else { Observing::WatchingHead(node) }
            }
            Observing::WatchingHead(_) => {
                let _ = self.update(None, mistake);
                Observing::Listing
            }
            Observing::WatchingQueue => Observing::Listing,
        };
    }

    /// Returns whether the head is an earlier one.
    fn update(&mut self, head: Option<Zxid>, mistake: Option<Mistake>) -> bool {
        match mistake {
            Some(Mistake::StaleHead) => self.remembered.newest = Zxid::ZERO,
            Some(Mistake::NoneOmitted) if head.is_some() && head != self.remembered.head => {
                self.remembered.head = None;
            }
            Some(Mistake::EmptyOmitted) => self.remembered.has_begun = true,
            _ => {}
        }
        let Report { none, head: is_reported, is_stale } = self.remembered.update(head);
        if none {
            self.report(None);
        }
        if is_reported {
            self.report(head);
        }
        is_stale
    }

    fn report(&mut self, head: Option<Zxid>) {
        self.violation = match (self.last, head) {
            (Some(Some(_)), Some(_)) => Some("a head follows another one, and no end is between them"),
            (Some(None), None) => Some("the end of a head is reported twice"),
            (_, Some(head)) if head < self.newest => Some("an earlier head follows a newer one"),
            _ => self.violation,
        };
        self.newest = self.newest.max(head.unwrap_or_default());
        self.last = Some(head);
    }

    /// If nothing more happens by itself, the last report is right.
    fn is_right_in_the_end(&self) -> bool {
        let is_settled = self.applied == [self.writes.len(); 2] && !self.can_observe();
        let head =
            self.nodes(self.writes.len()).first().map(|node| Zxid::new(i64::try_from(*node).unwrap() + 1));
        !is_settled || self.last == Some(head)
    }
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            writes: Vec::new(),
            applied: [0; 2],
            server: 0,
            observing: Observing::Listing,
            remembered: Reported::default(),
            last: None,
            newest: Zxid::ZERO,
            violation: None,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.writes.iter().filter(|write| **write == Write::Create).count() < CONTENDERS {
            actions.push(Action::Write(Write::Create));
        }
        let nodes = world.nodes(world.writes.len());
        actions.extend(nodes.into_iter().map(|node| Action::Write(Write::Delete(node))));
        let behind = (0..2).filter(|server| world.applied[*server] < world.writes.len());
        actions.extend(behind.map(Action::Apply));
        actions.push(Action::Move);
        if world.can_observe() {
            actions.push(Action::Observe);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Write(write) => next.writes.push(write),
            Action::Apply(server) => next.applied[server] += 1,
            Action::Move => (next.server, next.observing) = (1 - next.server, Observing::Listing),
            Action::Observe => next.observe(self.mistake),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("reports follow each other", |_, world: &World| world.violation.is_none()),
            Property::always("the last report is right", |_, world: &World| world.is_right_in_the_end()),
            Property::sometimes("all heads are reported", |_, world: &World| world.newest == Zxid::new(5)),
        ]
    }
}

const RIGHT: Scenario = Scenario { mistake: None };

#[test]
fn no_interleaving_reports_an_earlier_head_after_a_newer_one() {
    let examples = assert_right("an observer of three heads", &RIGHT, Extent::Whole, 1000);
    assert_eq!(examples, ["all heads are reported"]);
}

#[test]
fn planted_mistakes_of_an_observer_are_caught() {
    for (mistake, property) in [
        (Mistake::StaleHead, "reports follow each other"),
        (Mistake::NoneOmitted, "reports follow each other"),
        (Mistake::EmptyOmitted, "the last report is right"),
    ] {
        let wrong = Scenario { mistake: Some(mistake) };
        assert_eq!(assert_caught(&format!("{mistake:?}"), &RIGHT, &wrong), property, "{mistake:?}");
    }
}
