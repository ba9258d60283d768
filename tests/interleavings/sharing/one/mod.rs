//! Every interleaving of a few tasks that share a node, with a contender of another process, and faults at
//! any step.

mod judge;
mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, Faults, Mistake, World};

/// What is explored.
#[derive(Clone, Debug)]
struct Scenario {
    /// How often each task acquires the lock.
    rounds: [u8; 3],
    faults: Faults,
    /// Whether a contender of another process queues, at any step.
    has_foreign: bool,
    max_handoffs: u32,
    mistake: Option<Mistake>,
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.progress(actions);
        world.chance(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(self, &action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one task has the slot", |_, world: &World| world.has_one_slot()),
            Property::always("no hand-off breaks a rule", |_, world: &World| world.violation.is_none()),
            Property::always("each node has one owner", |_, world: &World| world.owns_its_nodes()),
            Property::always("every task is served in the end", |_, world: &World| !world.hangs()),
        ]
    }
}

const NO_FAULTS: Faults = Faults { cancels: 0, losses: 0, blinds: 0, early_drops: 0 };

const PLAIN: Scenario =
    Scenario { rounds: [1, 1, 1], faults: NO_FAULTS, has_foreign: false, max_handoffs: 1, mistake: None };

#[test]
fn no_interleaving_of_three_tasks_that_share_a_node_breaks_a_rule() {
    for (name, faults) in [
        ("no fault", NO_FAULTS),
        ("a cancel", Faults { cancels: 1, ..NO_FAULTS }),
        ("a loss", Faults { losses: 1, ..NO_FAULTS }),
        ("a runtime that ends", Faults { blinds: 1, ..NO_FAULTS }),
        ("clones dropped early", Faults { early_drops: 3, ..NO_FAULTS }),
        ("all faults", Faults { cancels: 1, losses: 1, blinds: 1, early_drops: 3 }),
    ] {
        for has_foreign in [false, true] {
            let scenario = Scenario { faults, has_foreign, ..PLAIN };
            let foreign = if has_foreign { "a foreign contender" } else { "alone" };
            assert_right(&format!("sharing, {name}, {foreign}"), &scenario, Extent::usual(), 1000);
        }
    }
}

#[test]
fn no_interleaving_of_a_task_that_acquires_again_breaks_a_rule() {
    let faults = Faults { losses: 1, ..NO_FAULTS };
    let scenario = Scenario { rounds: [2, 2, 0], faults, has_foreign: true, max_handoffs: 2, ..PLAIN };
    let name = "sharing, two tasks twice, a loss, a foreign contender";
    assert_right(name, &scenario, Extent::usual(), 1000);
}

#[test]
fn planted_mistakes_of_sharing_are_caught() {
    let alone = PLAIN;
    let contended = Scenario { has_foreign: true, ..PLAIN };
    let with = |faults| Scenario { faults, ..PLAIN };
    let loss = with(Faults { losses: 1, ..NO_FAULTS });
    let cancel = with(Faults { cancels: 1, ..NO_FAULTS });
    let blind = with(Faults { blinds: 1, ..NO_FAULTS });
    let dropped = with(Faults { early_drops: 3, ..NO_FAULTS });
    for (mistake, right) in [
        (Mistake::AnySlotEnds, loss.clone()),
        (Mistake::NoLossCheck, loss),
        (Mistake::LostSlot, cancel.clone()),
        (Mistake::LastFirst, alone),
        (Mistake::BudgetAnew, contended.clone()),
        (Mistake::DeleteForgotten, contended),
        (Mistake::WatcherEndsSilently, blind),
        (Mistake::IdleWithoutClones, dropped),
    ] {
        let name = format!("sharing, {mistake:?}");
        assert_right(&format!("without {name}"), &right, Extent::usual(), 1000);
        assert_caught(&name, &right, &Scenario { mistake: Some(mistake), ..right.clone() });
    }
}
