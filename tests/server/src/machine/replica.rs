use std::collections::{BTreeMap, VecDeque};

use super::ClientId;
use crate::protocol::{ConnectRequest, Request};
use crate::tree::{Change, Tree, Watches};

/// How a server behaves that was cut off from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// As a follower that has lost its leader and has not noticed: reads show the past, pings are answered,
    /// writes and syncs wait.
    Stale,
    /// As a leader that was replaced and has not noticed: the same, but a sync is answered at once, and shows
    /// the past.
    Deposed,
}

/// One committed transaction, as a server that was away catches up with it.
#[derive(Debug, Clone)]
pub(super) struct Txn {
    pub(super) zxid: i64,
    pub(super) time: i64,
    pub(super) changes: Vec<Change>,
    /// The session it ended.
    pub(super) ended: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) enum Waiting {
    Connect(ConnectRequest),
    Request(i32, Request),
}

/// The past that a cut-off server shows.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub(super) isolation: Isolation,
    pub(super) tree: Tree,
    pub(super) zxid: i64,
    pub(super) missed: Vec<Txn>,
    pub(super) waiting: VecDeque<(ClientId, Waiting)>,
    /// The leader has asked which sessions are alive since.
    pub(super) is_pinged: bool,
}

/// One server: the watches of its clients, and its own past if it is cut off.
#[derive(Debug, Clone, Default)]
pub(super) struct Replica {
    pub(super) watches: Watches,
    pub(super) past: Option<Past>,
    /// Live sessions since the last report to the first server, with their timeouts.
    pub(super) touched: BTreeMap<i64, i32>,
    /// Whether its process is away.
    pub(super) stopped: bool,
}
