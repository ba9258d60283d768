//! Where this session's own nodes stand behind each other, and what follows from that without asking.
//!
//! The server gives every number of a directory once: between two of ours that follow each other there is nobody.

mod approach;
mod directory_watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use self::approach::{Approach, Before, Foresight};
use self::directory_watch::DirectoryWatch;
use super::Session;
use super::own_node::{OwnNode, Word};
use crate::clock::BootInstant;
use crate::sequence::Kind;

/// A place in a line in which numbers tell who is in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) directory: Arc<str>,
    pub(crate) sequence: i32,
    pub(crate) kind: Kind,
}

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
    /// The creates of which nobody has said yet who is in front.
    asked: BTreeSet<u64>,
    /// Those of them of which nobody has said yet what number they got.
    unnumbered: BTreeSet<u64>,
    /// Who wants to know when one of ours stands with this number, and when that one sent its own create.
    awaited: BTreeMap<i32, (u64, oneshot::Sender<()>)>,
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
    /// How often no watch could show that the directory is the same: a later watch says nothing of nodes that
    /// left before it.
    gaps: u64,
}

/// A node of ours that was the head, and whose delete was sent.
struct Left {
    sequence: i32,
    kind: Kind,
    /// The connection over which it was.
    connection: u64,
    sent: u64,
    /// If the directory was watched then: after how many [gaps](LocalLine::gaps).
    covered_after: Option<u64>,
    /// What it had to tell the next one.
    word: Option<Word>,
}

impl LocalLine {
    fn new(now: BootInstant) -> Self {
        Self {
            standing: BTreeMap::new(),
            last_used: now,
            left: VecDeque::new(),
            sent: 0,
            asked: BTreeSet::new(),
            unnumbered: BTreeSet::new(),
            awaited: BTreeMap::new(),
            newest: None,
            in_a_row: 0,
            is_crowded: false,
            untold: None,
            has_strangers: false,
            watch: DirectoryWatch::None,
            gaps: 0,
        }
    }

    fn next_sent(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    fn leaves_now(&mut self, position: &Position, connection: u64) -> Left {
        let Position { sequence, kind, .. } = *position;
        let covered_after = self.is_same_directory(connection).then_some(self.gaps);
        Left { sequence, kind, connection, sent: self.next_sent(), covered_after, word: None }
    }

    /// Whether this is the directory that it was since the watch was set, and so for all that have left since.
    fn is_same_directory(&mut self, connection: u64) -> bool {
        let is_same = self.watch.is_quiet(connection);
        if !is_same {
            self.gaps += 1;
        }
        is_same
    }

    /// Whether the present watch stood when the delete of this node was sent. The answer may be looked at only
    /// much later.
    fn is_covered(&self, left: &Left) -> bool {
        left.covered_after == Some(self.gaps)
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

    fn is_idle(&self, long_ago: BootInstant) -> bool {
        self.standing.is_empty() && self.asked.is_empty() && self.last_used <= long_ago
    }

    fn forget(&mut self) {
        // A watch that nobody has waited for yet is taken in, so that it is taken back.
        self.watch.take_in();
        self.watch = DirectoryWatch::None;
    }
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

    /// A node of ours took its place.
    pub(super) fn stand_at(&self, position: &Position, node: &Arc<OwnNode>) {
        let line = self.local_line_or_new(&position.directory);
        let mut line = line.lock();
        line.last_used = self.now();
        line.standing.insert(position.sequence, Arc::clone(node));
        if let Some((_, stands)) = line.awaited.remove(&position.sequence) {
            let _ = stands.send(());
        }
    }

    pub(super) fn strike_from(&self, position: &Position) {
        if let Some(line) = self.local_line(&position.directory) {
            line.lock().standing.remove(&position.sequence);
        }
    }

    /// The last node of ours in front of this position, if one stands.
    pub(crate) fn own_node_before(&self, position: &Position) -> Option<Arc<OwnNode>> {
        let line = self.local_line(&position.directory)?;
        let last = |line: &LocalLine| {
            line.standing.range(..position.sequence).next_back().map(|(_, node)| Arc::clone(node))
        };
        let last = last(&line.lock());
        // Not under the lock of the line: who leaves takes that under its own.
        last.filter(|node| node.end().is_none())
    }

    /// The node of ours with this number, if it stands in line.
    pub(crate) fn own_node_at(&self, directory: &str, sequence: i32) -> Option<Arc<OwnNode>> {
        self.local_line(directory)?.lock().standing.get(&sequence).cloned()
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
