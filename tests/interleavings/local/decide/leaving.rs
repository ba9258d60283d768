//! How contenders leave, and their faults.

use super::scenario::{Mistake, Scenario};
use super::server::{Message, Name, Receiver, Request};
use super::world::{Phase, Session, World};
use crate::local::decide::released_head::DirectoryWatchState;
use crate::local::decide::{ContenderKind, Effect};

impl World {
    pub(super) fn release(&mut self, scenario: &Scenario, number: usize) {
        self.give_up(scenario, number);
        let contender = &mut self.contenders[number];
        contender.rounds -= 1;
        contender.phase = if contender.rounds == 0 { Phase::Done } else { Phase::Idle };
    }

    /// Sends the delete of the contender's node.
    pub(super) fn give_up(&mut self, scenario: &Scenario, number: usize) {
        self.plant_before_release(scenario, number);
        let contender = &mut self.contenders[number];
        let (session, name, key) = (contender.session, contender.name(number), contender.key.take());
        (contender.granted_on, contender.relist, contender.judge) = (None, false, false);
        (contender.deleted, contender.lost, contender.granted_dead) = (false, false, false);
        let create = contender.create.take();
        let watches = matches!(contender.phase, Phase::Watching(_) | Phase::Watched(_));
        contender.phase = Phase::Done;
        if watches {
            self.server.forget_watch(session, number);
        }
        let connection = self.connection(number);
        let (mut checks, mut effects, mut is_hand_off) = (Vec::new(), Vec::new(), false);
        if let Some((queue, key)) = self.queue(number).zip(key) {
            let forgotten = create.map(|create| queue.forget_create(create)).unwrap_or_default();
            let release = queue.begin_release(key, Some(connection));
            is_hand_off = release.head.is_some();
            checks.clone_from(&release.checks);
            effects = queue.finish_release(release, Some(connection), None);
            effects.extend(forgotten);
        }
        let mut checks: Vec<Name> = checks.into_iter().filter_map(|node| self.name_of(node)).collect();
        if scenario.has(Mistake::WriterWithoutList) && is_hand_off {
            for effect in &mut effects {
                let Effect::Relist { node } = *effect else { continue };
                let kind = self.name_of(node).map(|name| (name, self.contenders[name.contender].kind));
                if let Some((name, ContenderKind::Write)) = kind {
                    checks.push(name);
                    *effect = Effect::Grant { node, connection, payload: None };
                }
            }
        }
        let granted = checks.clone();
        if scenario.has(Mistake::HandOffWithoutCheck) {
            checks.clear();
        }
        self.mark_granted_dead(name, &granted);
        self.send_delete(session, name, checks, granted);
        self.apply(scenario, number, effects);
    }

    /// A request that is sent now deletes `head` and grants these nodes. A check that fails leaves the head
    /// in the queue, unless the head is deleted by hand as well: then no promise covers the contender.
    fn mark_granted_dead(&mut self, head: Name, granted: &[Name]) {
        let has_head = self.server.sequence_of(head).is_some();
        for name in granted {
            let is_dead = self.server.sequence_of(*name).is_none();
            self.contenders[name.contender].granted_dead |= has_head && is_dead;
        }
    }

    pub(super) fn send_delete(&mut self, session: usize, name: Name, checks: Vec<Name>, granted: Vec<Name>) {
        self.sessions[session].deletes.insert(name);
        self.send(session, Request::Delete { name, checks, granted });
    }

    /// The reply to a delete: a check that failed shows that a successor has lost its node.
    pub(super) fn delete_answered(
        &mut self,
        scenario: &Scenario,
        session: usize,
        name: Name,
        failed: Option<Name>,
    ) {
        if !self.sessions[session].deletes.remove(&name) {
            return;
        }
        let Some(failed) = failed else { return };
        self.lose(scenario, failed);
        // At most one of the checked nodes is deleted by hand here, so the next delete checks none.
        self.send_delete(session, name, Vec::new(), Vec::new());
    }

    /// The client learns that the contender's node is deleted.
    fn lose(&mut self, scenario: &Scenario, name: Name) {
        let contender = &mut self.contenders[name.contender];
        if contender.attempt != name.attempt || !contender.has_node() || contender.lost {
            return;
        }
        contender.lost = true;
        let key = contender.key.unwrap();
        let effects = self.queue(name.contender).map(|queue| queue.abandon(key)).unwrap_or_default();
        self.apply(scenario, name.contender, effects);
    }

    pub(super) fn notice(&mut self, scenario: &Scenario, number: usize) {
        self.lose(scenario, self.contenders[number].name(number));
    }

    pub(super) fn cancel(&mut self, scenario: &Scenario, number: usize) {
        self.left.cancels -= 1;
        if matches!(self.contenders[number].phase, Phase::Creating | Phase::Finding) {
            let is_creating = self.contenders[number].phase == Phase::Creating;
            if let Some(create) = self.contenders[number].create.take() {
                let effects = self.queue(number).unwrap().forget_create(create);
                self.apply(scenario, number, effects);
            }
            if is_creating {
                self.contenders[number].phase = Phase::Cancelled;
            } else {
                self.leave_to_janitor(number);
            }
            return;
        }
        self.give_up(scenario, number);
    }

    fn leave_to_janitor(&mut self, number: usize) {
        let contender = &mut self.contenders[number];
        contender.phase = Phase::Done;
        let (session, name) = (contender.session, contender.name(number));
        self.sessions[session].janitor.insert(name);
    }

    /// The janitor deletes a node without a check of any other.
    pub(super) fn clean(&mut self, session: usize, name: Name) {
        self.sessions[session].janitor.remove(&name);
        self.send_delete(session, name, Vec::new(), Vec::new());
    }

    pub(super) fn exchange(&mut self, scenario: &Scenario, number: usize) {
        let connection = self.connection(number);
        let (key, name) = (self.contenders[number].key.unwrap(), self.contenders[number].name(number));
        let Some(queue) = self.queue(number) else { return };
        let release = queue.begin_exchange(key, Some(connection));
        let granted: Vec<Name> = release.checks.iter().filter_map(|node| self.name_of(*node)).collect();
        let checks = if scenario.has(Mistake::ExchangeWithoutCheck) { Vec::new() } else { granted.clone() };
        self.mark_granted_dead(name, &granted);
        self.contenders[number].phase = Phase::Exchanging(release);
        self.send(self.contenders[number].session, Request::Exchange { name, checks, granted });
    }

    pub(super) fn exchange_answered(&mut self, scenario: &Scenario, number: usize, failed: Option<Name>) {
        let name = self.contenders[number].name(number);
        if !matches!(self.contenders[number].phase, Phase::Exchanging(_)) {
            return;
        }
        match failed {
            None => self.exchanged(scenario, number),
            Some(own) if own == name => self.exchange_lost(scenario, number),
            Some(next) => {
                self.lose(scenario, next);
                self.exchange_cancelled(number);
            }
        }
    }

    fn exchange_cancelled(&mut self, number: usize) {
        let contender = &mut self.contenders[number];
        if let Phase::Exchanging(release) = std::mem::replace(&mut contender.phase, Phase::Holding) {
            self.queue(number).unwrap().cancel_exchange(&release);
        }
    }

    fn exchange_lost(&mut self, scenario: &Scenario, number: usize) {
        self.exchange_cancelled(number);
        self.notice(scenario, number);
    }

    fn exchanged(&mut self, scenario: &Scenario, number: usize) {
        let connection = self.connection(number);
        let contender = &mut self.contenders[number];
        contender.rounds -= 1;
        contender.key = None;
        let next = if contender.rounds == 0 { Phase::Done } else { Phase::Idle };
        if let Phase::Exchanging(release) = std::mem::replace(&mut contender.phase, next) {
            let effects = self.queue(number).unwrap().finish_release(release, Some(connection), Some(7));
            self.apply(scenario, number, effects);
        }
    }

    pub(super) fn hand_delete(&mut self, name: Name) {
        self.left.hand_deletes -= 1;
        let messages = self.server.delete(name);
        self.post(messages);
        let contender = &mut self.contenders[name.contender];
        contender.deleted = contender.attempt == name.attempt && contender.phase != Phase::Done;
        let session = contender.session;
        let requests: Vec<Request> = self.sessions[session].outbox.iter().cloned().collect();
        for request in requests.iter().filter(|request| request.granted().contains(&name)) {
            if let Some(head) = request.head() {
                self.mark_granted_dead(head, &[name]);
            }
        }
        self.head_deleted(session, name);
    }

    /// The head was deleted by hand, so that no promise covers the contenders that it granted.
    fn head_deleted(&mut self, session: usize, head: Name) {
        let Session { outbox, inbox, .. } = &self.sessions[session];
        let mut granted: Vec<Name> = Vec::new();
        for request in outbox.iter().filter(|request| request.head() == Some(head)) {
            granted.extend(request.granted());
        }
        for message in inbox {
            match message {
                Message::Deleted { name, failed } if *name == head => granted.extend(failed),
                Message::Exchanged { by, failed } if *by == head.contender => granted.extend(failed),
                _ => {}
            }
        }
        for name in granted {
            self.contenders[name.contender].granted_dead = false;
        }
    }

    pub(super) fn break_connection(&mut self, scenario: &Scenario, number: usize, keeps_answers: bool) {
        self.left.breaks -= 1;
        let session = &mut self.sessions[number];
        session.connection += 1;
        session.outbox.clear();
        if !keeps_answers {
            session.inbox.clear();
            if let Some(queue) = &mut session.queue
                && matches!(queue.directory_watch, DirectoryWatchState::Requested { .. })
            {
                queue.directory_watch_ended();
            }
        }
        self.server.forget_watches(number);
        let answered = |world: &Self, receiver: Receiver| {
            world.sessions[number].inbox.iter().any(|message| message.receiver() == receiver)
        };
        for name in std::mem::take(&mut self.sessions[number].deletes) {
            match answered(self, Receiver::Delete(name)) {
                true => self.sessions[number].deletes.insert(name),
                false => self.sessions[number].janitor.insert(name),
            };
        }
        for contender in 0..self.contenders.len() {
            if self.contenders[contender].session != number {
                continue;
            }
            if self.contenders[contender].granted_on.is_none() {
                // It holds already, and the answer to the check is lost: no promise covers its node's
                // deletion by hand.
                self.contenders[contender].granted_dead = false;
            }
            if self.lacks_an_answer(contender) {
                self.sessions[number].inbox.push_back(Message::Failed { by: contender });
            }
        }
        self.plant_after_break(scenario, number);
    }

    /// Whether the contender waits for a message that will not arrive over the next connection.
    fn lacks_an_answer(&self, number: usize) -> bool {
        let contender = &self.contenders[number];
        let has_list = contender.create.as_ref().is_none_or(|create| !create.prediction.skips_list());
        let inbox = &self.sessions[contender.session].inbox;
        let has = |is_last: fn(&Message) -> bool| {
            let mut mine = inbox.iter().filter(|message| message.receiver() == Receiver::Contender(number));
            mine.any(is_last)
        };
        match contender.phase {
            Phase::Creating if has_list => !has(|message| matches!(message, Message::Listed { .. })),
            Phase::Creating | Phase::Cancelled => !has(|message| matches!(message, Message::Created { .. })),
            Phase::Listing => !has(|message| matches!(message, Message::Listed { .. })),
            Phase::Finding => !has(|message| matches!(message, Message::Found { .. })),
            Phase::Exchanging(_) => !has(|message| matches!(message, Message::Exchanged { .. })),
            // The reply may have arrived, and the watch may still be forgotten.
            Phase::Watching(_) | Phase::Watched(_) => !has(|message| {
                matches!(message, Message::Fired { .. } | Message::Watched { exists: false, .. })
            }),
            _ => false,
        }
    }

    /// A request of the contender has no reply, or its watch may be forgotten.
    pub(super) fn failed(&mut self, scenario: &Scenario, number: usize) {
        let contender = &self.contenders[number];
        let (session, name) = (contender.session, contender.name(number));
        match contender.phase.clone() {
            Phase::Creating => {
                if let Some(create) = self.contenders[number].create.take() {
                    let effects = self.queue(number).unwrap().forget_create(create);
                    self.apply(scenario, number, effects);
                }
                self.contenders[number].phase = Phase::Finding;
                self.send(session, Request::Find { by: number, name });
            }
            Phase::Cancelled => self.leave_to_janitor(number),
            // The list that was sent with the create is lost: the sequence number may decide.
            Phase::Listing => self.judge(scenario, number),
            Phase::Watching(nearest) | Phase::Watched(nearest) => {
                self.contenders[number].phase = Phase::Watching(nearest);
                self.send(session, Request::Watch { by: number, name: nearest });
            }
            Phase::Finding | Phase::Exchanging(_) => self.send(session, Request::Find { by: number, name }),
            _ => {}
        }
    }

    pub(super) fn found(&mut self, scenario: &Scenario, number: usize, sequence: Option<i32>) {
        match (self.contenders[number].phase.clone(), sequence) {
            (Phase::Finding, Some(sequence)) => {
                self.register(scenario, number, sequence);
                self.list(number);
            }
            (Phase::Finding, None) => self.contenders[number].phase = Phase::Idle,
            (Phase::Exchanging(_), Some(_)) => self.exchange_cancelled(number),
            // The transaction deleted it, or it was deleted by hand.
            (Phase::Exchanging(_), None) if self.contenders[number].deleted => {
                self.exchange_lost(scenario, number);
            }
            (Phase::Exchanging(_), None) => self.exchanged(scenario, number),
            _ => {}
        }
    }

    /// The session ends, and the server deletes its nodes. Its contenders start over in the next session.
    pub(super) fn swap(&mut self, number: usize) {
        self.left.swaps -= 1;
        let messages = self.server.expire(number);
        self.post(messages);
        let session = &mut self.sessions[number];
        session.connection += 1;
        session.outbox.clear();
        session.inbox.clear();
        session.deletes.clear();
        session.janitor.clear();
        if let Some(queue) = &mut session.queue {
            queue.end_session();
        }
        for contender in self.contenders.iter_mut().filter(|contender| contender.session == number) {
            (contender.granted_on, contender.relist, contender.judge) = (None, false, false);
            (contender.deleted, contender.lost, contender.granted_dead) = (false, false, false);
            (contender.create, contender.key) = (None, None);
            contender.phase = match contender.phase {
                Phase::Cancelled | Phase::Done => Phase::Done,
                _ => Phase::Idle,
            };
        }
    }

    pub(super) fn reap(&mut self, used: i32) {
        self.left.reaps -= 1;
        let messages = self.server.reap(used);
        self.post(messages);
    }
}
