//! Every interleaving of a few contenders, with a few faults.

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right, is_soak};

use super::LOCK;
use super::scenario::{Faults, Mistake, Scenario};
use super::world::{Action, Proof, World};
use crate::local::decide::ContenderKind::{self, Read, Write};

const NO_FAULTS: Faults = Faults { hand_deletes: 0, breaks: 0, swaps: 0, cancels: 0, reaps: 0 };

const AFTER_RELEASED: &str = "a number grants behind a released head";
const BESIDE_READER: &str = "a number grants behind a reader that waits for no node";

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Action>) {
        state.progress(self, actions);
        state.chance(self, actions);
    }

    fn next_state(&self, state: &World, action: Action) -> Option<World> {
        let mut next = state.clone();
        next.step(self, &action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one exclusive holder", |_, world: &World| world.is_exclusive()),
            Property::always("no grant behind a blocker", |_, world: &World| world.violation.is_none()),
            Property::always("no lost wake-up, no orphan", |scenario, world: &World| world.is_live(scenario)),
            Property::always("the queue agrees with itself", |_, world: &World| world.is_consistent()),
            Property::sometimes(AFTER_RELEASED, |_, world: &World| world.has_proof(Proof::AfterReleased)),
            Property::sometimes(BESIDE_READER, |_, world: &World| world.has_proof(Proof::BesideReader)),
        ]
    }
}

fn scenario(contenders: &[(usize, ContenderKind, u8)], faults: Faults) -> Scenario {
    Scenario {
        contenders: contenders.to_vec(),
        queues: vec![true, true, false],
        faults,
        exchanges: false,
        warm_rounds: 0,
        mistake: None,
    }
}

/// The faults of each exploration, and how often the second contender holds. All but the last row are
/// explored completely, at least in a soak.
const FAULTS: [(&str, Faults, u8); 9] = [
    ("no fault", NO_FAULTS, 1),
    ("no fault, two rounds", NO_FAULTS, 2),
    ("a cancel", Faults { cancels: 1, ..NO_FAULTS }, 1),
    ("a delete by hand", Faults { hand_deletes: 1, ..NO_FAULTS }, 1),
    ("a reconnect, answers lost", Faults { breaks: 1, ..NO_FAULTS }, 1),
    ("a session swap", Faults { swaps: 1, ..NO_FAULTS }, 1),
    ("a removed directory", Faults { reaps: 1, ..NO_FAULTS }, 1),
    ("a reconnect and a removed directory", Faults { breaks: 1, reaps: 1, ..NO_FAULTS }, 1),
    ("all faults", Faults { hand_deletes: 1, breaks: 1, swaps: 1, cancels: 1, reaps: 0 }, 1),
];

/// The grants without a list that happen in this scenario. The first session has used the directory alone.
fn examples_of(scenario: &Scenario) -> Vec<&'static str> {
    let of_first = |kind: ContenderKind| {
        let own = scenario.contenders.iter().filter(|of| of.0 == 0 && of.1 == kind);
        if scenario.warm_rounds == 0 { 0 } else { own.count() }
    };
    let after_released = (of_first(LOCK) + of_first(Read) > 0).then_some(AFTER_RELEASED);
    let beside_reader = (of_first(Read) > 1).then_some(BESIDE_READER);
    after_released.into_iter().chain(beside_reader).collect()
}

/// Explores a scenario of three contenders with the faults of each row. `is_quick` if its single faults are
/// explored completely by default.
fn explore_rows(name: &str, scenario: &Scenario, is_quick: bool) {
    for (fault, faults, rounds) in FAULTS {
        let name = format!("{name}, {fault}");
        let mut scenario = Scenario { faults, ..scenario.clone() };
        scenario.contenders[1].2 = rounds;
        let is_single = faults.count() < 2;
        let extent = match is_soak() {
            _ if is_single && is_quick => Extent::Whole,
            false => Extent::Part(10_000),
            true if faults.count() > 2 => Extent::Part(20_000_000),
            true => Extent::Whole,
        };
        let examples = assert_right(&name, &scenario, extent, 500);
        for example in examples_of(&scenario) {
            assert!(examples.contains(&example), "{name}: no state in which {example}");
        }
    }
}

/// Three contenders on one to three sessions. The third session is a foreign client's.
fn explore_all(kinds: [ContenderKind; 3], is_quick: impl Fn([usize; 3]) -> bool) {
    for sessions in [[0, 0, 2], [0, 1, 2], [0, 0, 1], [0, 0, 0]] {
        let contenders = [0, 1, 2].map(|number| (sessions[number], kinds[number], 1));
        for warm_rounds in [0, 4] {
            let names = kinds.map(name_of).join(", ");
            let name = format!("{names} on sessions {sessions:?}, {warm_rounds} rounds before");
            let scenario = Scenario { warm_rounds, ..scenario(&contenders, NO_FAULTS) };
            explore_rows(&name, &scenario, is_quick(sessions));
        }
    }
}

fn name_of(kind: ContenderKind) -> &'static str {
    match kind {
        Read => "reader",
        Write => "writer",
        ContenderKind::Lock(_) => "mutex",
    }
}

#[test]
fn no_interleaving_of_three_contenders_of_a_mutex_breaks_a_rule() {
    explore_all([LOCK, LOCK, LOCK], |sessions| sessions[2] == 2);
}

#[test]
fn no_interleaving_of_readers_and_writers_breaks_a_rule() {
    explore_all([Read, Write, Read], |sessions| sessions[2] == 2);
    explore_all([Write, Read, Read], |_| false);
    explore_all([Write, Write, Read], |_| false);
}

#[test]
fn no_interleaving_with_exchanges_breaks_a_rule() {
    let contenders = [(0, LOCK, 1), (0, LOCK, 1), (2, LOCK, 1)];
    for warm_rounds in [0, 4] {
        let scenario = Scenario { exchanges: true, warm_rounds, ..scenario(&contenders, NO_FAULTS) };
        explore_rows(&format!("exchanges, {warm_rounds} rounds before"), &scenario, true);
    }
}

#[test]
fn planted_mistakes_are_caught() {
    let own_two = [(0, LOCK, 1), (0, LOCK, 1), (2, LOCK, 1)];
    let own_three = [(0, LOCK, 1), (0, LOCK, 1), (0, LOCK, 1)];
    let again = [(0, LOCK, 1), (0, LOCK, 2), (2, LOCK, 1)];
    let mixed = [(0, Read, 1), (0, Write, 1), (2, Read, 1)];
    let cancel = Faults { cancels: 1, ..NO_FAULTS };
    let hand_delete = Faults { hand_deletes: 1, ..NO_FAULTS };
    let reap = Faults { reaps: 1, ..NO_FAULTS };
    let warm = |contenders, faults| Scenario { warm_rounds: 4, ..scenario(contenders, faults) };
    let exchanges = Scenario { exchanges: true, ..scenario(&own_two, hand_delete) };
    for (mistake, right) in [
        (Mistake::ReleasedOverAnotherConnection, warm(&own_two, Faults { breaks: 1, ..reap })),
        (Mistake::EarlierDirectoryWatch, warm(&again, Faults { breaks: 1, ..reap })),
        (Mistake::AnyDirectory, warm(&own_two, reap)),
        (Mistake::HandOffWithoutCheck, scenario(&own_two, hand_delete)),
        (Mistake::WriterWithoutList, scenario(&mixed, NO_FAULTS)),
        (Mistake::WaiterHandsOff, scenario(&own_two, cancel)),
        (Mistake::NoRelist, scenario(&own_two, cancel)),
        (Mistake::NoSequenceWake, scenario(&own_three, NO_FAULTS)),
        (Mistake::GrantOfEarlierConnection, scenario(&own_two, Faults { breaks: 1, ..hand_delete })),
        (Mistake::ExchangeWithoutCheck, exchanges),
    ] {
        let wrong = Scenario { mistake: Some(mistake), ..right.clone() };
        assert_caught(&format!("{mistake:?}"), &right, &wrong);
    }
}
