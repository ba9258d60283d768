//! Which request makes the servers close the connection.
//!
//! Some servers close the connection on a request that they do not know, without an answer. So a connection
//! that breaks again and again at one kind of request means that the servers do not know that kind. A broken
//! connection has many causes, and may carry many requests, so three rules decide.
//!
//! * A connection counts once, whatever it carried.
//! * It counts for the kind of its oldest unanswered request: a server answers in order, so the later ones
//!   were not reached.
//! * An answer to a request of that kind shows that the servers know it, and its count begins anew.

use std::collections::BTreeMap;

use futures::future::ready;

use super::Session;
use crate::wire::{Reply, WireError};

/// After this many broken connections in a row at one kind of request, the servers do not know that kind.
const HANG_UPS_MAX: u32 = 3;

/// A kind of request that some servers do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    /// The create of a container.
    Container,
    /// The list of the session's own ephemeral nodes.
    OwnEphemerals,
    /// A watch that stays until it is removed.
    PathWatch,
}

/// The suspects in flight, and the broken connections that are counted for each kind.
#[derive(Debug, Default)]
pub(super) struct HangUps {
    sent: u64,
    /// By the order in which they were sent.
    in_flight: BTreeMap<u64, InFlight>,
    /// The connections before this one are counted.
    counted: u64,
    counts: [u32; 3],
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    suspect: Suspect,
    connection: u64,
}

impl HangUps {
    /// A request is sent over this connection. Returns its number.
    pub(super) fn sent(&mut self, suspect: Suspect, connection: u64) -> u64 {
        self.sent += 1;
        self.in_flight.insert(self.sent, InFlight { suspect, connection });
        self.sent
    }

    /// The server has answered the request.
    pub(super) fn answered(&mut self, number: u64) {
        if let Some(InFlight { suspect, .. }) = self.in_flight.remove(&number) {
            *self.count_mut(suspect) = 0;
        }
    }

    /// The request failed without an answer, or no task waits for its answer any more. `connection` is the
    /// present one: if it is another one, that of the request has ended.
    pub(super) fn ended(&mut self, number: u64, connection: u64) {
        let counted = self.counted;
        let is_uncounted = |of: &InFlight| of.connection >= counted && of.connection < connection;
        if self.in_flight.get(&number).is_some_and(is_uncounted) {
            let oldest = self.in_flight.values().copied().find(is_uncounted);
            if let Some(InFlight { suspect, .. }) = oldest {
                *self.count_mut(suspect) += 1;
            }
            self.counted = connection;
        }
        self.in_flight.remove(&number);
    }

    /// Whether this kind of request is the cause of broken connections.
    pub(super) fn is_cause(&self, suspect: Suspect) -> bool {
        let [container, own_ephemerals, path_watch] = self.counts;
        let count = match suspect {
            Suspect::Container => container,
            Suspect::OwnEphemerals => own_ephemerals,
            Suspect::PathWatch => path_watch,
        };
        count >= HANG_UPS_MAX
    }

    fn count_mut(&mut self, suspect: Suspect) -> &mut u32 {
        let [container, own_ephemerals, path_watch] = &mut self.counts;
        match suspect {
            Suspect::Container => container,
            Suspect::OwnEphemerals => own_ephemerals,
            Suspect::PathWatch => path_watch,
        }
    }
}

impl Session {
    /// Sends a request that some servers do not know.
    pub(crate) fn send_suspect<T: Send + 'static>(
        &self,
        suspect: Suspect,
        send: impl FnOnce() -> Reply<T>,
    ) -> Reply<T> {
        let Some(connection) = self.connection() else { return Box::pin(ready(Err(self.over()))) };
        // Locked until it is sent: the numbers tell the order.
        let mut hang_ups = self.0.hang_ups.lock();
        let number = hang_ups.sent(suspect, connection);
        let reply = send();
        drop(hang_ups);
        let in_flight = SuspectInFlight { session: self.clone(), number };
        Box::pin(async move {
            let result = reply.await;
            if matches!(result, Ok(_) | Err(WireError::Refused(_))) {
                in_flight.session.0.hang_ups.lock().answered(number);
            }
            drop(in_flight);
            result
        })
    }

    /// Whether the servers close the connection on requests of this kind.
    pub(crate) fn hangs_up_on(&self, suspect: Suspect) -> bool {
        self.0.hang_ups.lock().is_cause(suspect)
    }
}

/// Reports the end of a request, also if no task waits for its answer.
struct SuspectInFlight {
    session: Session,
    number: u64,
}

impl Drop for SuspectInFlight {
    fn drop(&mut self) {
        let connection = self.session.connection().unwrap_or_default();
        self.session.0.hang_ups.lock().ended(self.number, connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These requests are sent over a connection, which then breaks. All tasks learn of it.
    fn break_with(hang_ups: &mut HangUps, connection: u64, suspects: &[Suspect]) {
        let sent: Vec<u64> = suspects.iter().map(|suspect| hang_ups.sent(*suspect, connection)).collect();
        // Whatever the order in which the tasks run.
        for number in sent.into_iter().rev() {
            hang_ups.ended(number, connection + 2);
        }
    }

    #[test]
    fn a_connection_counts_once_whatever_it_carried() {
        let mut hang_ups = HangUps::default();
        break_with(&mut hang_ups, 1, &[Suspect::Container; 30]);
        break_with(&mut hang_ups, 3, &[Suspect::Container; 30]);
        assert!(!hang_ups.is_cause(Suspect::Container));
        break_with(&mut hang_ups, 5, &[Suspect::Container]);
        assert!(hang_ups.is_cause(Suspect::Container));
    }

    #[test]
    fn a_connection_counts_for_the_kind_of_its_oldest_unanswered_request() {
        let mut hang_ups = HangUps::default();
        for connection in [1, 3, 5] {
            let answered = hang_ups.sent(Suspect::PathWatch, connection);
            hang_ups.answered(answered);
            break_with(&mut hang_ups, connection, &[Suspect::OwnEphemerals, Suspect::Container]);
        }
        assert!(hang_ups.is_cause(Suspect::OwnEphemerals));
        assert!(!hang_ups.is_cause(Suspect::Container) && !hang_ups.is_cause(Suspect::PathWatch));
    }

    #[test]
    fn an_answer_begins_the_count_of_its_kind_anew_and_of_no_other() {
        let mut hang_ups = HangUps::default();
        for connection in [1, 3] {
            break_with(&mut hang_ups, connection, &[Suspect::Container]);
        }
        for connection in [5, 7] {
            break_with(&mut hang_ups, connection, &[Suspect::PathWatch]);
        }
        let answered = hang_ups.sent(Suspect::Container, 9);
        hang_ups.answered(answered);
        break_with(&mut hang_ups, 9, &[Suspect::PathWatch]);
        assert!(hang_ups.is_cause(Suspect::PathWatch));
        for connection in [11, 13] {
            break_with(&mut hang_ups, connection, &[Suspect::Container]);
        }
        assert!(!hang_ups.is_cause(Suspect::Container));
    }

    #[test]
    fn a_failure_that_is_learned_late_counts_its_own_connection_and_no_later_one() {
        let mut hang_ups = HangUps::default();
        let late = hang_ups.sent(Suspect::Container, 1);
        let next = hang_ups.sent(Suspect::OwnEphemerals, 3);
        hang_ups.ended(late, 3);
        // The request of the present connection is still in flight, and counts when that one breaks.
        hang_ups.ended(next, 5);
        assert_eq!(hang_ups.counts, [1, 1, 0]);
        assert!(hang_ups.in_flight.is_empty());
    }

    #[test]
    fn a_request_whose_connection_lives_counts_for_nothing_when_nobody_waits_for_it() {
        let mut hang_ups = HangUps::default();
        for _ in 0..10 {
            let dropped = hang_ups.sent(Suspect::Container, 1);
            hang_ups.ended(dropped, 1);
        }
        assert_eq!(hang_ups.counts, [0, 0, 0]);
        assert!(hang_ups.in_flight.is_empty());
    }
}
