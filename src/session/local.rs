//! Where this session's own nodes stand behind each other, and what follows from that without asking.
//!
//! Only lines in single file, in which everyone waits for everyone in front: there a node that is the head has nothing
//! in front of it at all, and the server gives every number once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use dashmap::DashMap;
use futures::FutureExt;
use futures::future::select;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::own_node::{OwnNode, Word};
use super::{Reservation, Session};
use crate::backend::{Reply, Stat, Watch};
use crate::clock::BootInstant;
use crate::deadline::Deadline;
use crate::sequence::Kind;

/// A place in such a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) directory: Arc<str>,
    pub(crate) sequence: i32,
    pub(crate) kind: Kind,
}

/// So often in a row our numbers have to follow each other before the next one is taken to.
const IN_A_ROW: u8 = 2;

/// How many of the heads that left last are remembered.
const LEFT_MAX: usize = 16;

/// The lines of one session, by directory.
#[derive(Default)]
pub(crate) struct LocalLines(DashMap<Arc<str>, Arc<Mutex<LocalLine>>>);

struct LocalLine {
    standing: BTreeMap<i32, Arc<OwnNode>>,
    last_used: BootInstant,
    /// The last heads of ours whose deletes were sent, newest last.
    left: VecDeque<Left>,
    /// Numbers creates, and deletes of heads, in the order in which they are sent.
    sent: u64,
    /// The creates of which nobody has said yet what number they got.
    asked: BTreeSet<u64>,
    /// Who wants to know when one of ours stands with this number.
    awaited: BTreeMap<i32, oneshot::Sender<()>>,
    /// Our greatest number here, and the connection that made it.
    newest: Option<(i32, u64)>,
    /// How many of ours in a row got the number after another one of ours.
    in_a_row: u8,
    /// Somebody was in front when the line was read last.
    is_crowded: bool,
    /// The last number that came without a creation time, and whether it was the one after the last but one.
    untold: Option<(i32, bool)>,
    /// Somebody else got a number between two of ours, and so many in a row have not followed yet.
    has_strangers: bool,
    watch: DirectoryWatch,
}

/// A node of ours that was the head, and whose delete was sent.
struct Left {
    sequence: i32,
    /// The connection over which it was.
    connection: u64,
    sent: u64,
    /// The directory was watched then.
    is_covered: bool,
    /// What it had to tell the next one.
    word: Option<Word>,
}

/// A watch on the directory itself: a new one of the same name would count from the beginning.
#[derive(Default)]
enum DirectoryWatch {
    #[default]
    None,
    Asked {
        reply: Reply<(Vec<u8>, Stat, Watch)>,
        room: Reservation,
        connection: u64,
    },
    Set {
        watch: Watch,
        _room: Reservation,
        connection: u64,
    },
}

impl LocalLine {
    fn new(now: BootInstant) -> Self {
        Self {
            standing: BTreeMap::new(),
            last_used: now,
            left: VecDeque::new(),
            sent: 0,
            asked: BTreeSet::new(),
            awaited: BTreeMap::new(),
            newest: None,
            in_a_row: 0,
            is_crowded: false,
            untold: None,
            has_strangers: false,
            watch: DirectoryWatch::None,
        }
    }

    fn next_sent(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    fn leaves_now(&mut self, sequence: i32, connection: u64) -> Left {
        let is_covered = self.is_same_directory(connection);
        Left { sequence, connection, sent: self.next_sent(), is_covered, word: None }
    }

    /// Whether this is the directory that it was since the watch was set, and so for all that have left since.
    fn is_same_directory(&mut self, connection: u64) -> bool {
        let is_same = self.watch.is_quiet(connection);
        if !is_same {
            // The next watch says nothing of what was before.
            self.left.iter_mut().for_each(|left| left.is_covered = false);
        }
        is_same
    }

    fn has_left(&mut self, left: Left) {
        if self.left.len() == LEFT_MAX {
            self.left.pop_front();
        }
        self.left.push_back(left);
    }

    fn left_at(&self, sequence: i32, connection: u64) -> Option<&Left> {
        self.left.iter().rev().find(|left| left.sequence == sequence && left.connection == connection)
    }

    /// Whether our number before this one is known.
    fn follows(&self, sequence: i32, connection: u64) -> bool {
        let before = sequence.checked_sub(1);
        before.is_some_and(|before| {
            self.standing.contains_key(&before) || self.left_at(before, connection).is_some()
        })
    }

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
        let is_covered = self.left_at(newest, connection).is_some_and(|left| left.is_covered);
        match is_covered && self.is_same_directory(connection) {
            true => Foresight::AfterOurs(newest),
            false => Foresight::Unknown,
        }
    }

    /// Tells when a node of ours stands with the number before this one, if one that was asked for earlier may get it.
    fn await_number_before(&mut self, sequence: i32, approach: &Approach) -> Option<oneshot::Receiver<()>> {
        let is_earlier = self.asked.first().is_some_and(|oldest| *oldest < approach.sent);
        let before = sequence.checked_sub(1).filter(|_| is_earlier)?;
        if self.follows(sequence, approach.connection) {
            return None;
        }
        let (stands, told) = oneshot::channel();
        self.awaited.insert(before, stands);
        Some(told)
    }

    fn is_idle(&self, long_ago: BootInstant) -> bool {
        self.standing.is_empty() && self.asked.is_empty() && self.last_used <= long_ago
    }

    fn forget(&mut self) {
        // A watch that nobody has waited for yet is taken in, so that it is taken back.
        self.watch.take_in();
        self.watch = DirectoryWatch::None;
    }
}

impl DirectoryWatch {
    fn take_in(&mut self) {
        *self = match std::mem::take(self) {
            Self::Asked { mut reply, room, connection } => match (&mut reply).now_or_never() {
                None => Self::Asked { reply, room, connection },
                Some(Ok((_, _, watch))) => Self::Set { watch, _room: room, connection },
                Some(Err(_)) => Self::None,
            },
            other => other,
        };
    }

    /// Whether the watch was set on this connection and has not fired. Read in place: the server sends an event before
    /// the answers to what it did later.
    fn is_quiet(&mut self, on: u64) -> bool {
        self.take_in();
        let Self::Set { watch, connection, .. } = self else {
            return false;
        };
        if *connection == on && watch.now_or_never().is_none() {
            return true;
        }
        *self = Self::None;
        false
    }
}

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
    /// Its number is known.
    is_numbered: bool,
}

impl Drop for Approach {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.asked.remove(&self.sent);
        if !self.is_numbered || line.asked.is_empty() {
            // Whoever still waits for a number waits in vain.
            line.awaited.clear();
        }
    }
}

impl Approach {
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

impl Session {
    fn local_line(&self, directory: &str) -> Option<Arc<Mutex<LocalLine>>> {
        self.local_lines().0.get(directory).map(|line| Arc::clone(&line))
    }

    fn local_line_or_new(&self, directory: &str) -> Arc<Mutex<LocalLine>> {
        if let Some(line) = self.local_line(directory) {
            return line;
        }
        let new = || Arc::new(Mutex::new(LocalLine::new(self.now())));
        Arc::clone(&self.local_lines().0.entry(directory.into()).or_insert_with(new))
    }

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
        // Under the lock: what is sent later gets a greater number.
        let asked = ask();
        drop(locked);
        (asked, Some(Approach { line, sent, connection, foresight, is_numbered: false }))
    }

    /// A node of ours took its place.
    pub(super) fn stand_at(&self, position: &Position, node: &Arc<OwnNode>) {
        let line = self.local_line_or_new(&position.directory);
        let mut line = line.lock();
        line.last_used = self.now();
        line.standing.insert(position.sequence, Arc::clone(node));
        if let Some(told) = line.awaited.remove(&position.sequence) {
            let _ = told.send(());
        }
    }

    pub(super) fn strike_from(&self, position: &Position) {
        if let Some(line) = self.local_line(&position.directory) {
            line.lock().standing.remove(&position.sequence);
        }
    }

    /// Sends the delete of the node at `position`, which is the head of its line, by `send`.
    pub(crate) fn head_leaves<T>(&self, position: &Position, send: impl FnOnce() -> T) -> T {
        let (Some(connection), Some(line)) = (self.connection(), self.local_line(&position.directory)) else {
            return send();
        };
        let mut line = line.lock();
        let left = line.leaves_now(position.sequence, connection);
        line.has_left(left);
        // Under the lock: what is sent later gets a greater number.
        send()
    }

    /// The head at `position` is about to be deleted by a transaction, of which it will be told whether it is committed.
    pub(crate) fn head_will_leave(&self, position: &Position) -> Option<Departure> {
        let line = self.local_line(&position.directory)?;
        let left = line.lock().leaves_now(position.sequence, self.connection()?);
        Some(Departure { line, left })
    }

    /// The last node of ours in front of this position, if one stands.
    pub(crate) fn own_node_before(&self, position: &Position) -> Option<Arc<OwnNode>> {
        let line = self.local_line(&position.directory)?;
        let line = line.lock();
        let mut in_front = line.standing.range(..position.sequence);
        in_front.next_back().map(|(_, node)| Arc::clone(node)).filter(|node| node.end().is_none())
    }

    /// The node of ours with this number, if it stands in line.
    pub(crate) fn own_node_at(&self, directory: &str, sequence: i32) -> Option<Arc<OwnNode>> {
        self.local_line(directory)?.lock().standing.get(&sequence).cloned()
    }

    /// Who is in front of a node that got this number. Notes how good numbers are at telling.
    pub(crate) async fn before(
        &self,
        mut approach: Approach,
        position: &Position,
        deadline: Deadline,
    ) -> Before {
        let (sequence, connection) = (position.sequence, approach.connection);
        approach.is_numbered = true;
        let told = approach.line.lock().await_number_before(sequence, &approach);
        if let Some(told) = told {
            // Its answer was there before ours, so its task is about to run, if behind thousands of others; unless nobody
            // polls it.
            let limit = deadline.or_after(self.timeout() / 40);
            select(told, pin!(limit.passed())).await;
        }
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
        match left.map(|left| (left.sent > approach.sent, left.is_covered, left.word.clone())) {
            Some((true, _, word)) => Before::Nobody { word, at_first },
            Some((false, true, word)) if line.is_same_directory(connection) => {
                Before::Nobody { word, at_first }
            }
            _ => Before::Unknown,
        }
    }

    /// The server told no creation time with this number.
    pub(crate) fn creation_is_untold(&self, directory: &str, sequence: i32) {
        let line = self.local_line_or_new(directory);
        let mut line = line.lock();
        line.last_used = self.now();
        let follows = line.untold.is_some_and(|(last, _)| last.checked_add(1) == Some(sequence));
        line.untold = Some((sequence, follows));
    }

    /// The number that the next create of ours there is likely to get, where the server tells no creation time with it.
    pub(crate) fn number_to_ask_for(&self, directory: &str) -> Option<i32> {
        let untold = self.local_line(directory)?.lock().untold;
        untold.filter(|(_, follows)| *follows)?.0.checked_add(1)
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

    pub(super) fn has_local_lines(&self) -> bool {
        !self.local_lines().0.is_empty()
    }

    /// Forgets the lines in which nothing of ours has stood for a session timeout, and their watches with them.
    pub(super) fn forget_idle_lines(&self) {
        let long_ago = self.now().before(self.timeout());
        let lines = &self.local_lines().0;
        let idle = lines.iter().filter(|entry| entry.value().lock().is_idle(long_ago));
        let mut idle: Vec<Arc<str>> = idle.map(|entry| Arc::clone(entry.key())).collect();
        // In an order that chance has no part in.
        idle.sort();
        for directory in idle {
            let forgotten = lines.remove_if(&directory, |_, line| line.lock().is_idle(long_ago));
            if let Some((_, line)) = forgotten {
                line.lock().forget();
            }
        }
    }

    pub(super) fn forget_local_lines(&self) {
        let mut all: Vec<Arc<str>> =
            self.local_lines().0.iter().map(|entry| Arc::clone(entry.key())).collect();
        all.sort();
        for directory in all {
            if let Some((_, line)) = self.local_lines().0.remove(&directory) {
                // Who approaches holds the line, and the nodes in it hold the session.
                line.lock().standing.clear();
            }
        }
    }
}
