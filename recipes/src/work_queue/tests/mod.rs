//! Every interleaving of two workers at one item: its put, its claim, its end, with lost answers, requests
//! that are applied late, and sessions that end.

mod candidates;
mod shards;
mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, Faults, Mistake, World};

#[derive(Clone, Debug)]
struct Scenario {
    faults: Faults,
    mistake: Option<Mistake>,
}

impl Model for Scenario {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.faults)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self.mistake, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(self.mistake, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the item is put once and done at most once", |_, world: &World| {
                world.is_once()
            }),
            Property::always("a worker that has the item is its only one", |_, world: &World| {
                world.is_held_by_one()
            }),
            Property::always("what is said of a done is true", |_, world: &World| world.is_told_truly()),
            Property::always("the item is done in the end", |scenario: &Self, world: &World| {
                !world.hangs(scenario.mistake)
            }),
        ]
    }
}

const FAULTS: [Faults; 4] = [
    Faults { lost_answers: 0, expiries: 0 },
    Faults { lost_answers: 2, expiries: 0 },
    Faults { lost_answers: 0, expiries: 2 },
    Faults { lost_answers: 2, expiries: 1 },
];

#[test]
fn no_interleaving_of_two_workers_loses_an_item_or_does_it_twice() {
    for faults in FAULTS {
        let name = format!("work queue, {faults:?}");
        assert_right(&name, &Scenario { faults, mistake: None }, Extent::usual(), 20);
    }
}

#[test]
fn planted_mistakes_of_a_work_queue_are_caught() {
    let faults = Faults { lost_answers: 2, expiries: 1 };
    for mistake in Mistake::ALL {
        let (right, wrong) =
            (Scenario { faults, mistake: None }, Scenario { faults, mistake: Some(mistake) });
        assert_caught(&format!("work queue, {mistake:?}"), &right, &wrong);
    }
}
