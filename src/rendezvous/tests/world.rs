//! The members and their nodes, as a server keeps them.

use std::collections::BTreeMap;

use lockkeeper_lock::count_of;

use super::Scenario;
use crate::rendezvous::decide::{Enter, Leave, Ready, enter, is_in_round, leave};
use crate::znode::zxid::Zxid;

/// A rule to break, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// A member that finds the node enters, as with Curator.
    AnyReadyLetsIn,
    /// The members are not checked when the barrier is opened.
    OpensUnchecked,
    /// A member that finds itself alone deletes the node apart from its own.
    ClosesApart,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) zxid: i64,
    /// The creation zxid of each node that exists.
    pub(super) nodes: BTreeMap<usize, i64>,
    pub(super) ready: Option<Ready>,
    /// The zxid of the last change of the list.
    pub(super) listed: i64,
    pub(super) at: Vec<At>,
    pub(super) late: Vec<Open>,
    pub(super) faults: usize,
    /// The nodes that existed when the barrier was opened, and exist.
    pub(super) admitted: Vec<usize>,
    pub(super) violation: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Open {
    /// Each with its creation zxid: the name of a node is not used twice.
    pub(super) members: Vec<(usize, i64)>,
    pub(super) replaces: Option<i32>,
}

/// Where a member is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    Outside {
        rounds: usize,
    },
    /// Its node exists, or did.
    Entering {
        rounds: usize,
        czxid: i64,
    },
    /// It has listed the directory at this zxid.
    Listed {
        rounds: usize,
        czxid: i64,
        members: BTreeMap<usize, i64>,
        at: i64,
    },
    Opening {
        rounds: usize,
        czxid: i64,
        open: Open,
    },
    /// Waits for a change of the list since `listed`, or of the node.
    Waiting {
        rounds: usize,
        czxid: i64,
        listed: i64,
        ready: Option<Ready>,
    },
    Inside {
        rounds: usize,
        ready: Ready,
    },
    /// It has read the list, and decided.
    Leaving {
        rounds: usize,
        ready: Ready,
        other: Option<(usize, i64)>,
        closes: Option<i32>,
    },
    /// Its node is deleted. It deletes the node of the round by a request of its own.
    Closing {
        rounds: usize,
        ready: Ready,
        version: i32,
    },
    Left {
        rounds: usize,
        ready: Ready,
    },
    /// Waits for the deletion of this member's node, which was created at this zxid.
    WaitingForOther {
        rounds: usize,
        ready: Ready,
        other: usize,
        czxid: i64,
    },
    /// Crashed; its node may exist.
    Crashed,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Step(usize),
    Crash(usize),
    Expire(usize),
    Cancel(usize),
    /// The request to open is applied later, and its member looks again.
    Delay(usize),
    ApplyLate(usize),
}

fn name(member: usize) -> String {
    member.to_string()
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ready = scenario.has_stale_ready.then_some(Ready { zxid: Zxid::new(1), version: 0 });
        let at = vec![At::Outside { rounds: scenario.rounds }; scenario.members];
        let (nodes, late, admitted) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { zxid: 1, nodes, ready, listed: 1, at, late, faults: 0, admitted, violation: None }
    }

    pub(super) fn delete(&mut self, member: usize) {
        self.zxid += 1;
        self.nodes.remove(&member);
        self.admitted.retain(|of| *of != member);
        self.listed = self.zxid;
    }

    pub(super) fn open(&mut self, scenario: &Scenario, open: &Open) {
        let is_checked = scenario.mistake != Some(Mistake::OpensUnchecked);
        if is_checked && open.members.iter().any(|(member, czxid)| self.nodes.get(member) != Some(czxid)) {
            return;
        }
        let version = match (open.replaces, self.ready) {
            (None, None) => 0,
            (Some(version), Some(ready)) if ready.version == version => version + 1,
            _ => return,
        };
        if !self.admitted.is_empty() {
            self.violation = Some("a round begins within another");
        }
        if count_of(self.nodes.len()) < scenario.count {
            self.violation = Some("opened without enough members");
        }
        self.zxid += 1;
        if open.replaces.is_none() {
            self.listed = self.zxid;
        }
        self.ready = Some(Ready { zxid: Zxid::new(self.zxid), version });
        self.admitted = self.nodes.keys().copied().collect();
    }

    /// Another member of the round, the last one.
    pub(super) fn other(&self, own: usize, ready: Ready) -> Option<usize> {
        let others = self.nodes.iter().rev().filter(|(member, _)| **member != own);
        others.filter(|(_, czxid)| is_in_round(Zxid::new(**czxid), ready)).map(|(member, _)| *member).next()
    }

    /// Whether the member can continue by itself.
    pub(super) fn is_enabled(&self, member: usize) -> bool {
        match &self.at[member] {
            At::Done | At::Crashed => false,
            At::Waiting { listed, ready, czxid, .. } => {
                *listed != self.listed || *ready != self.ready || self.nodes.get(&member) != Some(czxid)
            }
            At::WaitingForOther { other, czxid, .. } => self.nodes.get(other) != Some(czxid),
            _ => true,
        }
    }

    pub(super) fn step(&mut self, scenario: &Scenario, member: usize) {
        let next = match self.at[member].clone() {
            At::Outside { rounds: 0 } => At::Done,
            At::Outside { rounds } => {
                self.zxid += 1;
                self.nodes.insert(member, self.zxid);
                self.listed = self.zxid;
                At::Entering { rounds, czxid: self.zxid }
            }
            At::Entering { rounds, czxid } | At::Waiting { rounds, czxid, .. } => {
                At::Listed { rounds, czxid, members: self.nodes.clone(), at: self.listed }
            }
            At::Listed { rounds, czxid, members, at } => {
                self.decide(scenario, member, rounds, czxid, &members, at)
            }
            At::Opening { rounds, czxid, open } => {
                self.open(scenario, &open);
                At::Entering { rounds, czxid }
            }
            At::Inside { rounds, ready } => {
                let other = self.other(member, ready).map(|other| (other, self.nodes[&other]));
                let text = other.map(|(other, _)| name(other));
                match leave(ready, text.as_deref(), self.ready) {
                    Leave::Before(_) => At::Leaving { rounds, ready, other, closes: None },
                    Leave::Last { closes } => At::Leaving { rounds, ready, other: None, closes },
                }
            }
            At::Leaving { rounds, ready, other, closes } => {
                self.leave(scenario, member, rounds, ready, other, closes)
            }
            At::Closing { rounds, ready, version } => {
                self.close(version);
                At::Left { rounds, ready }
            }
            At::Left { rounds, ready } | At::WaitingForOther { rounds, ready, .. } => {
                match self.other(member, ready) {
                    Some(other) => At::WaitingForOther { rounds, ready, other, czxid: self.nodes[&other] },
                    None => At::Outside { rounds: rounds - 1 },
                }
            }
            at @ (At::Crashed | At::Done) => at,
        };
        self.at[member] = next;
    }

    pub(super) fn decide(
        &mut self,
        scenario: &Scenario,
        member: usize,
        rounds: usize,
        czxid: i64,
        listed_nodes: &BTreeMap<usize, i64>,
        listed: i64,
    ) -> At {
        let ready = self.ready;
        if let (Some(Mistake::AnyReadyLetsIn), Some(ready)) = (scenario.mistake, ready) {
            return self.inside(member, rounds, ready);
        }
        let names: Vec<String> = listed_nodes.keys().copied().map(name).collect();
        // Asked for behind both reads.
        let still = listed_nodes.iter().filter(|(of, czxid)| self.nodes.get(of) == Some(czxid));
        let ages = still.map(|(of, czxid)| (name(*of), Zxid::new(*czxid))).collect();
        let decide = |ages| enter(scenario.count, &name(member), Zxid::new(czxid), &names, ready, ages);
        let decision = match decide(None) {
            Enter::AskAges => decide(Some(&ages)),
            decision => decision,
        };
        match decision {
            Enter::Inside(ready) => self.inside(member, rounds, ready),
            Enter::Open { members, replaces } => {
                let members = members.iter().map(|name| name.parse().unwrap());
                let members = members.map(|of: usize| (of, listed_nodes[&of])).collect();
                At::Opening { rounds, czxid, open: Open { members, replaces } }
            }
            Enter::Wait { .. } | Enter::AskAges => At::Waiting { rounds, czxid, listed, ready },
            Enter::Gone => At::Done,
        }
    }

    pub(super) fn inside(&mut self, member: usize, rounds: usize, ready: Ready) -> At {
        // A member whose node was deleted meanwhile learns of its loss.
        if self.nodes.contains_key(&member) && !self.admitted.contains(&member) {
            self.violation = Some("inside without having been admitted");
        }
        At::Inside { rounds, ready }
    }

    pub(super) fn leave(
        &mut self,
        scenario: &Scenario,
        member: usize,
        rounds: usize,
        ready: Ready,
        other: Option<(usize, i64)>,
        closes: Option<i32>,
    ) -> At {
        if let Some((other, czxid)) = other {
            if self.nodes.get(&other) != Some(&czxid) {
                return At::Inside { rounds, ready };
            }
            self.delete(member);
            return At::Left { rounds, ready };
        }
        if let (Some(Mistake::ClosesApart), Some(version)) = (scenario.mistake, closes) {
            self.delete(member);
            return At::Closing { rounds, ready, version };
        }
        if closes.is_some() && self.ready.map(|ready| ready.version) != closes {
            return At::Inside { rounds, ready };
        }
        self.delete(member);
        if closes.is_some() {
            self.ready = None;
        }
        At::Left { rounds, ready }
    }

    pub(super) fn close(&mut self, version: i32) {
        if self.ready.is_some_and(|ready| ready.version == version) {
            self.zxid += 1;
            self.ready = None;
            self.listed = self.zxid;
            if !self.admitted.is_empty() {
                self.violation = Some("the node of a round is deleted within it");
            }
        }
    }

    /// Nobody can continue, and somebody should.
    pub(super) fn hangs(&self, scenario: &Scenario) -> bool {
        let mut actions = Vec::new();
        self.progress(&mut actions);
        if !actions.is_empty() {
            return false;
        }
        let waits = |at: &&At| matches!(at, At::Waiting { .. });
        count_of(self.at.iter().filter(waits).count()) >= scenario.count
            || self.at.iter().any(|at| matches!(at, At::WaitingForOther { .. }))
    }

    pub(super) fn progress(&self, actions: &mut Vec<Action>) {
        for member in 0..self.at.len() {
            if self.is_enabled(member) {
                actions.push(Action::Step(member));
            }
            if self.at[member] == At::Crashed && self.nodes.contains_key(&member) {
                actions.push(Action::Expire(member));
            }
        }
        actions.extend((0..self.late.len()).map(Action::ApplyLate));
    }
}
