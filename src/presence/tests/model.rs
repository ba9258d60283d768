//! Two processes with one path, against a model of the server: answers are lost, requests are applied late,
//! writes are refused, sessions end while their nodes exist, and nodes are deleted by hand.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::model_server::{Server, Write, found};
use crate::error::Refusal;
use crate::presence::OnDeletion;
use crate::presence::decide::{Engine, Event, Request, Status, Step};
use crate::znode::zxid::Zxid;

struct Process {
    engine: Engine,
    session: i64,
    earlier: Vec<i64>,
    has_event: bool,
    is_watched: bool,
    seen: i64,
    /// The calls whose data a node of this process has had.
    applied: BTreeSet<u64>,
    /// The calls whose own write was refused.
    refused: BTreeSet<u64>,
    /// The calls whose fate the engine knows.
    decided: BTreeSet<u64>,
    /// What another process wrote was not replaced: that was refused.
    is_unrestored: bool,
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// Applied, and the answer lost.
    AnswerLost,
    /// Never applied.
    RequestLost,
    /// Applied after later requests, without an answer.
    Late,
    /// A write is refused, and any other request is answered.
    Refused,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Step(usize, Fate),
    /// The process gets another session. The server still has the old one.
    Abandon(usize),
    /// The server ends the session of the process.
    Expire(usize),
    /// The server ends the oldest session without a client.
    ExpireAbandoned,
    ApplyLate,
    DeleteByHand,
    Reconnect(usize),
    SetData(usize),
}

/// The number of the call that set this data.
fn call_of(data: &[u8]) -> Option<u64> {
    std::str::from_utf8(data).ok()?.strip_prefix("call ")?.parse().ok()
}

struct World {
    server: Server,
    processes: [Process; 2],
}

impl World {
    fn new(policy: OnDeletion) -> Self {
        let mut server = Server::default();
        let processes = [b"a", b"b"].map(|data| {
            let session = server.session();
            let mut engine = Engine::new(policy, (*data).into());
            engine.handle(Event::SessionOpened { session, earlier: Vec::new() });
            let (applied, refused, decided) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let (earlier, has_event, is_watched, seen) = (Vec::new(), false, false, 0);
            let is_unrestored = false;
            Process {
                engine,
                session,
                earlier,
                has_event,
                is_watched,
                seen,
                applied,
                refused,
                decided,
                is_unrestored,
            }
        });
        Self { server, processes }
    }

    fn step(&mut self, process: usize, fate: Fate) {
        let before = self.server.node.as_ref().map(|node| (node.czxid, node.version));
        self.step_of(process, fate);
        self.fire_watches(before);
    }

    fn step_of(&mut self, number: usize, fate: Fate) {
        let process = &mut self.processes[number];
        // An event that was received is handled before the next request.
        if process.is_watched && std::mem::take(&mut process.has_event) {
            process.is_watched = false;
            process.engine.handle(Event::WatchFired);
        }
        let step = process.engine.next();
        let event = match step.clone() {
            Step::Retry => Event::RetryDue,
            Step::Wait | Step::End | Step::WaitForSession => return,
            Step::Verify | Step::VerifyOther(_) => Event::Verified,
            Step::MakeParent => Event::ParentMade,
            Step::Read if !matches!(fate, Fate::Answered | Fate::Refused) => Event::Unanswered(Request::Read),
            Step::Read => {
                process.has_event = false;
                process.seen = self.server.zxid;
                process.is_watched = self.server.node.is_some();
                match &self.server.node {
                    Some(node) => Event::Read(found(node), node.data.clone()),
                    None => Event::ReadNothing,
                }
            }
            step => {
                let request = match &step {
                    Step::Create => Request::Create,
                    Step::Replace(_) => Request::Replace,
                    _ => Request::Write,
                };
                let data = process.engine.targets().data().to_vec();
                let number = call_of(&data);
                assert!(
                    number.is_none_or(|number| !process.refused.contains(&number)),
                    "refused data is sent"
                );
                let write = Write { session: process.session, step, data, seen: process.seen };
                let mut own = process.earlier.clone();
                own.push(process.session);
                // A write that restores the data of an earlier call is the fate of no call.
                let is_of_call = number.is_some_and(|number| !process.decided.contains(&number));
                match fate {
                    Fate::Refused if request == Request::Write => {
                        process.refused.extend(number.filter(|_| is_of_call));
                        // The refusal of a call leaves the node as it is.
                        process.is_unrestored |= !is_of_call;
                        Event::Refused(request, Refusal::QuotaExceeded)
                    }
                    Fate::Answered | Fate::Refused => self.server.apply(&write, &own),
                    Fate::AnswerLost => {
                        self.server.apply(&write, &own);
                        Event::Unanswered(request)
                    }
                    Fate::RequestLost => Event::Unanswered(request),
                    Fate::Late => {
                        self.server.late.push(write);
                        Event::Unanswered(request)
                    }
                }
            }
        };
        self.note_applied();
        let process = &mut self.processes[number];
        process.is_unrestored &= !matches!(event, Event::Created(_) | Event::Wrote(_));
        let is_answered = matches!(event, Event::Created(_) | Event::Wrote(_) | Event::Read(..));
        process.engine.handle(event);
        if let (true, Status::Registered { czxid }) = (is_answered, process.engine.status()) {
            let node = self.server.node.as_ref().expect("a node");
            assert_eq!((node.owner, Zxid::new(node.czxid)), (process.session, czxid), "taken for ours");
        }
    }

    /// Records whose data the node has.
    fn note_applied(&mut self) {
        let Some(node) = &self.server.node else { return };
        let sender = self.processes.iter_mut().find(|process| process.session == node.owner);
        if let (Some(process), Some(number)) = (sender, call_of(&node.data)) {
            process.applied.insert(number);
        }
    }

    /// Each call has one fate: that of its own write, or of a later call that superseded it.
    fn check_fates(&mut self) {
        self.note_applied();
        for process in &mut self.processes {
            for (number, _) in process.engine.targets_mut().take_refused() {
                if number > 0 && !process.decided.contains(&number) {
                    assert!(process.refused.contains(&number), "call {number} was not refused");
                    process.decided.insert(number);
                }
            }
            for number in 1..=process.engine.targets().applied() {
                let by_other = process.applied.range(number..).next().is_some();
                assert!(process.decided.contains(&number) || by_other, "call {number} was not applied");
                process.decided.insert(number);
            }
        }
    }

    fn fire_watches(&mut self, before: Option<(i64, i32)>) {
        if before != self.server.node.as_ref().map(|node| (node.czxid, node.version)) {
            for process in &mut self.processes {
                process.has_event = true;
            }
        }
    }

    fn reopen(&mut self, number: usize) {
        let session = self.server.session();
        let process = &mut self.processes[number];
        process.earlier.push(process.session);
        process.session = session;
        process.is_unrestored = false;
        process.engine.handle(Event::SessionEnded);
        process.engine.handle(Event::SessionOpened { session, earlier: process.earlier.clone() });
    }

    fn act(&mut self, action: Action) {
        let before = self.server.node.as_ref().map(|node| (node.czxid, node.version));
        match action {
            Action::Step(process, fate) => self.step_of(process, fate),
            Action::Abandon(process) => {
                self.server.abandoned.push(self.processes[process].session);
                self.reopen(process);
            }
            Action::Expire(process) => {
                self.server.end(self.processes[process].session);
                self.reopen(process);
            }
            Action::ExpireAbandoned => {
                if !self.server.abandoned.is_empty() {
                    let session = self.server.abandoned.remove(0);
                    self.server.end(session);
                }
            }
            Action::ApplyLate => {
                if !self.server.late.is_empty() {
                    let write = self.server.late.remove(0);
                    let sender = self.processes.iter().find(|process| {
                        process.session == write.session || process.earlier.contains(&write.session)
                    });
                    let sender = sender.expect("a sender");
                    let own = [&sender.earlier[..], &[sender.session]].concat();
                    self.server.apply(&write, &own);
                }
            }
            Action::DeleteByHand => self.server.node = None,
            Action::Reconnect(process) => self.processes[process].engine.handle(Event::Reconnected),
            Action::SetData(process) => {
                let engine = &mut self.processes[process].engine;
                let data = format!("call {}", engine.targets().last_number() + 1);
                engine.handle(Event::SetData(data.as_bytes().into()));
            }
        }
        self.check_fates();
        self.fire_watches(before);
    }

    /// No more faults: the server ends what has no client, and late requests are applied.
    fn settle(&mut self) {
        while !self.server.late.is_empty() {
            self.act(Action::ApplyLate);
        }
        while !self.server.abandoned.is_empty() {
            self.act(Action::ExpireAbandoned);
        }
        for _ in 0..40 {
            for process in 0..2 {
                self.step(process, Fate::Answered);
            }
        }
        self.check_fates();
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::Late),
        1 => Just(Fate::Refused),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let process = || 0..2_usize;
    prop_oneof![
        12 => (process(), fate()).prop_map(|(process, fate)| Action::Step(process, fate)),
        1 => process().prop_map(Action::Abandon),
        1 => process().prop_map(Action::Expire),
        1 => Just(Action::ExpireAbandoned),
        1 => Just(Action::ApplyLate),
        1 => Just(Action::DeleteByHand),
        1 => process().prop_map(Action::Reconnect),
        2 => process().prop_map(Action::SetData),
    ]
}

fn check_that_one_is_registered_in_the_end(actions: Vec<Action>) {
    let mut world = World::new(OnDeletion::Recreate);
    actions.into_iter().for_each(|action| world.act(action));
    world.settle();
    let node = world.server.node.clone().expect("a node");
    let owner = world.processes.iter().position(|process| process.session == node.owner);
    let owner = owner.expect("the node belongs to a current session");
    let (ours, theirs) = (&world.processes[owner].engine, &world.processes[1 - owner].engine);
    assert_eq!(ours.status(), Status::Registered { czxid: Zxid::new(node.czxid) });
    // What another process wrote, if it cannot be replaced.
    assert!(world.processes[owner].is_unrestored || node.data == ours.targets().data().to_vec());
    assert!(ours.targets().is_stored());
    let decided = &world.processes[owner].decided;
    let mut calls = 1..=ours.targets().last_number();
    assert!(calls.all(|number| decided.contains(&number)), "{decided:?}");
    assert_eq!(theirs.status(), Status::Conflict { owner: node.owner });
    assert_eq!((ours.next(), theirs.next()), (Step::Wait, Step::Wait));
}

/// A write of the other process comes late, and neither it nor a call of ours can be replaced.
#[test]
fn a_refused_call_does_not_restore_what_another_process_has_written() {
    use Fate::{Answered, Late, Refused};

    let (ours, theirs) = (0, 1);
    check_that_one_is_registered_in_the_end(vec![
        Action::Step(theirs, Answered),
        Action::Step(theirs, Answered),
        Action::SetData(theirs),
        Action::Step(theirs, Late),
        Action::DeleteByHand,
        Action::Step(ours, Answered),
        Action::Step(ours, Answered),
        Action::ApplyLate,
        Action::Step(ours, Refused),
        Action::Step(ours, Refused),
        Action::SetData(ours),
        Action::Step(ours, Refused),
    ]);
}

proptest! {
    #[test]
    fn one_process_is_registered_in_the_end_and_the_other_knows_the_owner(
        actions in prop::collection::vec(action(), 0..80),
    ) {
        check_that_one_is_registered_in_the_end(actions);
    }

    #[test]
    fn a_process_that_is_out_of_service_creates_nothing(
        actions in prop::collection::vec(action(), 0..80),
    ) {
        let mut world = World::new(OnDeletion::End);
        actions.into_iter().for_each(|action| world.act(action));
        world.settle();
        for process in &world.processes {
            match process.engine.status() {
                Status::Deleted => prop_assert_eq!(process.engine.next(), Step::End),
                Status::Registered { czxid } => {
                    let found = world.server.node.as_ref().map(|node| Zxid::new(node.czxid));
                    prop_assert_eq!(found, Some(czxid));
                }
                Status::Conflict { owner } => {
                    prop_assert_eq!(world.server.node.as_ref().map(|node| node.owner), Some(owner));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
