//! Two processes with a worker each, one item, and what the servers keep. The first process puts the item.

use super::super::decide::{ClaimNode, FencedRecord, TxnAnswer, TxnStep, Verdict, after, after_fence, judge};
use super::super::stored::StoredItem;

/// A rule to break, so that the exploration is seen to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// The record of the worker is not compared.
    NoRecord,
    /// A claim does not compare the version of the item.
    NoVersion,
    /// A done does not check the node of the worker.
    NoWorker,
    /// A claim whose node was not read counts as ended.
    ClaimUnread,
    /// After a loss, a transaction in doubt counts as not applied.
    NoFence,
    /// A record that a transaction has written counts as fenced before.
    FenceUnread,
}

impl Mistake {
    pub(super) const ALL: [Self; 6] = [
        Self::NoRecord,
        Self::NoVersion,
        Self::NoWorker,
        Self::ClaimUnread,
        Self::NoFence,
        Self::FenceUnread,
    ];
}

/// How often each fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Faults {
    /// Requests without an answer, which are applied at once, later, or never.
    pub(super) lost_answers: u8,
    /// Sessions that end.
    pub(super) expiries: u8,
}

type WorkerId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writes {
    Put,
    Claim { version: u8 },
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    worker: WorkerId,
    /// The version of the record that it writes.
    record: u8,
    writes: Writes,
}

/// Where a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Looking,
    /// It has read the item.
    Seen {
        version: u8,
        claim: Option<WorkerId>,
    },
    /// It sends a transaction until it knows what became of it.
    Sending(Writes),
    Fencing(Writes),
    Holding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    worker: WorkerId,
    /// The version of its record, as it knows it.
    record: u8,
    at: At,
    in_doubt: bool,
}

/// What becomes of a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Applied,
    Late,
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The process goes on; its request is answered.
    Step(usize),
    /// The request of the process has no answer.
    Lose(usize, Fate),
    /// The session of the process ends.
    Expire(usize),
    /// The oldest late request is applied.
    Late,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Record {
    version: u8,
    is_committed: bool,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct World {
    item: Option<(u8, Option<WorkerId>)>,
    puts: u8,
    done_by: Vec<WorkerId>,
    said_done: Vec<WorkerId>,
    said_not_done: Vec<WorkerId>,
    /// Whether the node of each worker exists.
    workers: Vec<bool>,
    records: Vec<Record>,
    late: Vec<Request>,
    processes: [Process; 2],
    left: Faults,
}

impl World {
    pub(super) fn new(faults: Faults) -> Self {
        let process = |worker, at| Process { worker, record: 0, at, in_doubt: false };
        let record = Record { version: 0, is_committed: false };
        Self {
            item: None,
            puts: 0,
            done_by: Vec::new(),
            said_done: Vec::new(),
            said_not_done: Vec::new(),
            workers: vec![true; 2],
            records: vec![record; 2],
            late: Vec::new(),
            processes: [process(0, At::Sending(Writes::Put)), process(1, At::Looking)],
            left: faults,
        }
    }

    pub(super) fn is_once(&self) -> bool {
        self.puts <= 1 && self.done_by.len() <= 1
    }

    /// Each live worker that has the item is the one that the item names.
    pub(super) fn is_held_by_one(&self) -> bool {
        self.processes
            .iter()
            .filter(|process| process.at == At::Holding && self.workers[process.worker])
            .all(|process| self.item.is_some_and(|(_, claim)| claim == Some(process.worker)))
    }

    pub(super) fn is_told_truly(&self) -> bool {
        self.said_done.iter().all(|worker| self.done_by.contains(worker))
            && !self.said_not_done.iter().any(|worker| self.done_by.contains(worker))
    }

    pub(super) fn hangs(&self, mistake: Option<Mistake>) -> bool {
        let mut actions = Vec::new();
        self.actions(mistake, &mut actions);
        actions.retain(|action| matches!(action, Action::Step(_)));
        actions.is_empty() && self.done_by.is_empty()
    }

    pub(super) fn actions(&self, mistake: Option<Mistake>, actions: &mut Vec<Action>) {
        for (number, process) in self.processes.iter().enumerate() {
            let goes_on = match process.at {
                At::Looking => self.item.is_some(),
                // It waits until the worker is gone.
                At::Seen { claim, .. } => {
                    self.verdict(claim, mistake) == Verdict::Free || self.is_stale(process)
                }
                _ => true,
            };
            if goes_on {
                actions.push(Action::Step(number));
            }
            if self.left.lost_answers > 0 && matches!(process.at, At::Sending(_)) {
                actions
                    .extend([Fate::Applied, Fate::Late, Fate::Lost].map(|fate| Action::Lose(number, fate)));
            }
            if self.left.expiries > 0 && self.workers[process.worker] {
                actions.push(Action::Expire(number));
            }
        }
        if !self.late.is_empty() {
            actions.push(Action::Late);
        }
    }

    /// Whether the item has changed since the process has read it.
    fn is_stale(&self, process: &Process) -> bool {
        matches!(process.at, At::Seen { version, .. } if self.item.is_none_or(|(now, _)| now != version))
    }

    /// Judges the item as the library does, and reads the node of its worker if it has to.
    fn verdict(&self, claim: Option<WorkerId>, mistake: Option<Mistake>) -> Verdict {
        let stored = StoredItem { claim: claim.map(|worker| worker.to_string()), ..StoredItem::default() };
        match (judge(&stored, ClaimNode::Unread), claim) {
            (Verdict::ReadClaim, _) if mistake == Some(Mistake::ClaimUnread) => Verdict::Free,
            (Verdict::ReadClaim, Some(worker)) => {
                let exists = self.workers[worker];
                judge(&stored, if exists { ClaimNode::Exists } else { ClaimNode::Missing })
            }
            (verdict, _) => verdict,
        }
    }

    pub(super) fn step(&mut self, mistake: Option<Mistake>, action: Action) {
        match action {
            Action::Step(number) => self.go_on(number, mistake),
            Action::Lose(number, fate) => {
                self.left.lost_answers -= 1;
                let Some(request) = self.request(number) else { return };
                match fate {
                    Fate::Applied => {
                        let _ = self.apply(request, mistake);
                    }
                    Fate::Late => self.late.push(request),
                    Fate::Lost => {}
                }
                self.processes[number].in_doubt = true;
            }
            Action::Expire(number) => {
                self.left.expiries -= 1;
                self.workers[self.processes[number].worker] = false;
            }
            Action::Late => {
                let request = self.late.remove(0);
                let _ = self.apply(request, mistake);
            }
        }
    }

    fn request(&self, number: usize) -> Option<Request> {
        let Process { worker, record, at, .. } = self.processes[number];
        let At::Sending(writes) = at else { return None };
        Some(Request { worker, record, writes })
    }

    /// A transaction on the servers.
    fn apply(&mut self, request: Request, mistake: Option<Mistake>) -> Result<(), TxnAnswer> {
        let Request { worker, record, writes } = request;
        let is_unchecked = writes == Writes::Done && mistake == Some(Mistake::NoWorker);
        if !self.workers[worker] && !is_unchecked {
            return Err(TxnAnswer::Lost);
        }
        if self.records[worker].version != record && mistake != Some(Mistake::NoRecord) {
            return Err(TxnAnswer::RecordRefused);
        }
        match (writes, self.item) {
            (Writes::Put, _) => {
                self.puts += 1;
                self.item = Some((0, None));
            }
            (Writes::Claim { version }, Some((now, _)))
                if now == version || mistake == Some(Mistake::NoVersion) =>
            {
                self.item = Some((now + 1, Some(worker)));
            }
            (Writes::Done, Some(_)) => {
                self.item = None;
                self.done_by.push(worker);
            }
            _ => return Err(TxnAnswer::Refused),
        }
        self.records[worker] = Record { version: record + 1, is_committed: true };
        Ok(())
    }

    fn go_on(&mut self, number: usize, mistake: Option<Mistake>) {
        match self.processes[number].at {
            At::Looking => {
                if let Some((version, claim)) = self.item {
                    self.processes[number].at = At::Seen { version, claim };
                }
            }
            At::Seen { version, claim } => {
                self.processes[number].at = match self.verdict(claim, mistake) {
                    Verdict::Free => At::Sending(Writes::Claim { version }),
                    _ => At::Looking,
                };
            }
            At::Holding => self.processes[number].at = At::Sending(Writes::Done),
            At::Sending(writes) => {
                let Some(request) = self.request(number) else { return };
                let Err(answer) = self.apply(request, mistake) else {
                    return self.ended(number, writes, true);
                };
                match after(answer, self.processes[number].in_doubt) {
                    TxnStep::AppliedBefore => self.ended(number, writes, true),
                    TxnStep::Fence if mistake != Some(Mistake::NoFence) => {
                        self.processes[number].at = At::Fencing(writes);
                    }
                    TxnStep::NotApplied | TxnStep::Fence => self.ended(number, writes, false),
                    TxnStep::Again => {}
                }
            }
            At::Fencing(writes) => {
                let process = self.processes[number];
                let record = &mut self.records[process.worker];
                let fenced = match (record.version == process.record, record.is_committed) {
                    (true, _) => {
                        *record = Record { version: record.version + 1, is_committed: false };
                        FencedRecord::Written
                    }
                    (false, true) if mistake != Some(Mistake::FenceUnread) => FencedRecord::Committed,
                    (false, _) => FencedRecord::Before,
                };
                self.processes[number].record = self.records[process.worker].version;
                self.ended(number, writes, after_fence(fenced));
            }
        }
    }

    /// The process knows what became of its transaction.
    fn ended(&mut self, number: usize, writes: Writes, is_applied: bool) {
        let worker = self.processes[number].worker;
        let process = &mut self.processes[number];
        process.in_doubt = false;
        if is_applied {
            process.record = self.records[worker].version;
        }
        process.at = match (writes, is_applied) {
            (Writes::Put, false) => At::Sending(Writes::Put),
            (Writes::Claim { .. }, true) => At::Holding,
            (Writes::Put, true) | (Writes::Claim { .. } | Writes::Done, _) => At::Looking,
        };
        if writes == Writes::Done {
            let said = if is_applied { &mut self.said_done } else { &mut self.said_not_done };
            said.push(worker);
        }
        // As after a loss and after an item that is given up: with another worker.
        let gives_up = writes == Writes::Done && !is_applied;
        if gives_up {
            self.workers[worker] = false;
        }
        if !self.workers[worker] && self.processes[number].at != At::Holding {
            self.processes[number].worker = self.workers.len();
            self.processes[number].record = 0;
            self.workers.push(true);
            self.records.push(Record { version: 0, is_committed: false });
        }
    }
}
