//! The head of a queue, followed from outside.

#[cfg(test)]
mod exploration_test;

use tracing::debug;

use super::{ContenderInfo, Role};
use crate::error::{Error, Operation, Refusal};
use crate::queue::LockQueue;
use crate::session::{Observation, Session, Stop};
use crate::time::deadline::Deadline;
use crate::wire::{WatchEvent, WireError};
use crate::znode::name::NodeName;
use crate::znode::zxid::Zxid;

/// The first contender of a list.
#[derive(Debug, PartialEq, Eq)]
enum First {
    Nobody,
    Node(NodeName),
    /// Sequence numbers give no order.
    Unordered,
}

/// What an observer has reported.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone, PartialEq, Eq, Hash))]
struct Reported {
    has_begun: bool,
    /// The creation zxid of the head, unless its end was reported since.
    head: Option<Zxid>,
    /// The greatest creation zxid of all heads.
    newest: Zxid,
}

/// What to report: first that there is no head, then the new head.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    none: bool,
    head: bool,
    /// The list showed an earlier head, so the server is behind.
    is_stale: bool,
}

impl Reported {
    /// Records the head of a list, by its creation zxid.
    fn update(&mut self, listed: Option<Zxid>) -> Report {
        let is_stale = listed.is_some_and(|czxid| czxid < self.newest);
        let head = listed.filter(|_| !is_stale);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_change = head != self.head;
        let none = (is_change && self.head.is_some()) || (is_first && head.is_none());
        self.head = head;
        self.newest = self.newest.max(head.unwrap_or_default());
        Report { none, head: is_change && head.is_some(), is_stale }
    }
}

/// Where the next read of the queue starts from.
enum Next {
    /// List again.
    List,
    /// Pause, then list again.
    Pause,
}

impl LockQueue {
    /// Calls `report` with the first contender of this queue, now and after each change, until there is an
    /// error. For a queue in which every contender waits for all contenders ahead.
    ///
    /// `None` is reported first if the queue is empty, and between two different heads in any case. The
    /// creation zxids of the reported heads grow: an observer that reaches a server that is behind reports
    /// `None`, and not an earlier head. So a queue of an ensemble that was restored from a backup needs
    /// another observer. While there is no connection, and until the next session has listed the queue,
    /// nothing is reported.
    ///
    /// The first contender is the head as the servers know it. Its client may not know yet that it is the
    /// head, and it may have lost its hold shortly before the servers delete its node.
    ///
    /// Costs a list and a read with a watch for each head. While the queue is empty, one watch on the list of
    /// its directory, or on that of the nearest parent that exists. Needs only the right to read.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] after a shutdown, [`Error::Refused`] without the right to read, and
    /// [`Error::Config`] without a tokio runtime.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// use lockkeeper_core::{Deadline, Label, LockQueue, Rule};
    ///
    /// let queue = LockQueue::new(&manager, "/gate", Label::LOCK, Rule::MUTEX)?;
    /// let held = queue.acquire(Deadline::never()).await?;
    /// let (seen, mut heads) = tokio::sync::mpsc::unbounded_channel();
    /// let observing = queue.observe_head(|head| _ = seen.send(head));
    /// tokio::select! {
    ///     biased;
    ///     error = observing => return Err(error.into()),
    ///     head = heads.recv() => assert_eq!(head.flatten().unwrap().path(), held.path()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn observe_head(&self, mut report: impl FnMut(Option<ContenderInfo>)) -> Error {
        let mut reported = Reported::default();
        let mut tell = |head: Option<ContenderInfo>| {
            let update = reported.update(head.as_ref().map(ContenderInfo::czxid));
            if update.none {
                report(None);
            }
            if update.head {
                report(head);
            }
            if update.is_stale { Next::Pause } else { Next::List }
        };
        loop {
            let session =
                match self.manager().session(Deadline::never(), self.full_directory().as_str()).await {
                    Ok(session) => session,
                    Err(error) => return error,
                };
            if let Err(error) = self.observe_in(&session, &mut tell).await.or_next_session() {
                return error;
            }
        }
    }

    /// Observes as long as this session exists.
    async fn observe_in(
        &self,
        session: &Session,
        tell: &mut impl FnMut(Option<ContenderInfo>) -> Next,
    ) -> Stop {
        loop {
            let step = tokio::select! {
                biased;
                reason = session.ended() => return reason.into(),
                step = self.observe_once(session, tell) => step,
            };
            let failed = match step {
                Ok(Next::List) => continue,
                Ok(Next::Pause) => {
                    session.backoff(Deadline::never()).await;
                    continue;
                }
                Err(error) => error,
            };
            let directory = self.full_directory().as_str();
            let retry = session.retry_after(&failed, Operation::Read, directory, Deadline::never());
            if let Err(stop) = retry.await {
                return stop;
            }
        }
    }

    /// Lists the queue, reports its head, and waits until it may have changed.
    async fn observe_once(
        &self,
        session: &Session,
        tell: &mut impl FnMut(Option<ContenderInfo>) -> Next,
    ) -> Result<Next, WireError> {
        let connection = session.ensure_synced(Deadline::never()).await?;
        let directory = self.full_directory();
        let mut list = session.read(|wire| wire.children(directory.as_str()));
        let first = match session.await_reply(&mut list, Deadline::never()).await {
            Ok(names) => self.first_of(&names),
            Err(WireError::Refused(Refusal::NoNode)) => First::Nobody,
            Err(error) => return Err(error),
        };
        // A list of another connection may be behind what this session has seen.
        if session.connection() != Some(connection) {
            return Ok(Next::List);
        }
        let path = match first {
            First::Node(name) => Some(directory.listed_child(name.as_str())),
            First::Unordered => match self.first_created().await {
                Some(path) => Some(path),
                // The list after a pause shows whether the queue is empty.
                None => return Ok(Next::Pause),
            },
            First::Nobody => {
                tell(None);
                None
            }
        };
        match path {
            Some(path) => self.observe_node(session, connection, &path, tell).await,
            None => {
                let has_entered = |names: &[String]| self.first_of(names) != First::Nobody;
                session.until_child(connection, directory, has_entered).await?;
                Ok(Next::List)
            }
        }
    }

    /// The first contender by the names.
    fn first_of(&self, names: &[String]) -> First {
        let kind = self.label().kind();
        first(names.iter().filter_map(|name| self.parse(name)).filter(|name| name.kind() == kind))
    }

    /// The path of the first contender by creation. `None` if there is none, or the queue cannot be read now.
    async fn first_created(&self) -> Option<String> {
        match self.inspect().await {
            Ok(all) => {
                let head = all.iter().find(|of| of.role() == Role::Holder);
                head.map(|of| self.full_directory().listed_child(of.name()))
            }
            Err(error) => {
                debug!(path = self.full_directory().as_str(), %error, "reading the queue again");
                None
            }
        }
    }

    async fn observe_node(
        &self,
        session: &Session,
        connection: u64,
        path: &str,
        tell: &mut impl FnMut(Option<ContenderInfo>) -> Next,
    ) -> Result<Next, WireError> {
        let mut reply = session.observe_data(path, session.watch_budget().reserve_spare(path));
        let (data, stat, watch) = match session.await_reply(&mut reply, Deadline::never()).await {
            Ok(node) => node,
            Err(WireError::Refused(Refusal::NoNode)) => return Ok(Next::List),
            Err(error) => return Err(error),
        };
        let head = ContenderInfo::head(self.manager(), session, path, data, stat, self.label().kind());
        match tell(Some(head)) {
            Next::Pause => Ok(Next::Pause),
            Next::List => {
                let mut observation = Observation::new(session, Some(connection), [watch]).seldom();
                if observation.changed().await == Some(WatchEvent::Deleted) {
                    tell(None);
                }
                Ok(Next::List)
            }
        }
    }
}

/// The contender with the lowest sequence number.
fn first(contenders: impl Iterator<Item = NodeName>) -> First {
    let mut contenders: Vec<NodeName> = contenders.collect();
    contenders.sort_by_key(NodeName::sequence);
    let is_ordered = contenders.iter().all(NodeName::has_ordered_sequence)
        && contenders.is_sorted_by(|one, next| one.sequence() < next.sequence());
    match contenders.into_iter().next() {
        None => First::Nobody,
        Some(first) if is_ordered => First::Node(first),
        Some(_) => First::Unordered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> NodeName {
        NodeName::parse(name).unwrap()
    }

    #[test]
    fn the_lowest_number_is_first_where_numbers_give_the_order() {
        let node = |name: &str| First::Node(named(name));
        for (names, expected) in [
            (&[][..], First::Nobody),
            (&["b-latch-0000000004"], node("b-latch-0000000004")),
            (&["b-latch-0000000004", "z-latch-0000000002"], node("z-latch-0000000002")),
            (&["b-latch-0000000004", "a-latch-0000000004"], First::Unordered),
            (&["b-latch-2147483647", "a-latch-0000000004"], First::Unordered),
            (&["b-latch--000000004", "a-latch-0000000004"], First::Unordered),
        ] {
            assert_eq!(first(names.iter().map(|name| named(name))), expected, "{names:?}");
        }
    }

    #[test]
    fn the_end_of_a_head_is_reported_before_the_next_and_no_earlier_head_ever_again() {
        let report = |none, head, is_stale| Report { none, head, is_stale };
        let mut reported = Reported::default();
        for (listed, expected) in [
            (Some(4), report(false, true, false)),
            (Some(4), report(false, false, false)),
            (Some(9), report(true, true, false)),
            (Some(4), report(true, false, true)),
            (Some(4), report(false, false, true)),
            (Some(9), report(false, true, false)),
            (None, report(true, false, false)),
            (None, report(false, false, false)),
            (Some(12), report(false, true, false)),
        ] {
            assert_eq!(reported.update(listed.map(Zxid::new)), expected, "{listed:?}");
        }
        assert_eq!(Reported::default().update(None), report(true, false, false));
    }
}
