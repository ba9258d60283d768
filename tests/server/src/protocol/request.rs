use bytes::Bytes;

use super::{CreateOp, Op, ReadOp, WriteOp};
use crate::tree::{Acl, WatchKind, WatchMode};

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Make, delete, set or check one node.
    Write(WriteOp),
    /// All of these or none.
    Multi(Vec<WriteOp>),
    /// Each of these, whatever becomes of the others.
    MultiRead(Vec<ReadOp>),
    /// Metadata of a node.
    Exists {
        /// Path of the node.
        path: String,
        /// Whether to watch it, present or not.
        watch: bool,
    },
    /// Data and metadata of a node.
    GetData {
        /// Path of the node.
        path: String,
        /// Whether to watch it, if present.
        watch: bool,
    },
    /// Names of the children of a node.
    GetChildren {
        /// Path of the node.
        path: String,
        /// Whether to watch the list.
        watch: bool,
        /// Whether to answer with metadata too (`getChildren2`).
        with_stat: bool,
    },
    /// Number of nodes below a node.
    CountDescendants {
        /// Path of the node.
        path: String,
    },
    /// Ephemeral nodes of the own session below a prefix.
    Ephemerals {
        /// The prefix, matched as text.
        prefix: String,
    },
    /// Access list of a node.
    GetAcl {
        /// Path of the node.
        path: String,
    },
    /// Replace the access list of a node of that ACL version (−1: any).
    SetAcl {
        /// Path of the node.
        path: String,
        /// The new list.
        acl: Vec<Acl>,
        /// Expected ACL version.
        version: i32,
    },
    /// Bring the server up to date.
    Sync {
        /// Any path; it is only echoed.
        path: String,
    },
    /// Keep the session alive.
    Ping,
    /// Add an identity to the connection.
    Auth {
        /// `digest` or `ip`.
        scheme: String,
        /// Credentials: `user:password` for `digest`.
        credentials: Option<Bytes>,
    },
    /// Set watches again after a reconnect.
    SetWatches {
        /// Newest transaction the client has seen.
        seen: i64,
        /// Nodes watched for changes.
        data: Vec<String>,
        /// Absent nodes watched for creation.
        absent: Vec<String>,
        /// Lists of children watched.
        children: Vec<String>,
        /// Persistent watches and recursive ones, in `setWatches2`.
        persistent: Option<(Vec<String>, Vec<String>)>,
    },
    /// Set a persistent watch.
    AddWatch {
        /// Path of the node.
        path: String,
        /// The depth of the watch.
        mode: WatchMode,
    },
    /// Remove the own watches of a path.
    RemoveWatches {
        /// Path of the node.
        path: String,
        /// Which of them.
        kind: WatchKind,
    },
    /// Ask whether a path is watched.
    CheckWatches {
        /// Path of the node.
        path: String,
        /// By which kind of watch.
        kind: WatchKind,
    },
    /// Identities of the connection.
    WhoAmI,
    /// End the session.
    CloseSession,
    /// Change the ensemble; refused.
    Reconfig,
    /// A request whose path is null, of an operation that does not treat that as a malformed request:
    /// `setData`, `setACL`, `check`, `sync`, `addWatch` or `removeWatches`.
    NullPath {
        /// The operation.
        op: Op,
    },
    /// An operation whose bytes could not be decoded. The real server spends a transaction number on it if it
    /// is a write.
    Malformed {
        /// The operation, as far as it could be decoded.
        op: Op,
    },
    /// An operation this server does not have.
    Unknown {
        /// Its number.
        opcode: i32,
    },
}

impl Request {
    /// The kind of request.
    pub fn op(&self) -> Op {
        match self {
            Self::Write(WriteOp::Create(create)) => match create.op {
                CreateOp::Create => Op::Create,
                CreateOp::Create2 => Op::Create2,
                CreateOp::Container => Op::CreateContainer,
                CreateOp::Ttl => Op::CreateTtl,
            },
            Self::Write(WriteOp::Delete { .. }) => Op::Delete,
            Self::Write(WriteOp::SetData { .. }) => Op::SetData,
            Self::Write(WriteOp::Check { .. }) => Op::Check,
            Self::Multi(_) => Op::Multi,
            Self::MultiRead(_) => Op::MultiRead,
            Self::Exists { .. } => Op::Exists,
            Self::GetData { .. } => Op::GetData,
            Self::GetChildren { with_stat: false, .. } => Op::GetChildren,
            Self::GetChildren { with_stat: true, .. } => Op::GetChildren2,
            Self::CountDescendants { .. } => Op::GetAllChildrenNumber,
            Self::Ephemerals { .. } => Op::GetEphemerals,
            Self::GetAcl { .. } => Op::GetAcl,
            Self::SetAcl { .. } => Op::SetAcl,
            Self::Sync { .. } => Op::Sync,
            Self::Ping => Op::Ping,
            Self::Auth { .. } => Op::Auth,
            Self::SetWatches { persistent: None, .. } => Op::SetWatches,
            Self::SetWatches { persistent: Some(_), .. } => Op::SetWatches2,
            Self::AddWatch { .. } => Op::AddWatch,
            Self::RemoveWatches { .. } => Op::RemoveWatches,
            Self::CheckWatches { .. } => Op::CheckWatches,
            Self::WhoAmI => Op::WhoAmI,
            Self::CloseSession => Op::CloseSession,
            Self::Reconfig => Op::Reconfig,
            Self::NullPath { op } | Self::Malformed { op } => *op,
            Self::Unknown { .. } => Op::Unknown,
        }
    }

    /// The paths it names.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Write(op) => vec![op.path()],
            Self::Multi(ops) => ops.iter().map(WriteOp::path).collect(),
            Self::MultiRead(ops) => ops.iter().map(ReadOp::path).collect(),
            Self::Exists { path, .. }
            | Self::GetData { path, .. }
            | Self::GetChildren { path, .. }
            | Self::CountDescendants { path }
            | Self::Ephemerals { prefix: path }
            | Self::GetAcl { path }
            | Self::SetAcl { path, .. }
            | Self::Sync { path }
            | Self::AddWatch { path, .. }
            | Self::RemoveWatches { path, .. }
            | Self::CheckWatches { path, .. } => vec![path],
            Self::SetWatches { data, absent, children, persistent, .. } => {
                let (all, recursive) = persistent.as_ref().map_or((&[][..], &[][..]), |(p, r)| (p, r));
                [data, absent, children, all, recursive].into_iter().flatten().map(String::as_str).collect()
            }
            Self::Ping
            | Self::Auth { .. }
            | Self::WhoAmI
            | Self::CloseSession
            | Self::Reconfig
            | Self::NullPath { .. }
            | Self::Malformed { .. }
            | Self::Unknown { .. } => Vec::new(),
        }
    }

    /// Whether the leader handles it, so that it uses a transaction number even when it fails.
    pub fn is_write(&self) -> bool {
        match self {
            Self::Write(_) | Self::Multi(_) | Self::SetAcl { .. } | Self::CloseSession | Self::Reconfig => {
                true
            }
            Self::NullPath { op } | Self::Malformed { op } => {
                op.is_create() || matches!(op, Op::Delete | Op::SetData | Op::SetAcl | Op::Check | Op::Multi)
            }
            _ => false,
        }
    }
}
