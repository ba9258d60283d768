//! The interface to the client crate: a dozen calls in one trait.
//!
//! Every method sends its request *when it is called*; the returned future only waits for the reply. So two
//! calls in a row are pipelined in that order, and dropping a future does not cancel its request.

#![cfg_attr(not(feature = "__simulation"), allow(unreachable_pub, reason = "reachable for the simulation"))]

mod error;
mod in_flight;
mod nodelay;
mod zookeeper;

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::error::{LossReason, Refusal};

pub use self::error::{MultiError, WireError};
pub(crate) use self::zookeeper::ZooKeeper;

/// A reply that is in flight.
pub type Reply<T> = BoxFuture<'static, Result<T, WireError>>;

/// Fires once, when the watched node changes or the session ends.
pub type Watch = BoxFuture<'static, WatchEvent>;

/// The paths of the nodes that changed, in the order of the events. It ends when the connection breaks: what
/// happens after that is not in it.
pub type ChangedPaths = BoxStream<'static, String>;

/// A node's data and stat.
pub type Data = (Vec<u8>, Stat);

/// Opens sessions.
pub trait Backend: Debug + Send + Sync + 'static {
    /// Opens one new session.
    fn open(&self) -> Reply<Arc<dyn Wire>>;
    /// A likely cause when no server grants a session.
    fn no_answer_hint(&self) -> &'static str {
        "no answer; is ZooKeeper running there?"
    }
    /// Looks at each server without a session, and returns the faults that it found. `None` if the backend
    /// cannot look.
    fn look_at_servers(&self) -> Option<BoxFuture<'static, Vec<ServerFault>>> {
        None
    }
}

/// Why a server cannot grant a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFault {
    /// The server, as the connect string names it.
    pub server: String,
    /// The fault, and what to check.
    pub cause: String,
}

/// One session, over one connection after the other.
pub trait Wire: Debug + Send + Sync + 'static {
    /// The session id.
    fn session_id(&self) -> i64;
    /// The timeout that the server granted.
    fn session_timeout(&self) -> std::time::Duration;
    /// The present state of the connection.
    fn link(&self) -> Link;
    /// The number of interruptions of the connection. It is updated before any reply that came after an
    /// interruption.
    fn connection_id(&self) -> u64;
    /// Resolves when the link differs from the link at the time of the call, or changes the next time.
    fn link_changed(&self) -> BoxFuture<'static, ()>;
    /// Resolves when the session is over. The reason is [`LossReason::Closed`] only if the server confirmed
    /// our close. The future does not keep the session alive.
    fn ended(&self) -> BoxFuture<'static, LossReason>;

    /// Creates a node.
    fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Reply<Created>;
    /// Deletes a node, if it has this version.
    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()>;
    /// A node's stat, if the node exists.
    fn exists(&self, path: &str) -> Reply<Option<Stat>>;
    /// A node's data.
    fn data(&self, path: &str) -> Reply<(Vec<u8>, Stat)>;
    /// A node's data, and a watch on it. If the node does not exist, no watch is set.
    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)>;
    /// Writes a node's data, if it has this version.
    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat>;
    /// The names of a node's children.
    fn children(&self, path: &str) -> Reply<Vec<String>>;
    /// The names of a node's children, and its stat.
    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)>;
    /// The names of a node's children, its stat, and a watch on its list of children. If the node does not
    /// exist, no watch is set.
    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)>;
    /// The children of several nodes at one instant; `None` for a node that does not exist.
    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>>;
    /// The data of several nodes at one instant. The server may refuse each of them.
    fn data_of_all(&self, paths: &[String]) -> Reply<Vec<Result<Data, Refusal>>>;
    /// Sets a watch that stays until its stream is dropped or the connection breaks, whether the node
    /// exists or not: on the node alone, or on it and everything below. The last one that a session sets
    /// on a path decides for all of that path (ZOOKEEPER-4466).
    fn watch_all_changes(&self, path: &str, depth: WatchDepth) -> Reply<ChangedPaths>;
    /// Waits until the server has caught up with the leader.
    fn sync(&self, path: &str) -> Reply<()>;
    /// Applies all operations or none.
    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>>;
    /// The ephemeral nodes of this session whose path begins with `prefix`.
    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>>;
    /// Called after each connect, to set options of the new connection.
    fn on_connected(&self) {}
    /// The session is abandoned: replies in flight must not keep it alive.
    fn abandon(&self) {}
}

/// The connection to the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Connected.
    Up,
    /// Not connected; the session may still exist.
    Down,
    /// The session is over.
    Ended(LossReason),
}

/// The event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The node was deleted.
    Deleted,
    /// The node's data or its list of children changed.
    Changed,
    /// The session is over; no more events follow.
    SessionEnded,
}

/// How far below its node a watch reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchDepth {
    /// The node alone.
    Node,
    /// The node and everything below.
    Tree,
}

/// The lifetime and naming of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CreateMode {
    /// Exists until it is deleted.
    Persistent,
    /// Exists until it is deleted; the server appends a sequence number to its name.
    PersistentSequential,
    /// Exists until its session ends.
    Ephemeral,
    /// Exists until its session ends; the server appends a sequence number to its name.
    EphemeralSequential,
    /// The server deletes it some time after its last child was deleted.
    Container,
}

/// The server's record of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The id of the transaction that created the node.
    pub czxid: i64,
    /// The id of the transaction that last wrote its data.
    pub mzxid: i64,
    /// The id of the transaction that last created or deleted a child of it.
    pub pzxid: i64,
    /// The creation time, in milliseconds since 1970 by the leader's clock.
    pub ctime: i64,
    /// The time of the last write of its data, by the same kind of clock.
    pub mtime: i64,
    /// The number of writes of its data.
    pub version: i32,
    /// The number of creates and deletes of its children (ZooKeeper's `cversion`).
    pub child_version: i32,
    /// The session that owns an ephemeral node; 0 for any other node.
    pub ephemeral_owner: i64,
    /// The size of its data in bytes.
    pub data_length: i32,
    /// The number of its children.
    pub children: i32,
}

impl Stat {
    /// Whether this is a persistent node that has or had children. A contender and a member never have any.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.ephemeral_owner == 0 && (self.children > 0 || self.child_version != 0)
    }

    /// The number of children that were ever created in this node: the sequence number of the next sequential
    /// child, unless the counter is near its end.
    #[must_use]
    pub fn children_made(&self) -> i32 {
        // A child that no longer exists was created and deleted, so it counts twice. The sum is even, and may
        // have overflowed its 32 bits.
        (self.child_version.wrapping_add(self.children).cast_unsigned() / 2).cast_signed()
    }
}

/// A node that was created.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its path, with the sequence number that the server appended.
    pub path: String,
    /// Missing if the server does not send it: before 3.5, and in a transaction before 3.8.2
    /// (ZOOKEEPER-4026).
    pub stat: Option<Stat>,
}

/// One operation of a transaction. Paths include the chroot.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// The node must exist in this version.
    Check {
        /// The path of the node.
        path: String,
        /// `None`: any version.
        version: Option<i32>,
    },
    /// Creates a node.
    Create {
        /// The path of the node.
        path: String,
        /// The data of the node.
        data: Vec<u8>,
        /// The lifetime and naming of the node.
        mode: CreateMode,
    },
    /// Writes a node's data.
    SetData {
        /// The path of the node.
        path: String,
        /// The new data.
        data: Vec<u8>,
        /// `None`: any version.
        version: Option<i32>,
    },
    /// Deletes a node.
    Delete {
        /// The path of the node.
        path: String,
        /// `None`: any version.
        version: Option<i32>,
    },
}

/// The result of one operation of a transaction.
#[derive(Clone, Debug)]
pub enum WriteResult {
    /// A check that passed, or a delete.
    Done,
    /// The created node.
    Created(Created),
    /// The stat of the written node.
    Written(Stat),
}

impl WriteResult {
    /// The transaction, if this is the answer to a write of a node's data.
    pub(crate) fn written_zxid(&self) -> Option<i64> {
        match self {
            Self::Written(stat) => Some(stat.mzxid),
            Self::Done | Self::Created(_) => None,
        }
    }

    /// The time of the operation by the leader's clock, if the server sent it.
    pub(crate) fn time(&self) -> Option<i64> {
        match self {
            Self::Done => None,
            Self::Created(created) => created.stat.map(|stat| stat.ctime),
            Self::Written(stat) => Some(stat.mtime),
        }
    }
}
