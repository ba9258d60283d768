//! Every interleaving of a few contenders, with a few faults.

use std::io::Write as _;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::super::ContenderKind::{self, Read, Write};
use super::LOCK;
use super::world::{Action, Faults, Mistake, Scenario, World};

const NO_FAULTS: Faults = Faults { hand_deletes: 0, breaks: 0, swaps: 0, cancels: 0, reaps: 0 };

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, state: &World, actions: &mut Vec<Action>) {
        state.progress(actions);
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
            Property::always("no lost wake-up, no orphan", |_, world: &World| world.is_live()),
            Property::always("the queue agrees with itself", |_, world: &World| world.is_consistent()),
        ]
    }
}

/// The result of an exploration.
struct Explored {
    states: usize,
    /// The broken property, and the actions that lead to it.
    broken: Option<(&'static str, Vec<Action>)>,
}

/// Explores a scenario: visits at most `limit` states, and counts repeated ones.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing depends on it")]
fn explore(name: &str, scenario: &Scenario, limit: usize) -> Explored {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = scenario
        .clone()
        .checker()
        .threads(threads)
        .target_state_count(limit)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    let is_whole = checker.state_count() < limit;
    let broken = checker.discoveries().into_iter().next();
    let broken = broken.map(|(property, path)| (property, path.into_actions()));
    let bound = match &broken {
        Some((property, _)) => property,
        None if is_whole => "all of them",
        None => "bounded",
    };
    // Written past the capture of the test's output, since the bound belongs to the result.
    let _ = writeln!(
        std::io::stderr(),
        "{name}: {states} states, depth {depth}, {bound}, {:.1} s",
        begun.elapsed().as_secs_f64(),
    );
    Explored { states, broken }
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

/// How many states one exploration visits at most, repeated ones included.
const LIMIT: usize = 30_000;
const SOAK_LIMIT: usize = 20_000_000;

fn is_soak() -> bool {
    std::env::var_os("LOCKKEEPER_SOAK").is_some()
}

/// Every scenario of three contenders, with at most one fault of each of these in turn.
///
/// If `is_whole`, scenarios with two contenders on one session and a foreign client are explored completely.
/// All others are explored up to a bound.
fn explore_all(kinds: [ContenderKind; 3], is_whole: bool) {
    let one_fault = [
        ("no fault", NO_FAULTS),
        ("a cancel", Faults { cancels: 1, ..NO_FAULTS }),
        ("a delete by hand", Faults { hand_deletes: 1, ..NO_FAULTS }),
        ("a reconnect, answers lost", Faults { breaks: 1, ..NO_FAULTS }),
        ("a session swap", Faults { swaps: 1, ..NO_FAULTS }),
        ("a removed directory", Faults { reaps: 1, ..NO_FAULTS }),
        ("all faults", Faults { hand_deletes: 1, breaks: 1, swaps: 1, cancels: 1, reaps: 0 }),
    ];
    for sessions in [[0, 0, 2], [0, 1, 2], [0, 0, 1], [0, 0, 0]] {
        let contenders: Vec<_> =
            sessions.iter().zip(kinds).map(|(session, kind)| (*session, kind, 1)).collect();
        for (fault, faults) in one_fault {
            let name = format!("{kinds:?} on sessions {sessions:?}, {fault}");
            let is_whole = is_whole && sessions == [0, 0, 2] && fault != "all faults";
            let limit = if is_whole || is_soak() { SOAK_LIMIT } else { LIMIT };
            let explored = explore(&name, &scenario(&contenders, faults), limit);
            assert!(explored.broken.is_none(), "{name}: {:?}", explored.broken);
            assert!(explored.states > 1000, "{name}: hardly anything was explored");
        }
    }
}

#[test]
fn no_interleaving_of_three_contenders_of_a_mutex_breaks_a_rule() {
    explore_all([LOCK, LOCK, LOCK], true);
}

#[test]
fn no_interleaving_of_readers_and_writers_breaks_a_rule() {
    explore_all([Read, Write, Read], true);
    explore_all([Write, Read, Read], false);
    explore_all([Write, Write, Read], false);
}

#[test]
fn no_interleaving_with_exchanges_breaks_a_rule() {
    let contenders = [(0, LOCK, 1), (0, LOCK, 1), (2, LOCK, 1)];
    let faults = Faults { hand_deletes: 1, breaks: 1, cancels: 1, ..NO_FAULTS };
    let scenario = Scenario { exchanges: true, ..scenario(&contenders, faults) };
    let limit = if is_soak() { SOAK_LIMIT } else { LIMIT };
    let explored = explore("exchanges, all faults", &scenario, limit);
    assert!(explored.broken.is_none(), "{:?}", explored.broken);
}

/// Checks that an exploration finds a planted mistake, and that its actions break no property without the
/// mistake.
fn assert_caught(
    mistake: Mistake,
    contenders: &[(usize, ContenderKind, u8)],
    faults: Faults,
    warm_rounds: u8,
) {
    let right = Scenario { warm_rounds, ..scenario(contenders, faults) };
    let wrong = Scenario { mistake: Some(mistake), ..right.clone() };
    let caught = explore(&format!("{mistake:?}"), &wrong, 10_000_000);
    let (property, actions) = caught.broken.unwrap_or_else(|| panic!("{mistake:?} was not caught"));
    let _ = writeln!(std::io::stderr(), "  {property}: {actions:?}");
    // The same actions, as far as they are possible without the mistake.
    let mut world = World::new(&right);
    for action in actions {
        let mut possible = Vec::new();
        right.actions(&world, &mut possible);
        if !possible.contains(&action) {
            break;
        }
        world.step(&right, &action);
        let is_right = right.properties().iter().all(|property| (property.condition)(&right, &world));
        assert!(is_right, "{action:?} breaks a rule without {mistake:?}");
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
    assert_caught(Mistake::ReleasedOverAnotherConnection, &own_two, Faults { breaks: 1, ..reap }, 4);
    assert_caught(Mistake::EarlierDirectoryWatch, &again, Faults { breaks: 1, ..reap }, 4);
    assert_caught(Mistake::AnyDirectory, &own_two, reap, 4);
    assert_caught(Mistake::HandOffWithoutCheck, &own_two, hand_delete, 0);
    assert_caught(Mistake::WriterWithoutList, &mixed, NO_FAULTS, 0);
    assert_caught(Mistake::WaiterHandsOff, &own_two, cancel, 0);
    assert_caught(Mistake::NoRelist, &own_two, cancel, 0);
    assert_caught(Mistake::NoSequenceWake, &own_three, NO_FAULTS, 0);
}
