//! The requests of a session that its servers may not know.
//!
//! A broken connection has many causes, and may carry many requests, so these rules decide for which kind it
//! counts.
//!
//! * A connection counts once, whatever it carried.
//! * It counts for the kind of its oldest unanswered request: a server answers in order, so the later ones
//!   were not reached.
//! * After a broken connection, requests of that kind are sent one by one until one of them is answered. The
//!   client keeps what it could not write, and sends it over the next connection: of many requests, some would
//!   break another connection, and one more.

use std::collections::BTreeMap;

use futures::future::ready;
use tracing::warn;

use super::Session;
use super::hang_ups::Suspect;
use crate::wire::{Link, Reply, WireError};

/// The suspects in flight.
#[derive(Debug, Default)]
pub(super) struct SuspectRequests {
    sent: u64,
    /// By the order in which they were sent.
    in_flight: BTreeMap<u64, InFlight>,
    /// The connections before this one are counted.
    counted: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    suspect: Suspect,
    /// The first connection that may carry it.
    connection: u64,
}

impl SuspectRequests {
    /// The kind of request at which a connection before this one broke, if that connection is not counted yet.
    fn broken_before(&mut self, connection: u64) -> Option<Suspect> {
        if connection <= self.counted {
            return None;
        }
        let oldest = self.in_flight.values().find(|of| of.connection < connection)?;
        self.counted = connection;
        Some(oldest.suspect)
    }

    /// A request is sent over this connection. Returns its number.
    fn sent(&mut self, suspect: Suspect, connection: u64) -> u64 {
        self.sent += 1;
        self.in_flight.insert(self.sent, InFlight { suspect, connection });
        self.sent
    }

    fn is_in_flight(&self, suspect: Suspect) -> bool {
        self.in_flight.values().any(|of| of.suspect == suspect)
    }

    /// The server has answered the request, it failed, or no task waits for its answer any more.
    fn ended(&mut self, number: u64) {
        self.in_flight.remove(&number);
    }

    fn clear(&mut self) {
        self.in_flight.clear();
    }
}

impl Session {
    /// Sends a request that some servers do not know.
    ///
    /// Fails without sending it while another request of its kind is in flight, if the last connection that
    /// carried one broke.
    pub(crate) fn send_suspect<T: Send + 'static>(
        &self,
        suspect: Suspect,
        send: impl FnOnce() -> Reply<T>,
    ) -> Reply<T> {
        self.count_broken_connection();
        // Locked until it is sent: the numbers tell the order.
        let mut requests = self.0.suspect_requests.lock();
        let Some(connection) = self.carrier() else { return Box::pin(ready(Err(self.over()))) };
        if requests.is_in_flight(suspect) && self.settings().hang_ups.lock().may_be_cause(suspect) {
            let error = format!("the last connection broke at {suspect}, and another one is in flight");
            return Box::pin(ready(Err(WireError::Broken(error))));
        }
        let number = requests.sent(suspect, connection);
        let reply = send();
        drop(requests);
        let in_flight = SuspectInFlight { session: self.clone(), number };
        Box::pin(async move {
            let result = reply.await;
            if matches!(result, Ok(_) | Err(WireError::Refused(_))) {
                in_flight.answered(suspect);
            }
            drop(in_flight);
            result
        })
    }

    /// Whether the servers close the connection on requests of this kind.
    pub(crate) fn hangs_up_on(&self, suspect: Suspect) -> bool {
        self.settings().hang_ups.lock().is_cause(suspect, self.now())
    }

    /// Called before the session drops its client: a server may have replaced the session in the instant of a
    /// reconnect, when no task has learned yet that its request failed.
    pub(super) fn end_suspect_requests(&self) {
        self.count_broken_connection();
        self.0.suspect_requests.lock().clear();
    }

    fn count_broken_connection(&self) {
        let mut requests = self.0.suspect_requests.lock();
        let Some(connection) = self.carrier() else { return };
        let Some(suspect) = requests.broken_before(connection) else { return };
        let verdict = self.settings().hang_ups.lock().broke(suspect, self.now());
        drop(requests);
        if let Some(holds_for) = verdict {
            warn!(
                request = %suspect, ?holds_for, epoch = self.0.epoch.0, purpose = %self.settings().purpose,
                "the servers close the connection on this request; it is not sent for a while"
            );
        }
    }

    /// The number of the connection that carries a request which is sent now. Of the connections before it,
    /// each is broken.
    fn carrier(&self) -> Option<u64> {
        let wire = self.wire().ok()?;
        loop {
            let connection = wire.connection_id();
            let link = wire.link();
            if wire.connection_id() == connection {
                return Some(carrier(link, connection));
            }
        }
    }
}

fn carrier(link: Link, connection: u64) -> u64 {
    match link {
        Link::Up => connection,
        // The client keeps the request for the next connection.
        Link::Down => connection + 1,
        // The end of a session is the last change of its link. It breaks no connection: if one broke, the link
        // went down before.
        Link::Ended(_) => connection.saturating_sub(1),
    }
}

/// Reports the end of a request, also if no task waits for its answer.
struct SuspectInFlight {
    session: Session,
    number: u64,
}

impl SuspectInFlight {
    fn answered(&self, suspect: Suspect) {
        let inner = &self.session.0;
        inner.suspect_requests.lock().ended(self.number);
        inner.settings.hang_ups.lock().answered(suspect);
    }
}

impl Drop for SuspectInFlight {
    fn drop(&mut self) {
        self.session.count_broken_connection();
        self.session.0.suspect_requests.lock().ended(self.number);
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_testserver::{Fault, Op, TestServer, When};

    use super::*;
    use crate::error::LossReason;
    use crate::manager::ConnectionManager;
    use crate::time::deadline::Deadline;

    /// These requests are sent over a connection, which then breaks. Returns the kinds that it counts for.
    fn break_with(requests: &mut SuspectRequests, connection: u64, suspects: &[Suspect]) -> Vec<Suspect> {
        let sent: Vec<u64> = suspects.iter().map(|suspect| requests.sent(*suspect, connection)).collect();
        // All tasks learn of it, whatever the order in which they run, and whether the link is up again.
        let mut counted = Vec::new();
        for (number, link) in sent.into_iter().rev().zip([Link::Down, Link::Up].into_iter().cycle()) {
            let present = if link == Link::Up { connection + 2 } else { connection + 1 };
            counted.extend(requests.broken_before(carrier(link, present)));
            requests.ended(number);
        }
        assert!(requests.in_flight.is_empty());
        counted
    }

    #[test]
    fn a_connection_counts_once_whatever_it_carried() {
        let mut requests = SuspectRequests::default();
        for connection in [0, 2, 4] {
            let counted = break_with(&mut requests, connection, &[Suspect::Container; 30]);
            assert_eq!(counted, [Suspect::Container]);
        }
    }

    #[test]
    fn a_connection_counts_for_the_kind_of_its_oldest_unanswered_request() {
        let mut requests = SuspectRequests::default();
        for connection in [0, 2, 4] {
            let answered = requests.sent(Suspect::PathWatch, connection);
            requests.ended(answered);
            let suspects = [Suspect::OwnEphemerals, Suspect::Container];
            assert_eq!(break_with(&mut requests, connection, &suspects), [Suspect::OwnEphemerals]);
        }
    }

    #[test]
    fn a_failure_that_is_learned_late_counts_its_own_connection_and_no_later_one() {
        let mut requests = SuspectRequests::default();
        let late = requests.sent(Suspect::Container, 0);
        let next = requests.sent(Suspect::OwnEphemerals, 2);
        assert_eq!(requests.broken_before(2), Some(Suspect::Container));
        requests.ended(late);
        // The request of the present connection is still in flight, and counts when that one breaks.
        assert_eq!(requests.broken_before(2), None);
        assert_eq!(requests.broken_before(4), Some(Suspect::OwnEphemerals));
        requests.ended(next);
    }

    #[test]
    fn a_request_that_the_client_sends_over_the_next_connection_counts_when_that_one_breaks() {
        let mut requests = SuspectRequests::default();
        let (failed, kept) = (requests.sent(Suspect::Container, 0), requests.sent(Suspect::Container, 0));
        assert_eq!(requests.broken_before(carrier(Link::Down, 1)), Some(Suspect::Container));
        requests.ended(failed);
        assert_eq!(requests.broken_before(carrier(Link::Up, 2)), None);
        assert_eq!(requests.broken_before(carrier(Link::Down, 3)), Some(Suspect::Container));
        requests.ended(kept);
    }

    #[test]
    fn a_request_that_is_sent_without_a_connection_counts_for_the_next_one() {
        let mut requests = SuspectRequests::default();
        requests.sent(Suspect::PathWatch, carrier(Link::Down, 1));
        assert_eq!(requests.broken_before(carrier(Link::Down, 1)), None);
        assert_eq!(requests.broken_before(carrier(Link::Up, 2)), None);
        assert_eq!(requests.broken_before(carrier(Link::Down, 3)), Some(Suspect::PathWatch));
    }

    #[test]
    fn a_request_whose_connection_lives_counts_for_nothing_when_no_task_waits_for_it() {
        let mut requests = SuspectRequests::default();
        for _ in 0..10 {
            let dropped = requests.sent(Suspect::Container, 0);
            assert_eq!(requests.broken_before(carrier(Link::Up, 0)), None);
            requests.ended(dropped);
        }
    }

    #[test]
    fn the_end_of_a_session_counts_a_connection_that_broke_before_and_none_that_lived() {
        let end = Link::Ended(LossReason::SessionExpired);
        let mut requests = SuspectRequests::default();
        requests.sent(Suspect::Container, 0);
        assert_eq!(requests.broken_before(carrier(end, 1)), None, "the session ended on a connection");
        assert_eq!(
            requests.broken_before(carrier(end, 2)),
            Some(Suspect::Container),
            "the link went down before"
        );
    }
    /// Ends a session with an unanswered request, which no task polls. Returns whether the next session of the
    /// manager counts the connection.
    async fn counts_at_the_end(reason: LossReason, breaks: bool) -> bool {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let session = manager.session(Deadline::never(), "/node").await.unwrap();
        let unanswered = server.fault(When::op(Op::GetEphemerals), Fault::DropReply);
        let list = || session.read(|wire| wire.own_ephemerals("/node"));
        let reply = session.send_suspect(Suspect::OwnEphemerals, list);
        unanswered.hit().await;
        if breaks {
            let before = session.connection();
            server.drop_connections();
            session.reconnected(before).await;
        }
        session.end(reason);
        drop(reply);
        let next = manager.session(Deadline::never(), "/node").await.unwrap();
        assert!(!next.is_same_as(&session));
        next.settings().hang_ups.lock().may_be_cause(Suspect::OwnEphemerals)
    }

    #[tokio::test]
    async fn a_session_that_is_replaced_counts_its_broken_connection_for_the_next_session() {
        assert!(counts_at_the_end(LossReason::SessionReplaced, true).await);
    }

    #[tokio::test]
    async fn a_session_that_ends_on_a_connection_that_lives_counts_nothing() {
        for reason in [LossReason::SessionReplaced, LossReason::LeaseRanOut, LossReason::SessionExpired] {
            assert!(!counts_at_the_end(reason, false).await, "{reason:?}");
        }
    }

    #[tokio::test]
    async fn after_a_broken_connection_requests_of_its_kind_are_sent_one_by_one_until_an_answer() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let session = manager.session(Deadline::never(), "/node").await.unwrap();
        let list = || {
            let list = || session.read(|wire| wire.own_ephemerals("/node"));
            session.send_suspect(Suspect::OwnEphemerals, list)
        };
        let (first, second) = (list(), list());
        assert!(first.await.is_ok() && second.await.is_ok());
        session.settings().hang_ups.lock().broke(Suspect::OwnEphemerals, session.now());
        let (first, second) = (list(), list());
        assert!(matches!(second.await, Err(WireError::Broken(_))));
        assert!(first.await.is_ok());
        let (first, second) = (list(), list());
        assert!(first.await.is_ok() && second.await.is_ok());
    }

    #[tokio::test]
    async fn an_answer_ends_a_verdict_on_containers_and_no_refusal_of_the_servers() {
        let server = TestServer::start().await.unwrap();
        let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
        let session = manager.session(Deadline::never(), "/node").await.unwrap();
        for _ in 0..3 {
            session.settings().hang_ups.lock().broke(Suspect::Container, session.now());
        }
        assert!(!session.has_containers());
        session.settings().hang_ups.lock().answered(Suspect::Container);
        assert!(session.has_containers());
        session.without_containers();
        session.settings().hang_ups.lock().answered(Suspect::Container);
        assert!(!session.has_containers());
    }
}
