//! Every interleaving of a few tasks that share the nodes of permits, with a contender of another process,
//! and faults at any step.

mod judge;
mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, Faults, Mistake, NO_FAULTS, World};

/// What is explored.
#[derive(Clone, Debug)]
struct Scenario {
    permits: usize,
    /// How often each task acquires a permit.
    rounds: [u8; 3],
    faults: Faults,
    /// Whether a contender of another process queues, at any step.
    has_foreign: bool,
    mistake: Option<Mistake>,
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.progress(self, actions);
        world.chance(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(self, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never more holders than permits", |scenario: &Self, world: &World| {
                world.holders() <= scenario.permits
            }),
            Property::always("no hand-off breaks a rule", |_, world: &World| world.violation.is_none()),
            Property::always("each node has one owner", |_, world: &World| world.owns_its_nodes()),
            Property::always(
                "every task and contender is served in the end",
                |scenario: &Self, world: &World| !world.hangs(scenario),
            ),
        ]
    }
}

const PLAIN: Scenario =
    Scenario { permits: 2, rounds: [1, 1, 1], faults: NO_FAULTS, has_foreign: false, mistake: None };

#[test]
fn no_interleaving_of_three_tasks_that_share_permits_breaks_a_rule() {
    for (name, faults) in [
        ("no fault", NO_FAULTS),
        ("a cancel", Faults { cancels: 1, ..NO_FAULTS }),
        ("a loss", Faults { losses: 1, ..NO_FAULTS }),
        ("a watch that ends", Faults { blinds: 1, ..NO_FAULTS }),
        ("a contender that fails", Faults { failures: 1, ..NO_FAULTS }),
        ("all faults", Faults { cancels: 1, losses: 1, blinds: 1, failures: 1 }),
    ] {
        for (permits, has_foreign) in [(1, false), (1, true), (2, false), (2, true)] {
            let scenario = Scenario { permits, faults, has_foreign, ..PLAIN };
            let foreign = if has_foreign { "a foreign contender" } else { "alone" };
            let name = format!("sharing, {permits} permits, {name}, {foreign}");
            assert_right(&name, &scenario, Extent::usual(), 500);
        }
    }
}

#[test]
fn no_interleaving_of_tasks_that_take_permits_again_breaks_a_rule() {
    for permits in [1, 2] {
        let scenario = Scenario { permits, rounds: [2, 2, 1], has_foreign: true, ..PLAIN };
        let name = format!("sharing, {permits} permits, tasks that take them twice, a foreign contender");
        assert_right(&name, &scenario, Extent::usual(), 500);
    }
}

#[test]
fn planted_mistakes_of_shared_permits_are_caught() {
    let contended = Scenario { permits: 1, rounds: [2, 1, 0], has_foreign: true, ..PLAIN };
    let cancel = Scenario { permits: 1, faults: Faults { cancels: 1, ..NO_FAULTS }, ..PLAIN };
    let failure = Scenario { faults: Faults { failures: 1, ..NO_FAULTS }, ..PLAIN };
    for (mistake, right) in [
        (Mistake::LostSlot, cancel),
        (Mistake::FailsSilently, failure),
        (Mistake::DeleteForgotten, contended.clone()),
        (Mistake::LimitIgnored, PLAIN),
    ] {
        let name = format!("sharing permits, {mistake:?}");
        assert_right(&format!("without {name}"), &right, Extent::usual(), 500);
        assert_caught(&name, &right, &Scenario { mistake: Some(mistake), ..right.clone() });
    }
}
