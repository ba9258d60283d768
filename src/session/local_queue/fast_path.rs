//! From the sending of a create to who is in front of its node, and from a head's leaving to who comes next.

use std::pin::pin;
use std::sync::Arc;

use futures::future::select;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::directory_watch::DirectoryWatch;
use super::{LocalQueue, ReleasedHead, SequenceKey};
use crate::queue::Kind;
use crate::session::{HandOffPayload, OwnedNode, Session};
use crate::time::deadline::Deadline;

/// So often in a row our numbers have to follow each other before the next one is taken to.
const CONSECUTIVE_CREATES_MIN: u8 = 2;

/// What a create is likely to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastPath {
    /// Only the line tells.
    Unknown,
    /// Somebody in front, as the last time; only the line tells who.
    Contended,
    /// One of ours in front: its number alone will tell.
    BehindOwn,
    /// Nobody, and the number after this one of ours, which has left.
    AfterOwn(i32),
}

impl FastPath {
    /// Whether the line need not be read.
    pub(crate) fn skips_list(self) -> bool {
        matches!(self, Self::BehindOwn | Self::AfterOwn(_))
    }

    /// Whether the turn may come at once.
    pub(crate) fn may_grant_at_once(self) -> bool {
        matches!(self, Self::Unknown | Self::AfterOwn(_))
    }
}

/// A create of ours in a line, from the moment it is sent.
pub(crate) struct CreateInFlight {
    queue: Arc<Mutex<LocalQueue>>,
    /// When it was sent, in the order of what this session sends there.
    sent: u64,
    connection: u64,
    pub(crate) fast_path: FastPath,
}

impl Drop for CreateInFlight {
    fn drop(&mut self) {
        let mut queue = self.queue.lock();
        queue.pending_creates.remove(&self.sent);
        queue.sequence_known(self.sent);
    }
}

impl CreateInFlight {
    /// Its node, if one was made, stands where its number says.
    pub(crate) fn mark_created(&self) {
        self.queue.lock().sequence_known(self.sent);
    }

    /// What a list said.
    pub(crate) fn record_list(&self, somebody_in_front: bool) {
        self.queue.lock().last_list_contended = somebody_in_front;
    }
}

/// A head of ours that is about to be deleted by a transaction.
pub(crate) struct ReleaseInFlight {
    queue: Arc<Mutex<LocalQueue>>,
    released: ReleasedHead,
}

impl ReleaseInFlight {
    /// The transaction was committed; the next one is told `payload`.
    pub(crate) fn done(self, payload: Option<HandOffPayload>) {
        self.queue.lock().add_released(ReleasedHead { payload, ..self.released });
    }
}

/// Who is in front of a node of ours.
pub(crate) enum Predecessor {
    /// Nobody.
    Nobody {
        /// What the last one had to tell.
        payload: Option<HandOffPayload>,
        /// Nor was there anybody when the create was sent.
        at_first: bool,
    },
    /// This one, and who is in front of it.
    Own(Arc<OwnedNode>),
    /// The line tells.
    Unknown,
}

impl LocalQueue {
    /// Who is in front of the node with this number.
    fn predecessor_now(&mut self, sequence: i32, kind: Kind, connection: u64) -> Predecessor {
        let Some(node) = sequence.checked_sub(1).and_then(|before| self.nodes.get(&before).cloned()) else {
            return Predecessor::Unknown;
        };
        let is_reader = node.sequence_key().is_some_and(|sequence_key| sequence_key.kind == Kind::Read);
        match kind {
            // Readers do not wait for readers: what is in front of that one is in front of this one.
            Kind::Read if is_reader && !self.is_same_directory(connection) => Predecessor::Unknown,
            // If a transaction deletes that reader, the watch may be set on a directory made since.
            Kind::Read if is_reader && node.is_leaving() => Predecessor::Unknown,
            Kind::Read if is_reader && node.has_no_predecessor() => {
                Predecessor::Nobody { payload: None, at_first: false }
            }
            Kind::Read if is_reader => self
                .nodes
                .get(&node.predecessor_sequence())
                .cloned()
                .map_or(Predecessor::Unknown, Predecessor::Own),
            _ => Predecessor::Own(node),
        }
    }

    /// What a create sent now is likely to meet.
    fn fast_path(&mut self, kind: Kind, connection: u64) -> FastPath {
        let Some((last_sequence, _)) = self.last_sequence.filter(|(_, created_on)| *created_on == connection)
        else {
            // Of many that come at once, the first one reads the line, and not everyone the whole of it.
            let is_first = self.pending_creates.is_empty();
            return if is_first { FastPath::Unknown } else { FastPath::BehindOwn };
        };
        // So it is behind a first one that stands already.
        if !self.foreign_interleaved && !self.pending_creates.is_empty() && last_sequence >= 0 {
            return FastPath::BehindOwn;
        }
        if self.consecutive_creates < CONSECUTIVE_CREATES_MIN || last_sequence < 0 {
            return if self.last_list_contended { FastPath::Contended } else { FastPath::Unknown };
        }
        if !self.pending_creates.is_empty() || self.nodes.contains_key(&last_sequence) {
            return FastPath::BehindOwn;
        }
        // Where the last one was, others may stand whom a writer waits for.
        if kind == Kind::Write {
            return FastPath::Unknown;
        }
        let directory_unchanged = self
            .released_at(last_sequence, connection)
            .is_some_and(|released| self.directory_unchanged(released));
        match directory_unchanged && self.is_same_directory(connection) {
            true => FastPath::AfterOwn(last_sequence),
            false => FastPath::Unknown,
        }
    }

    /// For the one that was `sent` then: tells when a node of ours stands with the number before its own, or none will that
    /// was asked for earlier.
    fn wait_for_sequence_before(
        &mut self,
        sequence: i32,
        sent: u64,
        connection: u64,
    ) -> Option<oneshot::Receiver<()>> {
        let is_earlier = self.unsequenced.first().is_some_and(|oldest| *oldest < sent);
        let before = sequence.checked_sub(1).filter(|_| is_earlier)?;
        if self.follows(sequence, connection) {
            return None;
        }
        let (announce, known) = oneshot::channel();
        self.sequence_waiters.insert(before, (sent, announce));
        Some(known)
    }

    /// The create that was `sent` then got its number, or will not get one.
    fn sequence_known(&mut self, sent: u64) {
        self.unsequenced.remove(&sent);
        let oldest = self.unsequenced.first().copied().unwrap_or(u64::MAX);
        // What was sent later got the greater number: who waits for nobody any more is in front.
        while let Some(first) = self.sequence_waiters.first_entry()
            && first.get().0 < oldest
        {
            let _ = first.remove().1.send(());
        }
    }
}

impl Session {
    /// Sends a create in a line in single file, by `send`. Without a connection there is nothing to go by.
    pub(crate) fn send_create<T>(
        &self,
        directory: &str,
        kind: Kind,
        connection: Option<u64>,
        send: impl FnOnce() -> T,
    ) -> (T, Option<CreateInFlight>) {
        let Some(connection) = connection else {
            return (send(), None);
        };
        let queue = self.local_queue_or_new(directory);
        let mut locked = queue.lock();
        let fast_path = locked.fast_path(kind, connection);
        let sent = locked.next_sent();
        locked.pending_creates.insert(sent);
        locked.unsequenced.insert(sent);
        // Under the lock: what is sent later gets a greater number.
        let sent_create = send();
        drop(locked);
        (sent_create, Some(CreateInFlight { queue, sent, connection, fast_path }))
    }

    /// Sends the delete of the node at `sequence_key`, which is the head of its line, by `send`.
    pub(crate) fn release_head<T>(&self, sequence_key: &SequenceKey, send: impl FnOnce() -> T) -> T {
        let (Some(connection), Some(queue)) = (self.connection(), self.local_queue(&sequence_key.directory))
        else {
            return send();
        };
        let mut queue = queue.lock();
        let released = queue.new_release(sequence_key, connection);
        queue.add_released(released);
        // Under the lock: what is sent later gets a greater number.
        send()
    }

    /// The head at `sequence_key` is about to be deleted by a transaction, of which it will be told whether it is committed.
    pub(crate) fn begin_release_head(&self, sequence_key: &SequenceKey) -> Option<ReleaseInFlight> {
        let queue = self.local_queue(&sequence_key.directory)?;
        let released = queue.lock().new_release(sequence_key, self.connection()?);
        Some(ReleaseInFlight { queue, released })
    }

    /// Who is in front of a node that got this number. Notes how good numbers are at telling.
    pub(crate) async fn predecessor(
        &self,
        create_in_flight: CreateInFlight,
        sequence_key: &SequenceKey,
        deadline: Deadline,
    ) -> Predecessor {
        let CreateInFlight { sent, connection, .. } = create_in_flight;
        let known =
            create_in_flight.queue.lock().wait_for_sequence_before(sequence_key.sequence, sent, connection);
        if let Some(known) = known {
            // Its answer was there before ours, so its task is about to run, if behind thousands of others; unless nobody
            // polls it.
            let limit = deadline.or_after(self.timeout() / 40);
            select(known, pin!(limit.passed())).await;
        }
        self.predecessor_now(create_in_flight, sequence_key)
    }

    /// As [`predecessor`](Self::predecessor), by what is known now.
    pub(crate) fn predecessor_now(
        &self,
        create_in_flight: CreateInFlight,
        sequence_key: &SequenceKey,
    ) -> Predecessor {
        let (sequence, connection) = (sequence_key.sequence, create_in_flight.connection);
        let predecessor = {
            let mut queue = create_in_flight.queue.lock();
            let follows = queue.follows(sequence, connection);
            queue.consecutive_creates = if follows { queue.consecutive_creates.saturating_add(1) } else { 0 };
            let last_sequence = queue
                .last_sequence
                .filter(|(_, created_on)| *created_on == connection)
                .map(|(last_sequence, _)| last_sequence);
            let is_foreign = !follows && last_sequence.is_some();
            queue.foreign_interleaved = queue.consecutive_creates < CONSECUTIVE_CREATES_MIN
                && (queue.foreign_interleaved || is_foreign);
            if last_sequence.is_none_or(|last_sequence| last_sequence < sequence) {
                queue.last_sequence = Some((sequence, connection));
            }
            let predecessor = queue.predecessor_now(sequence, sequence_key.kind, connection);
            if queue.consecutive_creates >= CONSECUTIVE_CREATES_MIN
                && !matches!(predecessor, Predecessor::Own(_))
            {
                self.watch_directory(&mut queue, sequence_key, connection);
            }
            predecessor
        };
        if sequence == i32::MAX || self.connection() != Some(connection) {
            return Predecessor::Unknown;
        }
        match predecessor {
            Predecessor::Own(node) if node.released().is_none() => return Predecessor::Own(node),
            Predecessor::Nobody { .. } => return predecessor,
            _ if sequence_key.kind == Kind::Write => return Predecessor::Unknown,
            _ => {}
        }
        // Asked for once more: it may have left meanwhile, which its end's lock has let us wait for.
        let mut queue = create_in_flight.queue.lock();
        let before = sequence.checked_sub(1);
        let at_first = before.is_some_and(|before| create_in_flight.fast_path == FastPath::AfterOwn(before));
        let released = before.and_then(|before| queue.released_at(before, connection));
        // A reader's or a writer's leaving tells a mutex's contender nothing: others may stand, with whom it must not be.
        let released =
            released.filter(|released| (released.kind == Kind::Lock) == (sequence_key.kind == Kind::Lock));
        match released.map(|released| {
            (
                released.sent > create_in_flight.sent,
                queue.directory_unchanged(released),
                released.payload.clone(),
            )
        }) {
            // Sent later, its delete checked nobody who was not answered yet: this node may be gone, and
            // others behind it come in.
            Some((false, true, payload)) if queue.is_same_directory(connection) => {
                Predecessor::Nobody { payload, at_first }
            }
            _ => Predecessor::Unknown,
        }
    }

    /// Used again and again by one alone: worth a watch.
    fn watch_directory(&self, queue: &mut LocalQueue, sequence_key: &SequenceKey, connection: u64) {
        if !matches!(queue.watch, DirectoryWatch::None) {
            return;
        }
        if let Some(room) = self.watch_budget().reserve_spare(&sequence_key.directory) {
            let reply = self.read(|wire| wire.watch_data(&sequence_key.directory));
            queue.watch = DirectoryWatch::Asked { reply, room, connection };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::time::boot::BootInstant;

    /// With creates that were sent as these.
    fn approached(sent: &[u64]) -> LocalQueue {
        let mut queue = LocalQueue::new(BootInstant::at(Duration::ZERO));
        queue.pending_creates.extend(sent);
        queue.unsequenced.extend(sent);
        queue
    }

    #[test]
    fn who_has_a_stranger_in_front_waits_for_earlier_ones_only() {
        let mut queue = approached(&[1, 2, 3]);
        queue.sequence_known(2);
        let mut known = queue.wait_for_sequence_before(7, 2, 0).unwrap();
        queue.sequence_known(3);
        assert_eq!(known.try_recv(), Err(TryRecvError::Empty), "the first may be in front");
        queue.unsequenced.insert(4);
        queue.sequence_known(1);
        assert_eq!(known.try_recv(), Ok(()), "the fourth cannot be");
    }

    #[test]
    fn the_first_one_waits_for_nobody() {
        let mut queue = approached(&[1, 2]);
        queue.sequence_known(1);
        assert!(queue.wait_for_sequence_before(7, 1, 0).is_none());
    }
}
