//! The requests of a session that its servers may not know.
//!
//! A broken connection has many causes, and may carry many requests, so these rules decide for which kind it
//! counts.
//!
//! * A connection counts once, whatever it carried.
//! * It counts for the kind of its oldest unanswered request: a server answers in order, so the later ones
//!   were not reached.
//! * Until the servers answer a request of a kind, and again after a connection broke at that kind, its
//!   requests are sent one by one. The client sends what it could not write over the next connection, so of
//!   thirty requests each may break a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tracing::warn;

use super::epoch::Epoch;
use super::hang_ups::Suspect;
use super::settings::SessionSettings;
use crate::time::boot::BootInstant;
use crate::wire::Link;

/// The suspects in flight.
#[derive(Debug, Default)]
pub(super) struct SuspectRequests {
    sent: u64,
    /// By the order in which they were sent.
    in_flight: BTreeMap<u64, InFlight>,
    /// The broken connections of the requests up to this one are counted.
    counted: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    suspect: Suspect,
    sent: SeenLink,
}

/// The link, and the number of changes before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenLink {
    pub(super) id: u64,
    pub(super) link: Link,
}

impl SeenLink {
    /// The number of the connection that carries a request which is sent now. Those before it are broken.
    fn carrier(self) -> u64 {
        match self.link {
            Link::Up => self.id,
            // The client keeps the request for the next connection.
            Link::Down => self.id + 1,
            // The end of a session is the last change of its link. It breaks no connection: if one broke, the
            // link went down before.
            Link::Ended(_) => self.id.saturating_sub(1),
        }
    }
}

/// How a request ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The client reports a broken connection, or an answer that says nothing.
    Failed,
    /// No task waits for its answer any more.
    Dropped,
}

impl SuspectRequests {
    /// A request is sent. Returns its number.
    pub(super) fn sent(&mut self, suspect: Suspect, over: SeenLink) -> u64 {
        self.sent += 1;
        self.in_flight.insert(self.sent, InFlight { suspect, sent: over });
        self.sent
    }

    pub(super) fn is_in_flight(&self, suspect: Suspect) -> bool {
        self.in_flight.values().any(|of| of.suspect == suspect)
    }

    fn answered(&mut self, number: u64) {
        self.in_flight.remove(&number);
    }

    /// The request has no answer. Returns the kind that its connection counts for, if that connection broke
    /// and is not counted yet.
    fn unanswered(&mut self, number: u64, how: Unanswered, present: SeenLink) -> Option<Suspect> {
        let sent = self.in_flight.get(&number)?.sent;
        let broke = match how {
            // The connection that carried it may have come and gone unseen.
            Unanswered::Failed => sent.id < present.carrier(),
            Unanswered::Dropped => sent.carrier() < present.carrier(),
        };
        let counted = if broke { self.count(number, present) } else { None };
        self.in_flight.remove(&number);
        counted
    }

    /// The session ends. Returns the kind that a connection which broke before counts for.
    fn end(&mut self, present: SeenLink) -> Option<Suspect> {
        let is_broken = |of: &InFlight| of.sent.carrier() < present.carrier();
        let last = self.in_flight.iter().rfind(|(_, of)| is_broken(of)).map(|(number, _)| *number);
        let counted = last.and_then(|number| self.count(number, present));
        self.in_flight.clear();
        counted
    }

    fn count(&mut self, number: u64, present: SeenLink) -> Option<Suspect> {
        let to_count = self.in_flight.iter().filter(|(other, _)| **other > self.counted);
        let oldest = to_count.take_while(|(other, _)| **other <= number).next()?.1.suspect;
        let is_broken = |of: &InFlight| of.sent.carrier() < present.carrier();
        let last = self.in_flight.iter().rfind(|(_, of)| is_broken(of)).map_or(0, |(last, _)| *last);
        self.counted = last.max(number);
        Some(oldest)
    }
}

/// The suspects of a session in flight, and what their ends say about the servers.
pub(super) struct Suspects {
    epoch: Epoch,
    settings: Arc<SessionSettings>,
    requests: Mutex<SuspectRequests>,
    /// Notifies of the end of one of them.
    ended: Notify,
}

impl Suspects {
    pub(super) fn new(epoch: Epoch, settings: Arc<SessionSettings>) -> Self {
        Self { epoch, settings, requests: Mutex::default(), ended: Notify::new() }
    }

    /// Whether the servers close the connection on requests of this kind.
    pub(super) fn is_cause(&self, suspect: Suspect, now: BootInstant) -> bool {
        self.settings.hang_ups.lock().is_cause(suspect, now)
    }

    /// Whether the servers have answered a request of this kind.
    pub(super) fn is_known(&self, suspect: Suspect) -> bool {
        self.settings.hang_ups.lock().is_known(suspect)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SuspectRequests> {
        self.requests.lock()
    }

    /// Resolves at the end of the next request. Armed by this call.
    pub(super) fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    pub(super) fn answered(&self, number: u64, suspect: Suspect) {
        self.settings.hang_ups.lock().answered(suspect);
        self.requests.lock().answered(number);
    }

    /// The request has ended. If it has no answer, its connection may count, unless the session is over.
    pub(super) fn finished(&self, number: u64, how: Unanswered, present: Option<SeenLink>, now: BootInstant) {
        if let Some(present) = present {
            let counted = self.requests.lock().unanswered(number, how, present);
            self.broke_at(counted, now);
        }
        self.requests.lock().answered(number);
        self.ended.notify_waiters();
    }

    /// Called before the session drops its client: a server may have replaced the session in the instant of a
    /// reconnect, when no task has learned yet that its request failed.
    pub(super) fn end(&self, present: Option<SeenLink>, now: BootInstant) {
        let Some(present) = present else { return };
        let counted = self.requests.lock().end(present);
        self.broke_at(counted, now);
    }

    fn broke_at(&self, counted: Option<Suspect>, now: BootInstant) {
        let Some(suspect) = counted else { return };
        let verdict = self.settings.hang_ups.lock().broke(suspect, now);
        if let Some(holds_for) = verdict {
            warn!(
                request = %suspect, ?holds_for, epoch = self.epoch.0, purpose = %self.settings.purpose,
                "the servers close the connection on this request; it is not sent for a while"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LossReason;

    fn up(id: u64) -> SeenLink {
        SeenLink { id, link: Link::Up }
    }

    fn down(id: u64) -> SeenLink {
        SeenLink { id, link: Link::Down }
    }

    /// These requests are sent over a connection, which then breaks. Returns the kinds that it counts for.
    fn break_with(requests: &mut SuspectRequests, id: u64, suspects: &[Suspect]) -> Vec<Suspect> {
        let sent: Vec<u64> = suspects.iter().map(|suspect| requests.sent(*suspect, up(id))).collect();
        // All tasks learn of it, whatever the order in which they run, and whether the link is up again.
        let seen = [(Unanswered::Failed, down(id + 1)), (Unanswered::Dropped, up(id + 2))];
        let ends = sent.into_iter().rev().zip(seen.into_iter().cycle());
        ends.filter_map(|(number, (how, present))| requests.unanswered(number, how, present)).collect()
    }

    #[test]
    fn a_connection_counts_once_whatever_it_carried() {
        let mut requests = SuspectRequests::default();
        for id in [0, 2, 4] {
            assert_eq!(break_with(&mut requests, id, &[Suspect::Container; 30]), [Suspect::Container]);
        }
    }

    #[test]
    fn a_connection_counts_for_the_kind_of_its_oldest_unanswered_request() {
        let mut requests = SuspectRequests::default();
        for id in [0, 2, 4] {
            let answered = requests.sent(Suspect::PathWatch, up(id));
            requests.answered(answered);
            let suspects = [Suspect::OwnEphemerals, Suspect::Container];
            assert_eq!(break_with(&mut requests, id, &suspects), [Suspect::OwnEphemerals]);
        }
    }

    #[test]
    fn a_failure_that_is_learned_late_counts_its_own_connection_and_no_later_one() {
        let mut requests = SuspectRequests::default();
        let late = requests.sent(Suspect::Container, up(0));
        let next = requests.sent(Suspect::OwnEphemerals, up(2));
        assert_eq!(requests.unanswered(late, Unanswered::Failed, up(2)), Some(Suspect::Container));
        // The request of the present connection is still in flight, and counts when that one breaks.
        let counted = requests.unanswered(next, Unanswered::Failed, up(4));
        assert_eq!(counted, Some(Suspect::OwnEphemerals));
    }

    #[test]
    fn a_request_that_is_sent_without_a_connection_counts_for_the_next_one() {
        let mut requests = SuspectRequests::default();
        let broken = requests.sent(Suspect::Container, up(0));
        let kept = requests.sent(Suspect::PathWatch, down(1));
        assert_eq!(requests.unanswered(broken, Unanswered::Failed, down(1)), Some(Suspect::Container));
        assert_eq!(requests.unanswered(kept, Unanswered::Failed, down(3)), Some(Suspect::PathWatch));
        let dropped = requests.sent(Suspect::PathWatch, down(3));
        assert_eq!(requests.unanswered(dropped, Unanswered::Dropped, up(4)), None, "its connection lives");
    }

    /// The client has connected, lost the connection and connected again between two reads of its state.
    #[test]
    fn a_connection_that_no_task_has_seen_counts_by_the_failure_of_its_request() {
        let mut requests = SuspectRequests::default();
        let failed = requests.sent(Suspect::Container, down(1));
        assert_eq!(requests.unanswered(failed, Unanswered::Failed, up(2)), Some(Suspect::Container));
    }

    #[test]
    fn a_request_whose_connection_lives_counts_for_nothing() {
        let mut requests = SuspectRequests::default();
        for how in [Unanswered::Failed, Unanswered::Dropped] {
            let number = requests.sent(Suspect::Container, up(2));
            assert_eq!(requests.unanswered(number, how, up(2)), None);
        }
        assert!(requests.in_flight.is_empty());
    }

    #[test]
    fn the_end_of_a_session_counts_a_connection_that_broke_before_and_none_that_lived() {
        let ended = |id| SeenLink { id, link: Link::Ended(LossReason::SessionExpired) };
        for (present, counted) in [(ended(1), None), (up(0), None), (ended(2), Some(Suspect::Container))] {
            let mut requests = SuspectRequests::default();
            requests.sent(Suspect::Container, up(0));
            assert_eq!(requests.end(present), counted, "{present:?}");
        }
    }
}
