//! Two takers, clients of Curator's that create a lease out of turn, and the nodes that a server keeps.

use lockkeeper_core::{NodeName, ReadResult, Stat, Zxid, count_of};

use super::super::continuity::{Continuity, keeps};
use super::super::decide::{GrantCondition, PermitCount, PermitDecision, PermitState, decide};
use super::super::encoding::encode;
use super::super::limit::PermitLimit;
use super::Scenario;

/// A rule to break, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A taker keeps its leases, whatever the list behind them shows.
    KeepsAlways,
    /// The number of the first new lease is not compared.
    NumberUnseen,
    /// The next head gets the count from before this head took its permits.
    TakenBefore,
    /// A transaction without an answer counts as committed.
    LostIsCommitted,
}

/// How often each fault strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    /// Creates of Curator's out of turn.
    pub(super) creates: u32,
    /// Transactions whose answer is lost, and that are applied at once, later, or never.
    pub(super) lost_answers: u32,
    /// Sessions that end.
    pub(super) expiries: u32,
    /// Removals of the leases' directory while it is empty.
    pub(super) reaps: u32,
}

/// Where a taker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Outside,
    Queued,
    /// At the head of the queue, to read the leases.
    Head,
    /// Sends its transaction, which rests on this state.
    Exchanging(PermitState),
    /// The answer to its transaction is lost. It searches for its leases.
    Unanswered(PermitState),
    /// Waits for a change of this directory.
    Waiting(Option<Directory>),
    Made(PermitState),
    Holds,
    Done,
}

/// Where a client of Curator's is whose lease was made out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CuratorAt {
    Made,
    Waiting(Option<Directory>),
    Holds,
    Done,
}

/// The leases' directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Directory {
    version: i32,
    is_recorded: bool,
    made: i32,
    deleted: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Step(usize),
    StepCurator(usize),
    /// The answer of this taker's transaction is lost.
    LoseAnswer(usize),
    ApplyLate(usize),
    Create,
    Expire(usize),
    Reap,
}

/// A transaction on its way.
type Late = (usize, u8, PermitState);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) at: [At; 2],
    curators: Vec<CuratorAt>,
    /// The takers' nodes, each with how often its taker has queued.
    queue: Vec<(usize, u8)>,
    queued: [u8; 2],
    /// How often each taker takes its permits yet.
    rounds: [u8; 2],
    directory: Option<Directory>,
    /// The number and the owner of each lease. The owners above 1 are clients of Curator's.
    leases: Vec<(i32, usize)>,
    payload: Option<PermitCount>,
    late: Vec<Late>,
    used: Faults,
}

fn name((number, owner): (i32, usize)) -> String {
    format!("_c_6f9619ff-8b86-4d11-b42d-00cf4fc9640{owner}-lease-{number:010}")
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            at: [At::Outside; 2],
            curators: Vec::new(),
            queue: Vec::new(),
            queued: [0; 2],
            rounds: scenario.rounds,
            directory: None,
            leases: Vec::new(),
            payload: None,
            late: Vec::new(),
            used: Faults::default(),
        }
    }

    pub(super) fn progress(&self, actions: &mut Vec<Action>) {
        for (taker, at) in self.at.iter().enumerate() {
            let is_enabled = match at {
                At::Queued => self.queue.first().is_some_and(|(of, _)| *of == taker),
                At::Waiting(seen) => *seen != self.directory || !self.is_queued(taker),
                At::Done => false,
                _ => true,
            };
            if is_enabled {
                actions.push(Action::Step(taker));
            }
        }
        for (curator, at) in self.curators.iter().enumerate() {
            let is_enabled = match at {
                CuratorAt::Waiting(seen) => *seen != self.directory,
                CuratorAt::Done => false,
                _ => true,
            };
            if is_enabled {
                actions.push(Action::StepCurator(curator));
            }
        }
    }

    pub(super) fn chance(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (used, faults) = (self.used, scenario.faults);
        if used.creates < faults.creates {
            actions.push(Action::Create);
        }
        actions.extend((0..self.late.len()).map(Action::ApplyLate));
        for (taker, at) in self.at.iter().enumerate() {
            if matches!(at, At::Exchanging(_)) && used.lost_answers < faults.lost_answers {
                actions.push(Action::LoseAnswer(taker));
            }
            if !matches!(at, At::Outside | At::Done) && used.expiries < faults.expiries {
                actions.push(Action::Expire(taker));
            }
        }
        if self.directory.is_some() && self.leases.is_empty() && used.reaps < faults.reaps {
            actions.push(Action::Reap);
        }
    }

    pub(super) fn step(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Step(taker) => self.at[taker] = self.step_taker(scenario, taker),
            Action::StepCurator(curator) => self.step_curator(scenario, curator),
            Action::LoseAnswer(taker) => {
                self.used.lost_answers += 1;
                if let At::Exchanging(state) = self.at[taker] {
                    self.late.push((taker, self.queued[taker], state));
                    self.at[taker] = At::Unanswered(state);
                }
            }
            Action::ApplyLate(index) => {
                let late = self.late.remove(index);
                self.apply(scenario, late);
            }
            Action::Create => {
                self.used.creates += 1;
                self.curators.push(CuratorAt::Made);
                self.make(1 + self.curators.len());
            }
            Action::Expire(taker) => {
                self.used.expiries += 1;
                self.payload = None;
                self.late.retain(|(of, ..)| *of != taker);
                self.at[taker] = match self.at[taker] {
                    At::Holds => {
                        self.delete_leases(taker);
                        At::Outside
                    }
                    _ => self.queue_again(taker),
                };
            }
            Action::Reap => {
                self.used.reaps += 1;
                self.directory = None;
            }
        }
    }

    fn step_taker(&mut self, scenario: &Scenario, taker: usize) -> At {
        let asked = scenario.asked[taker];
        match self.at[taker] {
            At::Outside if self.rounds[taker] == 0 => At::Done,
            At::Outside => {
                self.rounds[taker] -= 1;
                self.queue_again(taker)
            }
            At::Queued => match self.payload.take() {
                Some(count) if decide(count.taken, count.limit, asked) == PermitDecision::Take => {
                    At::Exchanging(count.state())
                }
                _ => At::Head,
            },
            At::Waiting(_) if !self.is_queued(taker) => self.queue_again(taker),
            At::Head | At::Waiting(_) => {
                let state = self.read(scenario);
                match decide(state.taken, state.limit, asked) {
                    PermitDecision::Take => At::Exchanging(state),
                    PermitDecision::Wait { .. } => At::Waiting(self.directory),
                    PermitDecision::Never => At::Done,
                }
            }
            At::Exchanging(state) => {
                let is_committed = self.apply(scenario, (taker, self.queued[taker], state));
                match is_committed {
                    true => {
                        self.hand_off(scenario, &state, asked);
                        At::Made(state)
                    }
                    // An earlier try was committed, or what the transaction rests on has changed.
                    false => self.search(taker, state),
                }
            }
            At::Unanswered(_) if scenario.mistake == Some(Mistake::LostIsCommitted) => At::Holds,
            At::Unanswered(state) => self.search(taker, state),
            At::Made(state) => {
                if self.keeps(scenario, taker, &state) {
                    At::Holds
                } else {
                    self.queue_again(taker)
                }
            }
            At::Holds => {
                self.delete_leases(taker);
                At::Outside
            }
            At::Done => At::Done,
        }
    }

    /// What a taker finds without an answer: its leases, or its node in the queue.
    fn search(&self, taker: usize, state: PermitState) -> At {
        if self.is_queued(taker) { At::Head } else { At::Made(state) }
    }

    fn step_curator(&mut self, scenario: &Scenario, curator: usize) {
        self.curators[curator] = match self.curators[curator] {
            CuratorAt::Made | CuratorAt::Waiting(_) => {
                let is_within = count_of(self.leases.len()) <= scenario.limit;
                if is_within { CuratorAt::Holds } else { CuratorAt::Waiting(self.directory) }
            }
            CuratorAt::Holds | CuratorAt::Done => {
                self.delete_leases(curator + 2);
                CuratorAt::Done
            }
        };
    }

    /// As `PermitAcquire::keep`.
    fn keeps(&self, scenario: &Scenario, taker: usize, state: &PermitState) -> bool {
        let own = self.leases.iter().filter(|(_, owner)| *owner == taker);
        let own: Vec<NodeName> = own.filter_map(|lease| NodeName::parse(&name(*lease))).collect();
        let is_next = state.continuity.is_proven_by(&own) || scenario.mistake == Some(Mistake::NumberUnseen);
        if is_next || scenario.mistake == Some(Mistake::KeepsAlways) {
            return true;
        }
        let listed: Vec<String> = self.leases.iter().copied().map(name).collect();
        keeps(&own, &listed, state.limit)
    }

    fn read(&self, scenario: &Scenario) -> PermitState {
        let limit = PermitLimit::fixed(scenario.limit).unwrap();
        let results = match self.directory {
            None => [ReadResult::Missing, ReadResult::Missing],
            Some(directory) => {
                let data = if directory.is_recorded { encode(scenario.limit) } else { Vec::new() };
                let stat = Stat {
                    czxid: Zxid::new(5),
                    mzxid: Zxid::new(5),
                    pzxid: Zxid::new(5),
                    ctime: 0,
                    mtime: 0,
                    version: directory.version,
                    child_version: directory.made + directory.deleted,
                    ephemeral_owner: 0,
                    data_length: i32::try_from(data.len()).unwrap(),
                    children: directory.made - directory.deleted,
                };
                let names = self.leases.iter().copied().map(name).collect();
                [ReadResult::Children { names, stat }, ReadResult::Data { data, stat }]
            }
        };
        PermitState::of(&limit, &results).unwrap()
    }

    /// The server applies a transaction, if all that it rests on is as it was.
    fn apply(&mut self, scenario: &Scenario, (taker, queued, state): Late) -> bool {
        let Some(position) = self.queue.iter().position(|node| *node == (taker, queued)) else {
            return false;
        };
        let version = self.directory.map(|directory| directory.version);
        let is_current = match (state.continuity, state.condition) {
            (Continuity::Next { version: expected, .. }, _) => version == Some(expected),
            (Continuity::Unmarked, _) => version == Some(0),
            (Continuity::Unknown, GrantCondition::Record { version: expected }) => {
                version.unwrap_or(0) == expected
            }
            (Continuity::Unknown, _) => true,
        };
        if !is_current {
            return false;
        }
        for _ in 0..scenario.asked[taker] {
            self.make(taker);
        }
        if let (Some(directory), GrantCondition::Record { version }) = (&mut self.directory, state.condition)
        {
            (directory.version, directory.is_recorded) = (version + 1, true);
        }
        self.queue.remove(position);
        true
    }

    fn make(&mut self, owner: usize) {
        let new = Directory { version: 0, is_recorded: false, made: 0, deleted: 0 };
        let directory = self.directory.get_or_insert(new);
        self.leases.push((directory.made, owner));
        directory.made += 1;
    }

    fn hand_off(&mut self, scenario: &Scenario, state: &PermitState, asked: u32) {
        if !scenario.is_one_process || self.queue.is_empty() {
            return;
        }
        self.payload = state.count_after(asked);
        if let (Some(count), Some(Mistake::TakenBefore)) = (&mut self.payload, scenario.mistake) {
            count.taken -= asked;
        }
    }

    fn queue_again(&mut self, taker: usize) -> At {
        self.delete_leases(taker);
        self.queue.retain(|(of, _)| *of != taker);
        self.queued[taker] += 1;
        self.queue.push((taker, self.queued[taker]));
        At::Queued
    }

    fn delete_leases(&mut self, owner: usize) {
        let before = self.leases.len();
        self.leases.retain(|(_, of)| *of != owner);
        if let Some(directory) = &mut self.directory {
            directory.deleted += i32::try_from(before - self.leases.len()).unwrap();
        }
    }

    fn is_queued(&self, taker: usize) -> bool {
        self.queue.contains(&(taker, self.queued[taker]))
    }

    /// The number of permits that clients hold.
    pub(super) fn held(&self, scenario: &Scenario) -> u32 {
        let takers = self.at.iter().zip(scenario.asked).filter(|(at, _)| **at == At::Holds);
        let curators = self.curators.iter().filter(|at| **at == CuratorAt::Holds).count();
        takers.map(|(_, asked)| asked).sum::<u32>() + count_of(curators)
    }

    /// Nothing happens any more, and a taker waits or a lease exists.
    pub(super) fn hangs(&self) -> bool {
        let mut actions = Vec::new();
        self.progress(&mut actions);
        actions.is_empty() && (self.at != [At::Done; 2] || !self.leases.is_empty())
    }
}
