use std::sync::Arc;
use std::time::Duration;

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
}
