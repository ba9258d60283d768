//! A model of the processes that are all stopped at once, and continue at any times and in any order.

use std::time::Duration;

use super::boot_time::BootTime;
use super::lease_end::LeaseEnd;
use super::plan::{Due, Plan};
use super::policy::{OnLoss, Policy};

/// The guard does nothing while the command and the supervisor live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Command,
    Supervisor,
    Program,
}

use Part::{Command, Program, Supervisor};

const ORDERS: [[Part; 3]; 6] = [
    [Command, Supervisor, Program],
    [Command, Program, Supervisor],
    [Supervisor, Command, Program],
    [Supervisor, Program, Command],
    [Program, Command, Supervisor],
    [Program, Supervisor, Command],
];

/// What the command finds when it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Servers {
    /// They confirm the session, if it still exists.
    Confirm,
    /// They do not answer.
    Silent,
    /// The lock was lost meanwhile, before its lease was over.
    Lost,
}

#[derive(Debug)]
enum Order {
    Resume,
    Extend(BootTime),
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stopped,
    Runs,
    Dead,
}

const GRACE: Duration = Duration::from_millis(4_000);
const LEASE_END: u64 = 15_000;
/// Before anything is due, after each instant of the plan, and long after all of them.
const INSTANTS: [u64; 6] = [2_000, 11_500, 14_600, 15_000, 15_001, 40_000];
const LAST: u64 = 90_000;

fn at(millis: u64) -> BootTime {
    BootTime::at(Duration::from_millis(millis))
}

struct World {
    policy: Policy,
    plan: Plan,
    /// The lease, as the command knows it.
    lease: LeaseEnd,
    /// When the program must not run any more, by what the servers have said, and not by what is tested.
    runs_until: BootTime,
    orders: Vec<Order>,
    command_runs: bool,
    supervisor_runs: bool,
    program: State,
}

impl World {
    fn new(on_loss: OnLoss) -> Self {
        let policy = Policy { on_loss, grace: GRACE };
        Self {
            plan: Plan::new(policy.clone(), at(LEASE_END)),
            policy,
            lease: LeaseEnd::new(at(LEASE_END)),
            runs_until: at(LEASE_END),
            orders: Vec::new(),
            command_runs: false,
            supervisor_runs: false,
            program: State::Stopped,
        }
    }

    fn thaw(&mut self, part: Part, now: BootTime, servers: Servers) {
        match part {
            Command => {
                self.command_runs = true;
                // The signal that lets it continue may be that of a shell.
                self.orders.push(Order::Resume);
                if servers == Servers::Lost || now >= at(LEASE_END) {
                    self.lease.lose(&self.policy, now);
                    self.orders.push(Order::Lost);
                    let grace = if self.policy.on_loss == OnLoss::Kill { Duration::ZERO } else { GRACE };
                    self.runs_until = self.runs_until.min(now.after(grace));
                } else if servers == Servers::Confirm && self.lease.extend(at(LAST * 2)) {
                    self.orders.push(Order::Extend(self.lease.end()));
                    self.runs_until = at(LAST * 2);
                }
            }
            Supervisor => self.supervisor_runs = true,
            Program if self.program == State::Stopped => self.program = State::Runs,
            Program => {}
        }
    }

    /// What the two processes do at this instant. Returns when they act next.
    fn act(&mut self, now: BootTime) -> Option<BootTime> {
        let mut next = None;
        if self.command_runs {
            if now >= self.lease.end() {
                self.program = State::Dead;
            } else {
                next = Some(self.lease.end());
            }
        }
        if !self.supervisor_runs {
            return next;
        }
        let mut resumes = false;
        for order in self.orders.drain(..) {
            match order {
                Order::Resume => resumes = true,
                Order::Extend(end) => self.plan.extend(end),
                Order::Lost => self.plan.lose(now),
            }
        }
        loop {
            let due = self.plan.due(now);
            if due == Due::Kill {
                self.program = State::Dead;
                return next;
            }
            resumes |= due == Due::Ask;
            if std::mem::take(&mut resumes) && self.program == State::Stopped {
                assert!(!self.plan.is_over(now), "a program is resumed whose time is over");
                self.program = State::Runs;
            }
            if let Due::Wait(until) = due {
                return until.into_iter().chain(next).min();
            }
        }
    }

    /// A program that continues alone is out of reach.
    fn check(&self, now: BootTime) {
        let is_in_reach = self.command_runs || self.supervisor_runs;
        let may_run = now < self.runs_until;
        assert!(self.program != State::Runs || may_run || !is_in_reach, "it runs beside the next holder");
    }
}

fn explore(on_loss: &OnLoss, servers: Servers, thaws: &[(u64, Part)]) {
    let mut world = World::new(on_loss.clone());
    let mut now = at(0);
    for (instant, part) in thaws.iter().copied().chain([(LAST, Program)]) {
        // What is due before.
        while let Some(next) = world.act(now).filter(|next| *next < at(instant)) {
            now = next;
            world.act(now);
            world.check(now);
        }
        now = at(instant);
        world.thaw(part, now, servers);
        world.act(now);
        world.check(now);
    }
    let is_confirmed = world.runs_until > at(LAST);
    assert!(is_confirmed || world.program == State::Dead, "{:?}", world.program);
}

#[test]
fn no_order_of_continuing_lets_the_program_run_beside_the_next_holder() {
    for on_loss in [OnLoss::Term, OnLoss::Kill, OnLoss::Run("x".to_owned())] {
        for servers in [Servers::Confirm, Servers::Silent, Servers::Lost] {
            for order in ORDERS {
                for first in INSTANTS {
                    for second in INSTANTS.into_iter().filter(|instant| *instant >= first) {
                        for third in INSTANTS.into_iter().filter(|instant| *instant >= second) {
                            let thaws: Vec<_> = [first, second, third].into_iter().zip(order).collect();
                            println!("{on_loss:?} {servers:?} {thaws:?}");
                            explore(&on_loss, servers, &thaws);
                        }
                    }
                }
            }
        }
    }
}
