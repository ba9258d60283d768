//! Every interleaving of two takers of permits with a create of Curator's that is sent out of turn.

mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, Faults, Mistake, World};

/// What is explored.
#[derive(Clone, Debug)]
struct Scenario {
    limit: u32,
    /// The number of permits that each taker asks for.
    asked: [u32; 2],
    /// How often each taker takes its permits.
    rounds: [u8; 2],
    /// Whether both takers are of one process, which hands its count of the permits to the next head.
    is_one_process: bool,
    faults: Faults,
    mistake: Option<Mistake>,
}

const PLAIN: Scenario = Scenario {
    limit: 1,
    asked: [1, 1],
    rounds: [2, 2],
    is_one_process: false,
    faults: NO_FAULTS,
    mistake: None,
};

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
            Property::always("no more permits are held than the limit", |scenario: &Self, world: &World| {
                world.held(scenario) <= scenario.limit
            }),
            Property::always("each taker is served in the end", |_, world: &World| !world.hangs()),
        ]
    }
}

const NO_FAULTS: Faults = Faults { creates: 0, lost_answers: 0, expiries: 0, reaps: 0 };
const CREATE: Faults = Faults { creates: 1, ..NO_FAULTS };

#[test]
fn no_interleaving_of_two_takers_grants_more_permits_than_the_limit() {
    for (name, faults) in [
        ("no fault", NO_FAULTS),
        ("a create out of turn", CREATE),
        ("two creates out of turn", Faults { creates: 2, ..NO_FAULTS }),
        ("a lost answer", Faults { lost_answers: 1, ..CREATE }),
        ("two lost answers", Faults { lost_answers: 2, ..CREATE }),
        ("the end of a session", Faults { expiries: 1, ..CREATE }),
        ("a removed directory", Faults { reaps: 1, ..CREATE }),
        ("all faults", Faults { creates: 2, lost_answers: 1, expiries: 1, reaps: 1 }),
    ] {
        for (limit, asked) in [(1, [1, 1]), (2, [1, 1]), (2, [1, 2])] {
            // Two clients of Curator's that wait with a lease each for one permit wait for each other.
            if faults.creates > limit {
                continue;
            }
            for is_one_process in [false, true] {
                let scenario = Scenario { limit, asked, is_one_process, faults, ..PLAIN };
                let processes = if is_one_process { "one process" } else { "two processes" };
                let name = format!("permits, {asked:?} of {limit}, {processes}, {name}");
                assert_right(&name, &scenario, Extent::usual(), 100);
            }
        }
    }
}

#[test]
fn planted_mistakes_of_permits_are_caught() {
    let right = Scenario { faults: CREATE, ..PLAIN };
    let lost_answer = Faults { lost_answers: 1, ..NO_FAULTS };
    let one_process = Scenario { is_one_process: true, limit: 2, asked: [1, 2], ..right.clone() };
    for (mistake, right) in [
        (Mistake::KeepsAlways, right.clone()),
        (Mistake::NumberUnseen, right.clone()),
        (Mistake::LostIsCommitted, Scenario { faults: lost_answer, ..right.clone() }),
        (Mistake::TakenBefore, Scenario { faults: NO_FAULTS, ..one_process }),
    ] {
        let name = format!("permits, {mistake:?}");
        assert_right(&format!("without {name}"), &right, Extent::usual(), 100);
        assert_caught(&name, &right, &Scenario { mistake: Some(mistake), ..right.clone() });
    }
}
