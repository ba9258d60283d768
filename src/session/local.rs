//! Where this session's own nodes stand behind each other, and what follows from that without asking.
//!
//! Only lines in single file, in which everyone waits for everyone in front: there a node that is the head has nothing
//! in front of it at all, and the server gives every number once.

use std::collections::BTreeMap;
use std::sync::Arc;

use dashmap::DashMap;
use futures::FutureExt;
use parking_lot::Mutex;

use super::own_node::{End, OwnNode};
use super::{Reservation, Session};
use crate::backend::{Reply, Stat, Watch};
use crate::clock::BootInstant;

/// A place in such a line: its directory and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) directory: Arc<str>,
    pub(crate) sequence: i32,
}

/// So many in a row have to be next to each other before the next one is taken to be.
const IN_A_ROW: u8 = 2;

/// The lines of one session, by directory.
#[derive(Default)]
pub(crate) struct LocalLines(DashMap<Arc<str>, Mutex<LocalLine>>);

struct LocalLine {
    standing: BTreeMap<i32, Arc<OwnNode>>,
    last_used: BootInstant,
    last: Option<Last>,
    /// How many of ours in a row got the number after the last one's.
    in_a_row: u8,
    watch: DirectoryWatch,
}

/// The last node of ours that was made here.
struct Last {
    sequence: i32,
    node: Arc<OwnNode>,
    /// The connection that made it.
    connection: u64,
    /// It was the head, and its delete was sent over this connection.
    has_left: bool,
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
    fn forget(mut self) {
        // A watch that nobody has waited for yet is taken in, so that it is taken back.
        self.watch.take_in();
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

/// What is expected of the next number: that it follows this one.
#[derive(Clone)]
pub(crate) struct Guess {
    position: Position,
    pub(crate) node: Arc<OwnNode>,
    connection: u64,
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
    /// A node of ours took its place, made by `connection`, if that is known.
    pub(super) fn stand_at(&self, position: &Position, node: &Arc<OwnNode>, connection: Option<u64>) {
        let now = self.now();
        let line = self.local_lines().0.entry(Arc::clone(&position.directory)).or_insert_with(|| {
            Mutex::new(LocalLine {
                standing: BTreeMap::new(),
                last_used: now,
                last: None,
                in_a_row: 0,
                watch: DirectoryWatch::None,
            })
        });
        let mut line = line.lock();
        line.last_used = now;
        line.standing.insert(position.sequence, Arc::clone(node));
        let follows = line.last.as_ref().is_some_and(|last| {
            Some(last.connection) == connection && last.sequence.checked_add(1) == Some(position.sequence)
        });
        line.in_a_row = if follows { line.in_a_row.saturating_add(1) } else { 0 };
        let has_left = line.last.as_ref().is_some_and(|last| last.has_left);
        line.last = connection.map(|connection| Last {
            sequence: position.sequence,
            node: Arc::clone(node),
            connection,
            has_left: false,
            is_covered: false,
        });
        // Used again and again by one alone: worth a watch.
        let is_wanted = line.in_a_row >= IN_A_ROW && has_left && matches!(line.watch, DirectoryWatch::None);
        let Some(connection) = connection.filter(|_| is_wanted) else {
            return;
        };
        if let Some(room) = self.watch_budget().reserve_spare(&position.directory) {
            let reply = self.read(|wire| wire.watch_data(&position.directory));
            line.watch = DirectoryWatch::Asked { reply, room, connection };
        }
    }

    pub(super) fn strike_from(&self, position: &Position) {
        if let Some(line) = self.local_lines().0.get(&position.directory) {
            line.lock().standing.remove(&position.sequence);
        }
    }

    /// The delete of the node at `position`, which was the head of its line, is on its way over `connection`.
    pub(crate) fn head_leaves(&self, position: &Position, connection: Option<u64>) {
        let (Some(connection), Some(line)) = (connection, self.local_lines().0.get(&position.directory))
        else {
            return;
        };
        let line = &mut *line.lock();
        let is_last = |last: &&mut Last| last.sequence == position.sequence && last.connection == connection;
        if let Some(last) = line.last.as_mut().filter(is_last) {
            last.has_left = true;
            last.is_covered = line.watch.is_quiet(connection);
        }
    }

    /// The node of ours with this number, if it stands in line.
    pub(crate) fn own_node_at(&self, directory: &str, sequence: i32) -> Option<Arc<OwnNode>> {
        self.local_lines().0.get(directory)?.lock().standing.get(&sequence).cloned()
    }

    /// What the next number is expected to follow, if experience says that it will, and if that would tell anything.
    pub(crate) fn guess(&self, directory: &str, connection: Option<u64>) -> Option<Guess> {
        let line = self.local_lines().0.get(directory)?;
        let line = &mut *line.lock();
        let last = line.last.as_ref().filter(|last| {
            line.in_a_row >= IN_A_ROW && Some(last.connection) == connection && last.sequence >= 0
        })?;
        let tells = match last.node.end() {
            None => true,
            Some(End::AsHead) => last.is_covered && line.watch.is_quiet(last.connection),
            Some(End::Left) => false,
        };
        tells.then(|| Guess {
            position: Position { directory: directory.into(), sequence: last.sequence },
            node: Arc::clone(&last.node),
            connection: last.connection,
        })
    }

    /// Who is in front of a node that was made after the guess, by what number it got. `stood` says whether the other
    /// node's delete was still to be sent when this one's create was.
    pub(crate) fn before(&self, guess: &Guess, stood: bool, sequence: i32) -> Before {
        let follows = guess.position.sequence.checked_add(1) == Some(sequence) && sequence < i32::MAX;
        if !follows || self.connection() != Some(guess.connection) {
            return Before::Unknown;
        }
        match guess.node.end() {
            None => Before::Own(Arc::clone(&guess.node)),
            Some(End::AsHead) if stood || self.was_covered(guess) => Before::Nobody,
            Some(_) => Before::Unknown,
        }
    }

    fn was_covered(&self, guess: &Guess) -> bool {
        let line = self.local_lines().0.get(&guess.position.directory);
        line.is_some_and(|line| line.lock().watch.is_quiet(guess.connection))
    }

    pub(super) fn has_local_lines(&self) -> bool {
        !self.local_lines().0.is_empty()
    }

    /// Forgets the lines in which nothing of ours has stood for a session timeout, and their watches with them.
    pub(super) fn forget_idle_lines(&self) {
        let (now, timeout) = (self.now(), self.timeout());
        let is_idle = |line: &LocalLine| line.standing.is_empty() && line.last_used.after(timeout) <= now;
        let lines = &self.local_lines().0;
        let idle = lines.iter().filter(|entry| is_idle(&entry.value().lock()));
        let mut idle: Vec<Arc<str>> = idle.map(|entry| Arc::clone(entry.key())).collect();
        // In an order that chance has no part in.
        idle.sort();
        for directory in idle {
            let forgotten = lines.remove_if_mut(&directory, |_, line| is_idle(line.get_mut()));
            if let Some((_, line)) = forgotten {
                line.into_inner().forget();
            }
        }
    }

    pub(super) fn forget_local_lines(&self) {
        let mut all: Vec<Arc<str>> =
            self.local_lines().0.iter().map(|entry| Arc::clone(entry.key())).collect();
        all.sort();
        all.iter().for_each(|directory| drop(self.local_lines().0.remove(directory)));
    }
}
