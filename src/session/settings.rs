use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use super::hang_ups::HangUps;
use super::zxid_history::ZxidHistory;
use crate::config::lease_renewal::LeaseRenewal;
use crate::config::retry::RetryPolicy;
use crate::environment::Environment;

/// The settings of a manager that its sessions need.
#[derive(Debug)]
pub(crate) struct SessionSettings {
    pub(crate) operation_timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) tick: Duration,
    /// Of fencing tokens.
    pub(crate) token_generation: u32,
    pub(crate) lease_keep_alive: Duration,
    pub(crate) lease_renewal: LeaseRenewal,
    /// The largest size of the paths of the ephemeral nodes of one session.
    pub(crate) node_bytes_max: usize,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) purpose: SessionPurpose,
    /// Whether the servers have said that they do not support container nodes.
    pub(crate) lacks_containers: AtomicBool,
    /// Whether the servers have said that they do not read several nodes by one request.
    pub(crate) lacks_multi_read: AtomicBool,
    /// The connections that broke at requests which some servers do not know.
    pub(crate) hang_ups: Arc<Mutex<HangUps>>,
    /// The transactions that the manager has seen, in all its sessions.
    pub(crate) zxids: Arc<ZxidHistory>,
}

/// What a session is for. Log lines about a session name it, in the field `purpose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionPurpose {
    /// Locks, and everything else that has nodes, reads or writes.
    Locks,
    /// The views of a manager: no hold rests on it.
    Views,
}

impl Display for SessionPurpose {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Locks => "locks",
            Self::Views => "views",
        })
    }
}
