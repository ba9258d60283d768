//! From the sending of a create to who is in front of its node, and from a head's leaving to who comes next.

use std::pin::pin;
use std::sync::Arc;

use futures::future::select;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::directory_watch::DirectoryWatch;
use super::{Left, LocalLine, Position};
use crate::deadline::Deadline;
use crate::sequence::Kind;
use crate::session::{OwnNode, Session, Word};

/// So often in a row our numbers have to follow each other before the next one is taken to.
const IN_A_ROW: u8 = 2;

/// What a create is likely to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foresight {
    /// Only the line tells.
    Unknown,
    /// Somebody in front, as the last time; only the line tells who.
    Crowded,
    /// One of ours in front: its number alone will tell.
    BehindOurs,
    /// Nobody, and the number after this one of ours, which has left.
    AfterOurs(i32),
}

impl Foresight {
    /// Whether the line need not be read.
    pub(crate) fn is_by_number(self) -> bool {
        matches!(self, Self::BehindOurs | Self::AfterOurs(_))
    }

    /// Whether the turn may come at once.
    pub(crate) fn is_hopeful(self) -> bool {
        matches!(self, Self::Unknown | Self::AfterOurs(_))
    }
}

/// A create of ours in a line, from the moment it is sent.
pub(crate) struct Approach {
    line: Arc<Mutex<LocalLine>>,
    /// When it was sent, in the order of what this session sends there.
    sent: u64,
    connection: u64,
    pub(crate) foresight: Foresight,
}

impl Drop for Approach {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.asked.remove(&self.sent);
        line.number_is_known(self.sent);
    }
}

impl Approach {
    /// Its node, if one was made, stands where its number says.
    pub(crate) fn stands(&self) {
        self.line.lock().number_is_known(self.sent);
    }

    /// What a list said.
    pub(crate) fn saw(&self, somebody_in_front: bool) {
        self.line.lock().is_crowded = somebody_in_front;
    }
}

/// A head of ours that is about to be deleted by a transaction.
pub(crate) struct Departure {
    line: Arc<Mutex<LocalLine>>,
    left: Left,
}

impl Departure {
    /// The transaction was committed; the next one is told `word`.
    pub(crate) fn done(self, word: Option<Word>) {
        self.line.lock().has_left(Left { word, ..self.left });
    }
}

/// Who is in front of a node of ours.
pub(crate) enum Before {
    /// Nobody.
    Nobody {
        /// What the last one had to tell.
        word: Option<Word>,
        /// Nor was there anybody when the create was sent.
        at_first: bool,
    },
    /// This one, and who is in front of it.
    Own(Arc<OwnNode>),
    /// The line tells.
    Unknown,
}

impl LocalLine {
    /// Who is in front of the node with this number.
    fn in_front(&mut self, sequence: i32, kind: Kind, connection: u64) -> Before {
        let Some(node) = sequence.checked_sub(1).and_then(|before| self.standing.get(&before).cloned())
        else {
            return Before::Unknown;
        };
        let is_reader = node.position().is_some_and(|position| position.kind == Kind::Read);
        match kind {
            // Readers do not wait for readers: what is in front of that one is in front of this one.
            Kind::Read if is_reader && !self.is_same_directory(connection) => Before::Unknown,
            // If a transaction deletes that reader, the watch may be set on a directory made since.
            Kind::Read if is_reader && node.is_replacing() => Before::Unknown,
            Kind::Read if is_reader && node.is_clear() => Before::Nobody { word: None, at_first: false },
            Kind::Read if is_reader => {
                self.standing.get(&node.follows()).cloned().map_or(Before::Unknown, Before::Own)
            }
            _ => Before::Own(node),
        }
    }

    /// What a create sent now is likely to meet.
    fn foresight(&mut self, kind: Kind, connection: u64) -> Foresight {
        let Some((newest, _)) = self.newest.filter(|(_, made_on)| *made_on == connection) else {
            // Of many that come at once, the first one reads the line, and not everyone the whole of it.
            let is_first = self.asked.is_empty();
            return if is_first { Foresight::Unknown } else { Foresight::BehindOurs };
        };
        // So it is behind a first one that stands already.
        if !self.has_strangers && !self.asked.is_empty() && newest >= 0 {
            return Foresight::BehindOurs;
        }
        if self.in_a_row < IN_A_ROW || newest < 0 {
            return if self.is_crowded { Foresight::Crowded } else { Foresight::Unknown };
        }
        if !self.asked.is_empty() || self.standing.contains_key(&newest) {
            return Foresight::BehindOurs;
        }
        // Where the last one was, others may stand whom a writer waits for.
        if kind == Kind::Write {
            return Foresight::Unknown;
        }
        let is_covered = self.left_at(newest, connection).is_some_and(|left| self.is_covered(left));
        match is_covered && self.is_same_directory(connection) {
            true => Foresight::AfterOurs(newest),
            false => Foresight::Unknown,
        }
    }

    /// For the one that was `sent` then: tells when a node of ours stands with the number before its own, or none will that
    /// was asked for earlier.
    fn await_number_before(
        &mut self,
        sequence: i32,
        sent: u64,
        connection: u64,
    ) -> Option<oneshot::Receiver<()>> {
        let is_earlier = self.unnumbered.first().is_some_and(|oldest| *oldest < sent);
        let before = sequence.checked_sub(1).filter(|_| is_earlier)?;
        if self.follows(sequence, connection) {
            return None;
        }
        let (stands, told) = oneshot::channel();
        self.awaited.insert(before, (sent, stands));
        Some(told)
    }

    /// The create that was `sent` then got its number, or will not get one.
    fn number_is_known(&mut self, sent: u64) {
        self.unnumbered.remove(&sent);
        let oldest = self.unnumbered.first().copied().unwrap_or(u64::MAX);
        // What was sent later got the greater number: who waits for nobody any more is in front.
        while let Some(first) = self.awaited.first_entry()
            && first.get().0 < oldest
        {
            let _ = first.remove().1.send(());
        }
    }
}

impl Session {
    /// Sends a create in a line in single file, by `ask`. Without a connection there is nothing to go by.
    pub(crate) fn approach<T>(
        &self,
        directory: &str,
        kind: Kind,
        connection: Option<u64>,
        ask: impl FnOnce() -> T,
    ) -> (T, Option<Approach>) {
        let Some(connection) = connection else {
            return (ask(), None);
        };
        let line = self.local_line_or_new(directory);
        let mut locked = line.lock();
        let foresight = locked.foresight(kind, connection);
        let sent = locked.next_sent();
        locked.asked.insert(sent);
        locked.unnumbered.insert(sent);
        // Under the lock: what is sent later gets a greater number.
        let asked = ask();
        drop(locked);
        (asked, Some(Approach { line, sent, connection, foresight }))
    }

    /// Sends the delete of the node at `position`, which is the head of its line, by `send`.
    pub(crate) fn head_leaves<T>(&self, position: &Position, send: impl FnOnce() -> T) -> T {
        let (Some(connection), Some(line)) = (self.connection(), self.local_line(&position.directory)) else {
            return send();
        };
        let mut line = line.lock();
        let left = line.leaves_now(position, connection);
        line.has_left(left);
        // Under the lock: what is sent later gets a greater number.
        send()
    }

    /// The head at `position` is about to be deleted by a transaction, of which it will be told whether it is committed.
    pub(crate) fn head_will_leave(&self, position: &Position) -> Option<Departure> {
        let line = self.local_line(&position.directory)?;
        let left = line.lock().leaves_now(position, self.connection()?);
        Some(Departure { line, left })
    }

    /// Who is in front of a node that got this number. Notes how good numbers are at telling.
    pub(crate) async fn before(&self, approach: Approach, position: &Position, deadline: Deadline) -> Before {
        let Approach { sent, connection, .. } = approach;
        let told = approach.line.lock().await_number_before(position.sequence, sent, connection);
        if let Some(told) = told {
            // Its answer was there before ours, so its task is about to run, if behind thousands of others; unless nobody
            // polls it.
            let limit = deadline.or_after(self.timeout() / 40);
            select(told, pin!(limit.passed())).await;
        }
        self.in_front(approach, position)
    }

    /// As [`before`](Self::before), by what is known now.
    pub(crate) fn in_front(&self, approach: Approach, position: &Position) -> Before {
        let (sequence, connection) = (position.sequence, approach.connection);
        let in_front = {
            let mut line = approach.line.lock();
            let follows = line.follows(sequence, connection);
            line.in_a_row = if follows { line.in_a_row.saturating_add(1) } else { 0 };
            let newest = line.newest.filter(|(_, made_on)| *made_on == connection).map(|(newest, _)| newest);
            let has_stranger = !follows && newest.is_some();
            line.has_strangers = line.in_a_row < IN_A_ROW && (line.has_strangers || has_stranger);
            if newest.is_none_or(|newest| newest < sequence) {
                line.newest = Some((sequence, connection));
            }
            let in_front = line.in_front(sequence, position.kind, connection);
            if line.in_a_row >= IN_A_ROW && !matches!(in_front, Before::Own(_)) {
                self.watch_directory(&mut line, position, connection);
            }
            in_front
        };
        if sequence == i32::MAX || self.connection() != Some(connection) {
            return Before::Unknown;
        }
        match in_front {
            Before::Own(node) if node.end().is_none() => return Before::Own(node),
            Before::Nobody { .. } => return in_front,
            _ if position.kind == Kind::Write => return Before::Unknown,
            _ => {}
        }
        // Asked for once more: it may have left meanwhile, which its end's lock has let us wait for.
        let mut line = approach.line.lock();
        let before = sequence.checked_sub(1);
        let at_first = before.is_some_and(|before| approach.foresight == Foresight::AfterOurs(before));
        let left = before.and_then(|before| line.left_at(before, connection));
        // A reader's or a writer's leaving tells a mutex's contender nothing: others may stand, with whom it must not be.
        let left = left.filter(|left| (left.kind == Kind::Lock) == (position.kind == Kind::Lock));
        match left.map(|left| (left.sent > approach.sent, line.is_covered(left), left.word.clone())) {
            // Sent later, its delete checked nobody who was not answered yet: this node may be gone, and
            // others behind it come in.
            Some((false, true, word)) if line.is_same_directory(connection) => {
                Before::Nobody { word, at_first }
            }
            _ => Before::Unknown,
        }
    }

    /// Used again and again by one alone: worth a watch.
    fn watch_directory(&self, line: &mut LocalLine, position: &Position, connection: u64) {
        if !matches!(line.watch, DirectoryWatch::None) {
            return;
        }
        if let Some(room) = self.watch_budget().reserve_spare(&position.directory) {
            let reply = self.read(|wire| wire.watch_data(&position.directory));
            line.watch = DirectoryWatch::Asked { reply, room, connection };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;
    use crate::clock::BootInstant;

    /// With creates that were sent as these.
    fn approached(sent: &[u64]) -> LocalLine {
        let mut line = LocalLine::new(BootInstant::at(Duration::ZERO));
        line.asked.extend(sent);
        line.unnumbered.extend(sent);
        line
    }

    #[test]
    fn who_has_a_stranger_in_front_waits_for_earlier_ones_only() {
        let mut line = approached(&[1, 2, 3]);
        line.number_is_known(2);
        let mut told = line.await_number_before(7, 2, 0).unwrap();
        line.number_is_known(3);
        assert_eq!(told.try_recv(), Err(TryRecvError::Empty), "the first may be in front");
        line.unnumbered.insert(4);
        line.number_is_known(1);
        assert_eq!(told.try_recv(), Ok(()), "the fourth cannot be");
    }

    #[test]
    fn the_first_one_waits_for_nobody() {
        let mut line = approached(&[1, 2]);
        line.number_is_known(1);
        assert!(line.await_number_before(7, 1, 0).is_none());
    }
}
