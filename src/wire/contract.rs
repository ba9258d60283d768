use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::create_options::CreateOptions;
use super::error::{MultiError, WireError};
use super::link::Link;
use super::stat::Stat;
use super::watch::{ChangedPaths, Watch, WatchDepth};
use super::write::{Created, WriteOp, WriteResult};
use crate::config::acl::Acl;
use crate::config::connect_string::ConnectString;
use crate::error::{ConfigError, LossReason, Refusal};

/// A reply that is in flight.
pub type Reply<T> = BoxFuture<'static, Result<T, WireError>>;

/// A node's data and stat.
pub type Data = (Vec<u8>, Stat);

/// Opens sessions.
pub trait Backend: Debug + Send + Sync + 'static {
    /// Opens one new session.
    fn open(&self) -> Reply<Arc<dyn Wire>>;
    /// From now on sessions are opened at these servers, and each open session moves to one of them: its link
    /// is down when this returns, until it is there. The chroot does not matter.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the servers do not fit the other settings. Nothing has changed then.
    fn set_servers(&self, _servers: &ConnectString) -> Result<(), ConfigError> {
        Ok(())
    }
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
    fn session_timeout(&self) -> Duration;
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
    fn create(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created>;
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
    /// A node's access list, and the version of the list.
    fn acl(&self, path: &str) -> Reply<(Acl, i32)>;
    /// Sets a node's access list, if the list has this version. Returns its new version.
    fn set_acl(&self, path: &str, acl: &Acl, version: Option<i32>) -> Reply<i32>;
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
