//! The seam to the client crate: the dozen calls we use, as one trait.
//!
//! Every method sends its request *when it is called*; the returned future only waits for the reply. Two
//! calls in a row are therefore pipelined in that order, and a dropped future does not take its request back.

#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

mod error;
mod in_flight;
mod nodelay;
mod zookeeper;

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::error::LossReason;

pub use self::error::{MultiError, WireError};
pub(crate) use self::zookeeper::ZooKeeper;

/// A reply that is on its way.
pub type Reply<T> = BoxFuture<'static, Result<T, WireError>>;

/// Fires once, when the watched node changes or the session ends.
pub type Watch = BoxFuture<'static, WatchEvent>;

/// Opens sessions.
pub trait Backend: Debug + Send + Sync + 'static {
    /// Opens one new session.
    fn open(&self) -> Reply<Arc<dyn Wire>>;
    /// What may be the matter when no server gives a session.
    fn no_answer_hint(&self) -> &'static str {
        "no answer; is ZooKeeper running there?"
    }
}

/// One session with the server, over one connection after another.
pub trait Wire: Debug + Send + Sync + 'static {
    /// The session's number.
    fn session_id(&self) -> i64;
    /// The timeout the server granted.
    fn session_timeout(&self) -> std::time::Duration;
    /// The link as it is now.
    fn link(&self) -> Link;
    /// How many interruptions the link has had, seen before any reply that came after them.
    fn connection_id(&self) -> u64;
    /// Resolves when the link changes from what it was when the call was made, at the latest at its next
    /// change.
    fn link_changed(&self) -> BoxFuture<'static, ()>;
    /// Resolves when the session is over, with [`LossReason::Closed`] only if the server closed it as we
    /// asked; does not keep it alive.
    fn ended(&self) -> BoxFuture<'static, LossReason>;

    /// Creates a node.
    fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Reply<Created>;
    /// Deletes a node, if it has this version.
    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()>;
    /// A node's stat, if there is such a node.
    fn exists(&self, path: &str) -> Reply<Option<Stat>>;
    /// A node's data.
    fn data(&self, path: &str) -> Reply<(Vec<u8>, Stat)>;
    /// A node's data, and a watch on it. Without such a node there is no watch.
    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)>;
    /// Writes a node's data, if it has this version.
    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat>;
    /// The names of a node's children.
    fn children(&self, path: &str) -> Reply<Vec<String>>;
    /// The names of a node's children, and its stat.
    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)>;
    /// The names of a node's children, its stat, and a watch on what children it has. Without such a node
    /// there is no watch.
    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)>;
    /// The children of several nodes at one instant; `None` for a node there is not.
    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>>;
    /// Brings the server up to date.
    fn sync(&self, path: &str) -> Reply<()>;
    /// All operations or none.
    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>>;
    /// The ephemeral nodes of this very session whose path begins with `prefix`.
    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>>;
    /// Called whenever the link came up: what can be tuned on a fresh connection.
    fn on_connected(&self) {}
    /// The session is given up: what still waits for replies must not keep it alive.
    fn abandon(&self) {}
}

/// The link between us and the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Connected.
    Up,
    /// Not connected; the session may live on.
    Down,
    /// For ever: the session is over.
    Ended(LossReason),
}

/// What a watch saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The node is gone.
    Deleted,
    /// The node was written, or has other children.
    Changed,
    /// Nothing more will be seen on this session.
    SessionEnded,
}

/// How a node comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateMode {
    /// Stays until it is deleted.
    Persistent,
    /// Stays until it is deleted; a number is appended to its name.
    PersistentSequential,
    /// Goes with the session.
    Ephemeral,
    /// Goes with the session; a number is appended to its name.
    EphemeralSequential,
    /// The server deletes it some time after its last child went.
    Container,
}

/// What the server tells about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that created it.
    pub czxid: i64,
    /// The transaction that last wrote its data.
    pub mzxid: i64,
    /// When it was created, in milliseconds since 1970 by the leading server's clock.
    pub ctime: i64,
    /// When its data was last written, by the same kind of clock.
    pub mtime: i64,
    /// How often its data was written.
    pub version: i32,
    /// How often a child of it was made or deleted (ZooKeeper's `cversion`).
    pub child_version: i32,
    /// The session it goes with; 0 for a node that stays.
    pub ephemeral_owner: i64,
    /// How many bytes its data has.
    pub data_length: i32,
    /// How many children it has.
    pub children: i32,
}

impl Stat {
    /// How many children it ever had: the number that the next sequential child gets, unless numbers are near
    /// their end.
    #[must_use]
    pub fn children_made(&self) -> i32 {
        // Whoever is not there was made and deleted, and counts twice. The sum is even, and may have left its
        // 32 bits.
        (self.child_version.wrapping_add(self.children).cast_unsigned() / 2).cast_signed()
    }
}

/// A node that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its path, with the number the server appended.
    pub path: String,
    /// Missing where the server does not say: before 3.5, and in a transaction before 3.8.2 (ZOOKEEPER-4026).
    pub stat: Option<Stat>,
}

/// One write of a transaction; paths are whole paths.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// The node must be there, in this version.
    Check {
        /// Which node.
        path: String,
        /// `None`: any.
        version: Option<i32>,
    },
    /// Makes a node.
    Create {
        /// Where.
        path: String,
        /// What is in it.
        data: Vec<u8>,
        /// How it comes and goes.
        mode: CreateMode,
    },
    /// Writes a node's data.
    SetData {
        /// Which node.
        path: String,
        /// What is to be in it.
        data: Vec<u8>,
        /// `None`: any.
        version: Option<i32>,
    },
    /// Deletes a node.
    Delete {
        /// Which node.
        path: String,
        /// `None`: any.
        version: Option<i32>,
    },
}

/// What one write of a transaction gave.
#[derive(Clone, Debug)]
pub enum WriteResult {
    /// A check that held, or a deletion.
    Done,
    /// The node made.
    Created(Created),
    /// The stat of the node written.
    Written(Stat),
}

impl WriteResult {
    /// When it was done, by the leading server's clock, if it says so.
    pub(crate) fn time(&self) -> Option<i64> {
        match self {
            Self::Done => None,
            Self::Created(created) => created.stat.map(|stat| stat.ctime),
            Self::Written(stat) => Some(stat.mtime),
        }
    }
}
