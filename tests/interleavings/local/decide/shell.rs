//! The contenders' tasks: the steps of the code around the local queue.

use super::scenario::{Mistake, Scenario};
use super::server::{Message, Name, Receiver, Request};
use super::world::{Action, Contender, Phase, Proof, World, id};
use crate::local::decide::{ContenderKind, Effect, EntryKey, Judgement, LocalQueue, Wait};

impl World {
    pub(super) fn step(&mut self, scenario: &Scenario, action: &Action) {
        match action.clone() {
            Action::Start(contender) => self.start(contender),
            Action::Process(session) => self.process(session),
            Action::Deliver(session, place) => self.deliver(scenario, session, place),
            Action::Wake(contender) => self.wake(scenario, contender),
            Action::StopAwaiting(contender) => self.judge(scenario, contender),
            Action::Take(contender) => self.take(contender),
            Action::Release(contender) => self.release(scenario, contender),
            Action::Exchange(contender) => self.exchange(scenario, contender),
            Action::Notice(contender) => self.notice(scenario, contender),
            Action::GiveUp(contender) => self.give_up(scenario, contender),
            Action::Janitor(session, name) => self.clean(session, name),
            Action::Cancel(contender) => self.cancel(scenario, contender),
            Action::HandDelete(name) => self.hand_delete(name),
            Action::Break { session, keeps_answers } => {
                self.break_connection(scenario, session, keeps_answers)
            }
            Action::Swap(session) => self.swap(session),
            Action::Reap(used) => self.reap(used),
        }
        self.settle(scenario);
    }

    pub(super) fn send(&mut self, session: usize, request: Request) {
        self.sessions[session].outbox.push_back(request);
    }

    pub(super) fn post(&mut self, messages: Vec<(usize, Message)>) {
        for (session, message) in messages {
            self.sessions[session].inbox.push_back(message);
        }
    }

    pub(super) fn queue(&mut self, contender: usize) -> Option<&mut LocalQueue<u8>> {
        let session = self.contenders[contender].session;
        self.sessions[session].queue.as_mut()
    }

    pub(super) fn connection(&self, contender: usize) -> u64 {
        self.sessions[self.contenders[contender].session].connection
    }

    /// Creates a node, and lists unless the sequence number is likely to decide.
    fn start(&mut self, number: usize) {
        let connection = self.connection(number);
        let kind = self.contenders[number].kind;
        self.contenders[number].attempt += 1;
        let create = self.queue(number).map(|queue| queue.send_create(kind, connection));
        let skips_list = create.as_ref().is_some_and(|create| create.prediction.skips_list());
        let contender = &mut self.contenders[number];
        contender.create = create;
        contender.phase = Phase::Creating;
        (contender.deleted, contender.granted_dead) = (false, false);
        let (session, name) = (contender.session, contender.name(number));
        self.send(session, Request::Create { name, kind });
        if !skips_list {
            self.send(session, Request::List { by: number });
        }
    }

    fn process(&mut self, session: usize) {
        let request = self.sessions[session].outbox.pop_front().unwrap();
        let messages = self.server.process(session, &request);
        self.post(messages);
    }

    /// Polls the watch on the directory in place, before any later message.
    pub(super) fn deliver(&mut self, scenario: &Scenario, session: usize, place: usize) {
        let inbox = &mut self.sessions[session].inbox;
        let message = inbox.remove(place).unwrap();
        let is_about_directory =
            |message: &Message| matches!(message, Message::DirectoryFired | Message::DirectoryWatched { .. });
        let earlier: Vec<Message> =
            inbox.iter().take(place).filter(|message| is_about_directory(message)).cloned().collect();
        let mut index = 0;
        inbox.retain(|message| {
            index += 1;
            index > place || !is_about_directory(message)
        });
        earlier.into_iter().for_each(|message| self.take_message(scenario, session, message));
        self.take_message(scenario, session, message);
    }

    fn take_message(&mut self, scenario: &Scenario, session: usize, message: Message) {
        if let Receiver::Contender(number) = message.receiver()
            && self.contenders[number].lost
        {
            return;
        }
        match message {
            Message::DirectoryWatched { exists } => {
                if let Some(queue) = &mut self.sessions[session].queue {
                    if exists { queue.directory_watch_set() } else { queue.directory_watch_ended() }
                }
            }
            Message::DirectoryFired => {
                self.sessions[session].queue.as_mut().unwrap().directory_watch_ended();
            }
            Message::Created { by, sequence } => self.created(scenario, by, sequence),
            Message::Listed { by, list } => self.listed(scenario, by, &list),
            Message::Watched { by, exists } => match self.contenders[by].phase {
                Phase::Watching(name) if exists => self.contenders[by].phase = Phase::Watched(name),
                Phase::Watching(_) => self.list(by),
                _ => {}
            },
            Message::Fired { by, name } => {
                if self.contenders[by].phase == Phase::Watched(name) {
                    self.list(by);
                }
            }
            Message::Found { by, sequence } => self.found(scenario, by, sequence),
            Message::Deleted { name, failed } => self.delete_answered(scenario, session, name, failed),
            Message::Exchanged { by, failed } => self.exchange_answered(scenario, by, failed),
            Message::Failed { by } => self.failed(scenario, by),
        }
    }

    fn created(&mut self, scenario: &Scenario, number: usize, sequence: i32) {
        let contender = &self.contenders[number];
        if contender.phase == Phase::Cancelled {
            self.contenders[number].phase = Phase::Done;
            let (session, name) = (self.contenders[number].session, self.contenders[number].name(number));
            self.send_delete(session, name, Vec::new(), Vec::new());
            return;
        }
        let has_list = contender.create.as_ref().is_none_or(|create| !create.prediction.skips_list());
        self.register(scenario, number, sequence);
        if has_list {
            self.contenders[number].phase = Phase::Listing;
        } else {
            self.judge_or_await(scenario, number);
        }
    }

    pub(super) fn register(&mut self, scenario: &Scenario, number: usize, sequence: i32) {
        let contender = &mut self.contenders[number];
        let key = EntryKey { sequence, node: id(contender.name(number)) };
        contender.key = Some(key);
        // Whatever the task does next, it has a node.
        contender.phase = Phase::Listing;
        let (kind, create) = (contender.kind, contender.create);
        let Some(queue) = self.queue(number) else { return };
        let mut effects = queue.register(key, kind);
        if let Some(create) = &create {
            effects.extend(queue.mark_created(create));
        }
        self.apply(scenario, number, effects);
    }

    fn judge_or_await(&mut self, scenario: &Scenario, number: usize) {
        let (create, key) = (self.contenders[number].create, self.contenders[number].key.unwrap());
        let awaits = self
            .queue(number)
            .zip(create.as_ref())
            .is_some_and(|(queue, create)| queue.awaits_predecessor(create, key));
        if awaits {
            self.contenders[number].phase = Phase::AwaitingSequence;
        } else {
            self.judge(scenario, number);
        }
    }

    /// Judges by the sequence number, and requests a list if the number does not decide.
    pub(super) fn judge(&mut self, scenario: &Scenario, number: usize) {
        self.contenders[number].judge = false;
        let key = self.contenders[number].key.unwrap();
        let Some(create) = self.contenders[number].create.take() else {
            return self.list(number);
        };
        let connection = self.connection(number);
        self.plant_before_judgement(scenario, number);
        let (judgement, effects) =
            self.queue(number).unwrap().judge_by_sequence(create, key, Some(connection));
        self.apply(scenario, number, effects);
        match judgement {
            Judgement::Head { .. } => {
                self.check_grant(number, true);
                let before = self.queue(number).unwrap().node_at(key.sequence - 1);
                let proof = before.map_or(Proof::AfterReleased, |_| Proof::BesideReader);
                self.contenders[number].phase = Phase::Ready(proof);
            }
            Judgement::Behind { .. } => self.contenders[number].phase = Phase::WaitingLocal,
            Judgement::Unknown => self.list(number),
        }
    }

    pub(super) fn list(&mut self, number: usize) {
        self.contenders[number].phase = Phase::Listing;
        self.send(self.contenders[number].session, Request::List { by: number });
    }

    fn listed(&mut self, scenario: &Scenario, number: usize, list: &[(i32, Name, ContenderKind)]) {
        if self.contenders[number].phase != Phase::Listing {
            return;
        }
        let (key, name) = (self.contenders[number].key.unwrap(), self.contenders[number].name(number));
        if !list.iter().any(|(_, other, _)| *other == name) {
            self.notice(scenario, number);
            return self.give_up(scenario, number);
        }
        let is_reader = self.contenders[number].kind == ContenderKind::Read;
        let blocks = |kind: ContenderKind| !is_reader || kind == ContenderKind::Write;
        let nearest = list.iter().rev().find(|(sequence, _, kind)| *sequence < key.sequence && blocks(*kind));
        let connection = self.connection(number);
        if let Some(create) = self.contenders[number].create.take() {
            let queue = self.queue(number).unwrap();
            queue.record_list(nearest.is_some());
            let effects = queue.judged_by_list(create, key, Some(connection));
            self.apply(scenario, number, effects);
        }
        let Some((sequence, nearest, _)) = nearest else {
            self.check_grant(number, false);
            if let Some(queue) = self.queue(number) {
                queue.mark_clear(key);
            }
            self.contenders[number].phase = Phase::Ready(Proof::ListOrHandOff);
            return;
        };
        let own = self.queue(number).and_then(|queue| queue.node_at(*sequence));
        let own = own.filter(|node| *node == id(*nearest));
        self.record_predecessor(
            scenario,
            number,
            own.map(|node| EntryKey { sequence: *sequence, node }),
            *nearest,
        );
    }

    fn record_predecessor(
        &mut self,
        scenario: &Scenario,
        number: usize,
        own: Option<EntryKey>,
        nearest: Name,
    ) {
        let key = self.contenders[number].key.unwrap();
        let (wait, effects) =
            self.queue(number).map_or((Wait::Remote, Vec::new()), |queue| queue.record_predecessor(key, own));
        self.apply(scenario, number, effects);
        match wait {
            Wait::Local => self.contenders[number].phase = Phase::WaitingLocal,
            Wait::Remote => {
                self.contenders[number].phase = Phase::Watching(nearest);
                let request = Request::Watch { by: number, name: nearest };
                self.send(self.contenders[number].session, request);
            }
        }
    }

    fn wake(&mut self, scenario: &Scenario, number: usize) {
        if self.contenders[number].phase == Phase::AwaitingSequence {
            return self.judge(scenario, number);
        }
        let key = self.contenders[number].key.unwrap();
        if let Some(granted_on) = self.contenders[number].granted_on.take() {
            if granted_on == self.connection(number) || scenario.has(Mistake::GrantOfEarlierConnection) {
                self.contenders[number].phase = Phase::Ready(Proof::ListOrHandOff);
                return;
            }
            // The answer to the check of this node is lost.
            self.queue(number).unwrap().withdraw_grant(key);
        }
        self.contenders[number].relist = false;
        // A writer waits for all nodes of its session first: before that no list could grant it.
        let own = self.queue(number).and_then(|queue| queue.own_before_writer(key));
        match own.and_then(|own| self.name_of(own.node).map(|name| (own, name))) {
            Some((own, name)) => self.record_predecessor(scenario, number, Some(own), name),
            None => self.list(number),
        }
    }

    pub(super) fn take(&mut self, number: usize) {
        let key = self.contenders[number].key.unwrap();
        self.contenders[number].phase = Phase::Holding;
        if let Some(queue) = self.queue(number) {
            queue.mark_held(key);
        }
    }

    pub(super) fn name_of(&self, node: crate::local::decide::NodeId) -> Option<Name> {
        let names = self.contenders.iter().enumerate().map(|(number, contender)| contender.name(number));
        names.into_iter().find(|name| id(*name) == node)
    }

    pub(super) fn apply(&mut self, scenario: &Scenario, of: usize, effects: Vec<Effect<u8>>) {
        let session = self.contenders[of].session;
        for effect in effects {
            match effect {
                Effect::Grant { node, connection, .. } => match self.name_of(node).map(|name| name.contender)
                {
                    Some(number) if self.contenders[number].has_node() => {
                        self.contenders[number].granted_on = Some(connection);
                        self.check_grant(number, false);
                    }
                    _ => self.violation = Some("a node was granted that no contender waits with"),
                },
                Effect::Relist { node } => {
                    if let Some(contender) = self.waiting(node).filter(|_| !scenario.has(Mistake::NoRelist)) {
                        contender.relist = true;
                    }
                }
                Effect::JudgeBySequence { node } => {
                    if let Some(contender) =
                        self.waiting(node).filter(|_| !scenario.has(Mistake::NoSequenceWake))
                    {
                        contender.judge = true;
                    }
                }
                Effect::WatchDirectory { connection } => {
                    self.send(session, Request::WatchDirectory);
                    let queue = self.sessions[session].queue.as_mut().unwrap();
                    queue.directory_watch_requested(connection);
                }
            }
        }
    }

    fn waiting(&mut self, node: crate::local::decide::NodeId) -> Option<&mut Contender> {
        let name = self.name_of(node)?;
        Some(&mut self.contenders[name.contender]).filter(|contender| contender.has_node())
    }

    /// Checks a grant when it is decided: the only nodes ahead may be released nodes of the same session,
    /// whose deletes precede all later requests of the contender.
    ///
    /// A grant by the sequence number rests on the node directly ahead: its delete was sent over this very
    /// connection.
    pub(super) fn check_grant(&mut self, number: usize, is_by_sequence: bool) {
        let contender = &self.contenders[number];
        if contender.lost {
            self.violation = Some("a node was granted that is known to be deleted");
        }
        let Some(mine) = self.server.sequence_of(contender.name(number)) else { return };
        let session = &self.sessions[contender.session];
        let is_blocked = self.server.nodes.range(..mine).any(|(sequence, node)| {
            let blocks = contender.kind != ContenderKind::Read || node.kind == ContenderKind::Write;
            let is_sent = session.deletes.contains(&node.name);
            let may_be_repeated = !is_by_sequence || *sequence + 1 < mine;
            let is_released = is_sent || (may_be_repeated && session.janitor.contains(&node.name));
            blocks && !is_released
        });
        if is_blocked {
            self.violation = Some("a node was granted while the server has a blocker ahead of it");
        }
    }
}
