//! Every interleaving of a few members, with crashes, cancelled calls and late requests at any step.

mod world;

use lockkeeper_exploration::{Extent, Model, Property, assert_caught, assert_right};

use self::world::{Action, At, Mistake, World};

/// What is explored.
#[derive(Clone, Debug)]
struct Scenario {
    members: usize,
    count: u32,
    rounds: usize,
    /// Members that crash, calls that are cancelled, requests that are applied late.
    faults: usize,
    /// The node of a round whose members have all crashed.
    has_stale_ready: bool,
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
        if world.faults == self.faults {
            return;
        }
        for (member, at) in world.at.iter().enumerate() {
            match at {
                At::Done | At::Crashed | At::Outside { .. } => continue,
                At::Opening { .. } => actions.push(Action::Delay(member)),
                At::Waiting { .. } => actions.push(Action::Cancel(member)),
                _ => {}
            }
            actions.push(Action::Crash(member));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Step(member) => next.step(self, member),
            Action::Crash(member) => {
                next.faults += 1;
                next.at[member] = At::Crashed;
            }
            Action::Expire(member) => next.delete(member),
            Action::Cancel(member) => {
                next.faults += 1;
                next.delete(member);
                next.at[member] = At::Done;
            }
            Action::Delay(member) => {
                if let At::Opening { rounds, czxid, open } = next.at[member].clone() {
                    next.faults += 1;
                    next.late.push(open);
                    next.at[member] = At::Entering { rounds, czxid };
                }
            }
            Action::ApplyLate(index) => {
                let open = next.late.remove(index);
                next.open(self, &open);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a round keeps its rules", |_, world: &World| world.violation.is_none()),
            Property::always("nobody hangs", |scenario: &Self, world: &World| !world.hangs(scenario)),
        ]
    }
}

fn name_of(scenario: &Scenario) -> String {
    let Scenario { members, count, rounds, faults, has_stale_ready, mistake } = scenario;
    let stale = if *has_stale_ready { ", a stale node" } else { "" };
    let mistake = mistake.map(|mistake| format!(", {mistake:?}")).unwrap_or_default();
    format!("{members} members, {count} to a round, {rounds} rounds, {faults} faults{stale}{mistake}")
}

const NO_FAULTS: Scenario =
    Scenario { members: 2, count: 2, rounds: 2, faults: 0, has_stale_ready: false, mistake: None };

#[test]
fn no_member_enters_without_enough_members_and_none_hangs_after_a_crash_at_any_step() {
    for (members, count, rounds, faults) in [(2, 2, 2, 1), (3, 2, 1, 1), (3, 3, 1, 1), (1, 1, 3, 1)] {
        for has_stale_ready in [false, true] {
            let scenario = Scenario { members, count, rounds, faults, has_stale_ready, mistake: None };
            assert_right(&name_of(&scenario), &scenario, Extent::Whole, 100);
        }
    }
}

#[test]
fn a_broken_rule_of_a_barrier_is_found() {
    let stale = Scenario { has_stale_ready: true, ..NO_FAULTS };
    for (right, mistake) in [
        (stale, Mistake::AnyReadyLetsIn),
        (Scenario { faults: 1, ..NO_FAULTS }, Mistake::OpensUnchecked),
        (Scenario { members: 3, ..NO_FAULTS }, Mistake::ClosesApart),
    ] {
        let wrong = Scenario { mistake: Some(mistake), ..right.clone() };
        assert_caught(&name_of(&wrong), &right, &wrong);
    }
}
