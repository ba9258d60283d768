//! Orders that are not explored, because those that are explored show the same.

use super::scenario::{Faults, Scenario};
use super::server::{Message, Receiver};
use super::world::{Phase, World};

impl World {
    /// Of two contenders that nothing distinguishes, the first one starts first.
    pub(super) fn may_start(&self, scenario: &Scenario, number: usize) -> bool {
        let has_begun = |twin: usize| self.contenders[twin].attempt > scenario.warm_attempts(twin);
        scenario.twin_before(number).is_none_or(has_begun)
    }

    /// Takes the steps that no other step can tell from later ones.
    pub(super) fn settle(&mut self, scenario: &Scenario) {
        while let Some((session, place)) = self.message_to_settle() {
            let inbox = &mut self.sessions[session].inbox;
            match inbox[place] {
                // The task that awaits the reply does not touch the queue.
                Message::Deleted { name, failed: None } => {
                    inbox.remove(place);
                    self.sessions[session].deletes.remove(&name);
                }
                _ => self.deliver(scenario, session, place),
            }
        }
        for number in 0..self.contenders.len() {
            let contender = &self.contenders[number];
            if self.is_foreign(contender.session) && matches!(contender.phase, Phase::Ready(_)) {
                self.take(number);
            }
        }
    }

    fn message_to_settle(&self) -> Option<(usize, usize)> {
        self.sessions.iter().enumerate().find_map(|(number, session)| {
            let mut inbox = session.inbox.iter();
            Some((number, inbox.position(|message| self.may_settle(number, message))?))
        })
    }

    /// * A foreign client takes each message at once: that it is slow shows in when its next request is
    ///   processed, and when it releases.
    /// * If a break loses the reply to a delete that is done, that delete is only repeated.
    /// * Without further faults, a contender that is alone in its session does nothing before it has its
    ///   message, and no other client sees when it takes it.
    fn may_settle(&self, session: usize, message: &Message) -> bool {
        if self.is_foreign(session) || matches!(message, Message::Deleted { failed: None, .. }) {
            return true;
        }
        let Receiver::Contender(number) = message.receiver() else { return false };
        let is_alone = self.contenders.iter().filter(|contender| contender.session == session).count() == 1;
        let contender = &self.contenders[number];
        let waits = matches!(
            contender.phase,
            Phase::Creating | Phase::Listing | Phase::Finding | Phase::Watching(_) | Phase::Watched(_)
        );
        is_alone && waits && !contender.deleted && !contender.lost && self.left == Faults::default()
    }

    fn is_foreign(&self, session: usize) -> bool {
        self.sessions[session].queue.is_none()
    }
}
