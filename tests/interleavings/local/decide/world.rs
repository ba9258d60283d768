//! The world around the local queue: a server, sessions, and the contenders' tasks that drive the queue.

use std::collections::{BTreeSet, VecDeque};

use super::LOCK;
use super::consistency::is_consistent;
use super::scenario::{Faults, Scenario};
use super::server::{Message, Name, Request, Server};
use crate::local::decide::{ContenderKind, CreateInFlight, EntryKey, LocalQueue, NodeId, ReleaseInFlight};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) connection: u64,
    /// Sent, and not yet processed by the server.
    pub(super) outbox: VecDeque<Request>,
    /// Processed, and not yet taken by the task.
    pub(super) inbox: VecDeque<Message>,
    /// Deletes that were sent and whose reply was not taken yet, with the nodes that they check and grant.
    pub(super) deletes: BTreeSet<Name>,
    /// Deletes without a reply, and nodes that may exist: the janitor deletes them.
    pub(super) janitor: BTreeSet<Name>,
    pub(super) queue: Option<LocalQueue<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Idle,
    Creating,
    /// Cancelled before the reply to the create.
    Cancelled,
    Finding,
    Listing,
    /// Waits for the sequence numbers of earlier creates.
    AwaitingSequence,
    WaitingLocal,
    Watching(Name),
    Watched(Name),
    /// No node is ahead. The last step before the hold is the check of the lease.
    Ready(Proof),
    Holding,
    Exchanging(ReleaseInFlight<u8>),
    Done,
}

/// Why no node is ahead of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Proof {
    ListOrHandOff,
    /// The sequence number: the node before was released as the head.
    AfterReleased,
    /// The sequence number: the node before is a reader's, which waits for no node.
    BesideReader,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Contender {
    pub(super) session: usize,
    pub(super) kind: ContenderKind,
    pub(super) rounds: u8,
    pub(super) attempt: u8,
    pub(super) phase: Phase,
    pub(super) create: Option<CreateInFlight>,
    pub(super) key: Option<EntryKey>,
    /// The decisions of the queue that the contender's task has not seen yet. The first one is the connection
    /// that carried the hand-off.
    pub(super) granted_on: Option<u64>,
    pub(super) relist: bool,
    pub(super) judge: bool,
    /// The node was deleted by hand.
    pub(super) deleted: bool,
    /// The client knows that the node is deleted.
    pub(super) lost: bool,
    /// A hand-off grants the node, which was deleted before the server processed its check. The failure of
    /// that check is the only thing that stops the contender.
    pub(super) granted_dead: bool,
}

impl Contender {
    pub(super) fn name(&self, contender: usize) -> Name {
        Name { contender, attempt: self.attempt }
    }

    pub(super) fn has_node(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Creating | Phase::Cancelled | Phase::Finding | Phase::Done)
    }
}

/// The id of a node in the local queue.
pub(super) fn id(name: Name) -> NodeId {
    NodeId(u64::from(name.attempt) * 16 + u64::try_from(name.contender).unwrap())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) server: Server,
    pub(super) sessions: Vec<Session>,
    pub(super) contenders: Vec<Contender>,
    pub(super) left: Faults,
    /// A property that a step broke.
    pub(super) violation: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Start(usize),
    /// The server processes the oldest request of a session.
    Process(usize),
    /// A task takes the message at this index of its session's inbox.
    Deliver(usize, usize),
    /// A contender's task sees the decision of the queue.
    Wake(usize),
    /// A contender waits no longer for the sequence numbers of earlier creates.
    StopAwaiting(usize),
    Take(usize),
    Release(usize),
    Exchange(usize),
    /// A contender notices that its node is deleted.
    Notice(usize),
    /// A contender whose node is deleted drops its record of the node.
    GiveUp(usize),
    Janitor(usize, Name),
    Cancel(usize),
    HandDelete(Name),
    /// The connection breaks, with or without the replies that the client has not taken yet.
    Break {
        session: usize,
        keeps_answers: bool,
    },
    /// Another session replaces the session.
    Swap(usize),
    /// The server removes the empty directory, and other clients create it again, with this many nodes that
    /// are deleted since.
    Reap(i32),
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let sessions = scenario.queues.iter().map(|has_queue| Session {
            connection: 1,
            outbox: VecDeque::new(),
            inbox: VecDeque::new(),
            deletes: BTreeSet::new(),
            janitor: BTreeSet::new(),
            queue: has_queue.then(LocalQueue::default),
        });
        let contenders = scenario.contenders.iter().map(|(session, kind, rounds)| Contender {
            session: *session,
            kind: *kind,
            rounds: *rounds,
            attempt: 0,
            phase: Phase::Idle,
            create: None,
            key: None,
            granted_on: None,
            relist: false,
            judge: false,
            deleted: false,
            lost: false,
            granted_dead: false,
        });
        let mut world = Self {
            server: Server::default(),
            sessions: sessions.collect(),
            contenders: contenders.collect(),
            left: scenario.faults,
            violation: None,
        };
        world.warm_up(scenario);
        world
    }

    /// The first contender holds and releases repeatedly, without any other contender.
    fn warm_up(&mut self, scenario: &Scenario) {
        let rounds = self.contenders[0].rounds;
        self.contenders[0].rounds += scenario.warm_rounds;
        while self.contenders[0].rounds > rounds || !self.is_quiet() {
            let mut actions = Vec::new();
            self.progress(scenario, &mut actions);
            let others = |action: &Action| matches!(action, Action::Start(contender) if *contender > 0);
            actions.retain(|action| !others(action));
            if self.contenders[0].rounds == rounds {
                actions.retain(|action| !matches!(action, Action::Start(_)));
            }
            // The server first, so that it processes all requests in flight.
            let server = actions.iter().position(|action| matches!(action, Action::Process(_)));
            self.step(scenario, &actions[server.unwrap_or(0)]);
        }
    }

    fn is_quiet(&self) -> bool {
        self.sessions.iter().all(|session| session.outbox.is_empty() && session.inbox.is_empty())
    }

    /// All actions that happen sooner or later by themselves.
    pub(super) fn progress(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for (number, session) in self.sessions.iter().enumerate() {
            if !session.outbox.is_empty() {
                actions.push(Action::Process(number));
            }
            for (place, message) in session.inbox.iter().enumerate() {
                let receiver = message.receiver();
                let is_first = session.inbox.iter().take(place).all(|earlier| earlier.receiver() != receiver);
                if is_first {
                    actions.push(Action::Deliver(number, place));
                }
            }
            actions.extend(session.janitor.iter().map(|name| Action::Janitor(number, *name)));
        }
        for (number, contender) in self.contenders.iter().enumerate() {
            if contender.lost {
                actions.push(Action::GiveUp(number));
                continue;
            }
            match contender.phase {
                Phase::Idle if contender.rounds > 0 && self.may_start(scenario, number) => {
                    actions.push(Action::Start(number));
                }
                Phase::WaitingLocal if contender.granted_on.is_some() || contender.relist => {
                    actions.push(Action::Wake(number));
                }
                Phase::AwaitingSequence if contender.judge => actions.push(Action::Wake(number)),
                Phase::Ready(_) => actions.push(Action::Take(number)),
                Phase::Holding => actions.push(Action::Release(number)),
                _ => {}
            }
            if contender.deleted && contender.has_node() {
                actions.push(Action::Notice(number));
            }
        }
    }

    /// All actions that may or may not happen.
    pub(super) fn chance(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for (number, contender) in self.contenders.iter().enumerate() {
            let phase = &contender.phase;
            if contender.lost {
                continue;
            }
            if *phase == Phase::AwaitingSequence && !contender.judge {
                actions.push(Action::StopAwaiting(number));
            }
            let is_holding = *phase == Phase::Holding;
            if is_holding && scenario.exchanges && contender.kind == LOCK {
                actions.push(Action::Exchange(number));
            }
            let can_cancel = contender.has_node() || matches!(phase, Phase::Creating | Phase::Finding);
            if self.left.cancels > 0
                && can_cancel
                && !is_holding
                && !matches!(phase, Phase::Exchanging(_))
                && !contender.deleted
            {
                actions.push(Action::Cancel(number));
            }
        }
        if self.left.hand_deletes > 0 {
            actions.extend(self.server.nodes.values().map(|node| Action::HandDelete(node.name)));
        }
        for session in 0..self.sessions.len() {
            // A foreign client's faults look like slowness to this library.
            if self.sessions[session].queue.is_none() {
                continue;
            }
            if self.left.breaks > 0 {
                actions.push(Action::Break { session, keeps_answers: false });
                if !self.sessions[session].inbox.is_empty() {
                    actions.push(Action::Break { session, keeps_answers: true });
                }
            }
            if self.left.swaps > 0 {
                actions.push(Action::Swap(session));
            }
        }
        if self.left.reaps > 0 && self.server.is_reapable() && self.knows_what_is_deleted() {
            let created = self.server.created();
            let used: BTreeSet<i32> = [0, created - 1, created].into();
            actions.extend(used.into_iter().map(Action::Reap));
        }
    }

    /// Whether every contender knows which deletes by hand concern it. No promise covers a directory that is
    /// removed while a contender still relies on a node that was deleted by hand.
    fn knows_what_is_deleted(&self) -> bool {
        let is_known = |contender: &Contender| {
            let is_over = matches!(contender.phase, Phase::Idle | Phase::Done);
            !contender.deleted || contender.lost || is_over
        };
        let is_delete = |request: &Request| matches!(request, Request::Delete { .. });
        self.contenders.iter().all(is_known)
            && !self.sessions.iter().flat_map(|session| &session.outbox).any(is_delete)
    }

    /// Whether no two contenders that exclude each other hold at once. A contender that has lost its node
    /// since its grant does not count.
    pub(super) fn is_exclusive(&self) -> bool {
        let held = self.contenders.iter().enumerate().filter(|(number, contender)| {
            let is_holding = matches!(contender.phase, Phase::Holding | Phase::Exchanging(_));
            let exists = || self.server.sequence_of(contender.name(*number)).is_some();
            is_holding && !contender.lost && (contender.granted_dead || exists())
        });
        let held: Vec<ContenderKind> = held.map(|(_, contender)| contender.kind).collect();
        held.len() < 2 || held.iter().all(|kind| *kind == ContenderKind::Read)
    }

    /// Whether every contender that wants to hold has held, and no node remains, if nothing more happens by
    /// itself.
    pub(super) fn is_live(&self, scenario: &Scenario) -> bool {
        let mut actions = Vec::new();
        self.progress(scenario, &mut actions);
        let is_over = |contender: &Contender| {
            contender.phase == Phase::Done || (contender.phase == Phase::Idle && contender.rounds == 0)
        };
        !actions.is_empty() || (self.contenders.iter().all(is_over) && self.server.nodes.is_empty())
    }

    /// Whether a contender is about to hold by this proof.
    pub(super) fn has_proof(&self, proof: Proof) -> bool {
        self.contenders.iter().any(|contender| contender.phase == Phase::Ready(proof))
    }

    pub(super) fn is_consistent(&self) -> bool {
        self.sessions.iter().filter_map(|session| session.queue.as_ref()).all(is_consistent)
    }
}
