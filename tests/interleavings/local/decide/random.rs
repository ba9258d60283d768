//! Long random runs of more contenders, more rounds and more faults than can be explored exhaustively.

use lockkeeper_exploration::is_soak;
use proptest::prelude::*;

use super::LOCK;
use super::scenario::{Faults, Scenario};
use super::world::World;
use crate::local::decide::ContenderKind::{self, Read, Write};

fn broken_rule(scenario: &Scenario, world: &World) -> Option<&'static str> {
    let rules = [
        (world.is_exclusive(), "two exclusive holders"),
        (world.is_live(scenario), "a lost wake-up, or an orphan"),
        (world.is_consistent(), "the queue disagrees with itself"),
    ];
    world.violation.or_else(|| rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule))
}

/// Takes these steps, and then lets all contenders finish.
fn run(scenario: &Scenario, choices: &[u16]) -> Result<(), String> {
    let mut world = World::new(scenario);
    let mut trace = Vec::new();
    // No more faults from here on, and every waiter is granted or lists, so the run must end.
    let healing = choices.iter().copied().cycle().take(20_000);
    for (step, choice) in choices.iter().copied().chain(healing).enumerate() {
        let mut actions = Vec::new();
        world.progress(scenario, &mut actions);
        if actions.is_empty() {
            return Ok(());
        }
        // Faults are rare, so that the queue is long when they happen.
        if step < choices.len() && choice % 16 == 0 {
            world.chance(scenario, &mut actions);
        }
        let action = actions[usize::from(choice / 16) % actions.len()].clone();
        world.step(scenario, &action);
        trace.push(action);
        if let Some(rule) = broken_rule(scenario, &world) {
            return Err(format!("{rule}, after {trace:?}"));
        }
    }
    Err("no end".to_owned())
}

fn config() -> ProptestConfig {
    // A failing case is printed completely. It becomes a scenario of its own, not a file.
    let cases = if is_soak() { 1_000_000 } else { 4_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn kinds() -> impl Strategy<Value = Vec<ContenderKind>> {
    let rw = prop::collection::vec(prop_oneof![Just(Read), Just(Write)], 6);
    prop_oneof![Just(vec![LOCK; 6]), rw]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_grant_is_right_and_every_waiter_is_served(
        kinds in kinds(),
        sessions in prop::collection::vec(prop_oneof![3 => Just(0usize), 1 => Just(1), 1 => Just(2)], 6),
        warm_rounds in prop_oneof![Just(0u8), Just(4)],
        exchanges in any::<bool>(),
        reaps in any::<bool>(),
        choices in prop::collection::vec(any::<u16>(), 1..300),
    ) {
        let contenders = sessions.iter().zip(&kinds).map(|(session, kind)| (*session, *kind, 3)).collect();
        let faults = if reaps {
            Faults { hand_deletes: 0, breaks: 2, swaps: 1, cancels: 2, reaps: 2 }
        } else {
            Faults { hand_deletes: 2, breaks: 0, swaps: 1, cancels: 2, reaps: 0 }
        };
        let queues = vec![true, true, false];
        let scenario =
            Scenario { contenders, queues, faults, exchanges, warm_rounds, mistake: None };
        prop_assert_eq!(run(&scenario, &choices), Ok(()));
    }
}
