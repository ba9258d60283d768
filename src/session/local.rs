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

use super::own_node::OwnNode;
use super::{Reservation, Session};
use crate::backend::{Reply, Stat, Watch};
use crate::clock::BootInstant;
use crate::deadline::Deadline;

/// A place in such a line: its directory and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) directory: Arc<str>,
    pub(crate) sequence: i32,
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
            has_strangers: false,
            watch: DirectoryWatch::None,
        }
    }

    fn next_sent(&mut self) -> u64 {
        self.sent += 1;
        self.sent
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

    /// Whether a create sent now is likely to follow a number of ours, and whether that would tell anything.
    fn is_predictable(&mut self, connection: u64) -> bool {
        let Some((newest, _)) = self.newest.filter(|(_, made_on)| *made_on == connection) else {
            // Of many that come at once, the first one reads the line, and not everyone the whole of it.
            return !self.asked.is_empty();
        };
        // So it is behind a first one that stands already.
        if !self.has_strangers && !self.asked.is_empty() && newest >= 0 {
            return true;
        }
        if self.in_a_row < IN_A_ROW || newest < 0 {
            return false;
        }
        if !self.asked.is_empty() || self.standing.contains_key(&newest) {
            return true;
        }
        self.left_at(newest, connection).is_some_and(|left| left.is_covered)
            && self.watch.is_quiet(connection)
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

/// A create of ours in a line, from the moment it is sent.
pub(crate) struct Approach {
    line: Arc<Mutex<LocalLine>>,
    /// When it was sent, in the order of what this session sends there.
    sent: u64,
    connection: u64,
    /// Its number alone is likely to tell who is in front.
    pub(crate) is_predictable: bool,
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

/// Who is in front of a node of ours.
pub(crate) enum Before {
    /// Nobody.
    Nobody,
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
        connection: Option<u64>,
        ask: impl FnOnce() -> T,
    ) -> (T, Option<Approach>) {
        let Some(connection) = connection else {
            return (ask(), None);
        };
        let line = self.local_line_or_new(directory);
        let mut locked = line.lock();
        let is_predictable = locked.is_predictable(connection);
        let sent = locked.next_sent();
        locked.asked.insert(sent);
        // Under the lock: what is sent later gets a greater number.
        let asked = ask();
        drop(locked);
        (asked, Some(Approach { line, sent, connection, is_predictable, is_numbered: false }))
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
        let is_covered = line.watch.is_quiet(connection);
        let sent = line.next_sent();
        if line.left.len() == LEFT_MAX {
            line.left.pop_front();
        }
        line.left.push_back(Left { sequence: position.sequence, connection, sent, is_covered });
        // Under the lock: what is sent later gets a greater number.
        send()
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
            let in_front = sequence.checked_sub(1).and_then(|before| line.standing.get(&before).cloned());
            if line.in_a_row >= IN_A_ROW && in_front.is_none() {
                self.watch_directory(&mut line, position, connection);
            }
            in_front
        };
        if sequence == i32::MAX || self.connection() != Some(connection) {
            return Before::Unknown;
        }
        if let Some(node) = in_front.filter(|node| node.end().is_none()) {
            return Before::Own(node);
        }
        // Asked for once more: it may have left meanwhile, which its end's lock has let us wait for.
        let mut line = approach.line.lock();
        let left = sequence.checked_sub(1).and_then(|before| line.left_at(before, connection));
        match left.map(|left| (left.sent > approach.sent, left.is_covered)) {
            Some((true, _)) => Before::Nobody,
            Some((false, true)) if line.watch.is_quiet(connection) => Before::Nobody,
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
