//! A minimal directory of one ZooKeeper server: it processes the requests of a session in order, writes are
//! linearizable, and watches fire once.

use std::collections::{BTreeMap, BTreeSet};

use crate::local::decide::ContenderKind;

/// The name of a node. It is never given to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) contender: usize,
    pub(super) attempt: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServerNode {
    pub(super) name: Name,
    pub(super) session: usize,
    pub(super) kind: ContenderKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Request {
    Create {
        name: Name,
        kind: ContenderKind,
    },
    List {
        by: usize,
    },
    /// Reads a node and sets a watch on it.
    Watch {
        by: usize,
        name: Name,
    },
    /// Searches for the node of a create whose reply was lost.
    Find {
        by: usize,
        name: Name,
    },
    /// `multi[check(each of checks), delete(name)]`. The client grants the nodes of `granted` in memory.
    Delete {
        name: Name,
        checks: Vec<Name>,
        granted: Vec<Name>,
    },
    /// The same, by a transaction that replaces a hold.
    Exchange {
        name: Name,
        checks: Vec<Name>,
        granted: Vec<Name>,
    },
    WatchDirectory,
}

impl Request {
    /// The node that the request deletes.
    pub(super) fn head(&self) -> Option<Name> {
        match self {
            Self::Delete { name, .. } | Self::Exchange { name, .. } => Some(*name),
            _ => None,
        }
    }

    /// The nodes that the client grants by this request.
    pub(super) fn granted(&self) -> &[Name] {
        match self {
            Self::Delete { granted, .. } | Self::Exchange { granted, .. } => granted,
            _ => &[],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Message {
    Created {
        by: usize,
        sequence: i32,
    },
    Listed {
        by: usize,
        list: Vec<(i32, Name, ContenderKind)>,
    },
    Watched {
        by: usize,
        exists: bool,
    },
    Found {
        by: usize,
        sequence: Option<i32>,
    },
    Deleted {
        name: Name,
        failed: Option<Name>,
    },
    Exchanged {
        by: usize,
        failed: Option<Name>,
    },
    /// The watch on a node has fired.
    Fired {
        by: usize,
        name: Name,
    },
    /// The connection broke before the reply arrived.
    Failed {
        by: usize,
    },
    DirectoryWatched {
        exists: bool,
    },
    DirectoryFired,
}

/// The task that takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    Contender(usize),
    Delete(Name),
    Directory,
}

impl Message {
    pub(super) fn receiver(&self) -> Receiver {
        match *self {
            Self::Created { by, .. }
            | Self::Listed { by, .. }
            | Self::Watched { by, .. }
            | Self::Found { by, .. }
            | Self::Exchanged { by, .. }
            | Self::Fired { by, .. }
            | Self::Failed { by } => Receiver::Contender(by),
            Self::Deleted { name, .. } => Receiver::Delete(name),
            Self::DirectoryWatched { .. } | Self::DirectoryFired => Receiver::Directory,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) nodes: BTreeMap<i32, ServerNode>,
    exists: bool,
    next_sequence: i32,
    watches: BTreeSet<(Name, usize, usize)>,
    directory_watches: BTreeSet<usize>,
}

impl Server {
    /// Processes a request. Events precede the reply.
    pub(super) fn process(&mut self, session: usize, request: &Request) -> Vec<(usize, Message)> {
        let mut sent = Vec::new();
        let answer = match *request {
            Request::Create { name, kind } => {
                self.exists = true;
                let sequence = self.next_sequence;
                self.next_sequence += 1;
                self.nodes.insert(sequence, ServerNode { name, session, kind });
                Message::Created { by: name.contender, sequence }
            }
            Request::List { by } => {
                let list = self.nodes.iter().map(|(sequence, node)| (*sequence, node.name, node.kind));
                Message::Listed { by, list: list.collect() }
            }
            Request::Watch { by, name } => {
                let exists = self.sequence_of(name).is_some();
                if exists {
                    self.watches.insert((name, session, by));
                }
                Message::Watched { by, exists }
            }
            Request::Find { by, name } => Message::Found { by, sequence: self.sequence_of(name) },
            Request::Delete { name, ref checks, .. } => {
                let failed = checks.iter().copied().find(|check| self.sequence_of(*check).is_none());
                if failed.is_none() {
                    sent = self.delete(name);
                }
                Message::Deleted { name, failed }
            }
            Request::Exchange { name, ref checks, .. } => {
                let failed =
                    checks.iter().copied().chain([name]).find(|check| self.sequence_of(*check).is_none());
                if failed.is_none() {
                    sent = self.delete(name);
                }
                Message::Exchanged { by: name.contender, failed }
            }
            Request::WatchDirectory => {
                if self.exists {
                    self.directory_watches.insert(session);
                }
                Message::DirectoryWatched { exists: self.exists }
            }
        };
        sent.push((session, answer));
        sent
    }

    pub(super) fn sequence_of(&self, name: Name) -> Option<i32> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(sequence, _)| *sequence)
    }

    /// Deletes a node, if it exists. Returns the events.
    pub(super) fn delete(&mut self, name: Name) -> Vec<(usize, Message)> {
        let Some(sequence) = self.sequence_of(name) else { return Vec::new() };
        self.nodes.remove(&sequence);
        let (fired, kept) = std::mem::take(&mut self.watches).into_iter().partition(|watch| watch.0 == name);
        self.watches = kept;
        let fired: BTreeSet<(Name, usize, usize)> = fired;
        fired.into_iter().map(|(name, session, by)| (session, Message::Fired { by, name })).collect()
    }

    /// The connection of this session broke: in the worst case its watches are forgotten.
    pub(super) fn forget_watches(&mut self, session: usize) {
        self.watches.retain(|watch| watch.1 != session);
        self.directory_watches.remove(&session);
    }

    pub(super) fn forget_watch(&mut self, session: usize, by: usize) {
        self.watches.retain(|watch| (watch.1, watch.2) != (session, by));
    }

    /// Ends the session.
    pub(super) fn expire(&mut self, session: usize) -> Vec<(usize, Message)> {
        self.forget_watches(session);
        let names: Vec<Name> =
            self.nodes.values().filter(|node| node.session == session).map(|node| node.name).collect();
        names.into_iter().flat_map(|name| self.delete(name)).collect()
    }

    /// Whether the server may remove the directory, which is a container.
    pub(super) fn is_reapable(&self) -> bool {
        self.exists && self.nodes.is_empty() && self.next_sequence > 0
    }

    /// Removes the directory. Other clients create it again at once, and create and delete `used` nodes in
    /// it.
    pub(super) fn reap(&mut self, used: i32) -> Vec<(usize, Message)> {
        self.next_sequence = used;
        self.exists = used > 0;
        std::mem::take(&mut self.directory_watches)
            .into_iter()
            .map(|session| (session, Message::DirectoryFired))
            .collect()
    }

    /// How many creates the directory has seen.
    pub(super) fn created(&self) -> i32 {
        self.next_sequence
    }
}
