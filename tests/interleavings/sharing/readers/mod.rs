//! Every interleaving of a few readers that share a node, with a writer, and faults at any step.

mod judge;
mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, Faults, Mistake, NO_FAULTS, World};

/// What is explored.
#[derive(Clone, Debug)]
struct Scenario {
    /// How often each task reads.
    rounds: [u8; 3],
    faults: Faults,
    writer: Writer,
    mistake: Option<Mistake>,
}

/// The writer that queues, at any step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    None,
    OfThisProcess,
    OfAnother,
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
        next.step(self, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never a writer beside a reader", |_, world: &World| world.excludes()),
            Property::always("no reader joins against a rule", |_, world: &World| world.violation.is_none()),
            Property::always("each node has an owner", |scenario: &Self, world: &World| {
                world.owns_its_nodes(scenario)
            }),
            Property::always("every reader and the writer are granted in the end", |_, world: &World| {
                !world.hangs()
            }),
        ]
    }
}

const PLAIN: Scenario =
    Scenario { rounds: [1, 1, 1], faults: NO_FAULTS, writer: Writer::None, mistake: None };

#[test]
fn no_interleaving_of_three_readers_that_share_a_node_breaks_a_rule() {
    for (name, faults) in [
        ("no fault", NO_FAULTS),
        ("a cancel", Faults { cancels: 1, ..NO_FAULTS }),
        ("a loss", Faults { losses: 1, ..NO_FAULTS }),
        ("a runtime that ends", Faults { blinds: 1, ..NO_FAULTS }),
        ("all faults", Faults { cancels: 1, losses: 1, blinds: 1 }),
    ] {
        for writer in [Writer::None, Writer::OfThisProcess, Writer::OfAnother] {
            let scenario = Scenario { faults, writer, rounds: [2, 1, 1], ..PLAIN };
            assert_right(&format!("sharing readers, {name}, {writer:?}"), &scenario, Extent::usual(), 300);
        }
    }
}

#[test]
fn planted_mistakes_of_shared_reads_are_caught() {
    let written = Scenario { writer: Writer::OfAnother, rounds: [2, 1, 1], ..PLAIN };
    for (mistake, right) in [
        (Mistake::FirstGuardEnds, written.clone()),
        (Mistake::NeverWoken, PLAIN),
        (Mistake::JoinsAlways, written.clone()),
        (Mistake::DeleteForgotten, written),
    ] {
        let name = format!("sharing readers, {mistake:?}");
        assert_right(&format!("without {name}"), &right, Extent::usual(), 300);
        assert_caught(&name, &right, &Scenario { mistake: Some(mistake), ..right.clone() });
    }
}
