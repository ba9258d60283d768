//! The machinery under the [`lockkeeper`](https://docs.rs/lockkeeper) recipes: a connection to an Apache
//! ZooKeeper ensemble that survives, and lines of contenders that never forget.
//!
//! **To take a lock, use the crate `lockkeeper`**; it re-exports what its users need from here. This crate is
//! for authors of further recipes.
//!
//! * [`ConnectionManager`]: one session after the other, what is known of each, and what is held on it.
//! * [`LockQueue`], [`Ticket`], [`Hold`]: the sequential node, the one primitive under all recipes.
//! * [`Txn`]: writes that are committed only while a hold stands. [`Znodes`]: nodes beside the locks.
//!
//! Data flows one way: application → recipe → [`LockQueue`] → [`ConnectionManager`] → client.

mod config;
mod environment;
mod error;
mod manager;
mod queue;
mod revoker;
mod session;
#[cfg(feature = "__simulation")]
#[doc(hidden)]
pub mod simulation;
mod telemetry;
mod time;
mod txn;
mod wire;
mod znode;
mod znodes;

pub use self::config::acl::{Acl, Permissions};
pub use self::config::connect_string::{ConnectString, ConnectStringError};
pub use self::config::lease_renewal::LeaseRenewal;
pub use self::config::limits::{LONG_WAIT, REQUEST_BYTES_MAX};
pub use self::config::retry::RetryPolicy;
#[cfg(feature = "tls")]
pub use self::config::tls::Tls;
pub use self::error::release::ReleaseError;
pub use self::error::{
    ConfigError, ConnectError, Error, LossReason, Lost, Operation, Outcome, Phase, Refusal,
};
pub use self::manager::{
    ConnectionManager, ConnectionManagerBuilder, ConnectionPool, Health, HoldEvent, HoldEvents, State,
    Transition, Transitions,
};
pub use self::queue::{
    AcquireSpan, AgeClock, Changes, ContenderInfo, DetachedNode, Exchange, ExchangeError, Exchanged, Hold,
    Identity, Kind, LABEL_BYTES_MAX, Label, LabelError, LockQueue, MultiQueue, NodeMonitor, NodeName, Read,
    ReadResult, Role, Rule, Ticket,
};
pub use self::revoker::{RevokeError, Revoker};
pub use self::session::Epoch;
#[cfg(feature = "metrics")]
pub use self::telemetry::metrics;
pub use self::time::boot::BootInstant;
pub use self::time::deadline::Deadline;
pub use self::txn::{ANY_VERSION, Txn, TxnError, TxnResult};
pub use self::wire::{CreateMode, Stat};
pub use self::znode::fencing_token::FencingToken;
pub use self::znode::path::{PATH_BYTES_MAX, PathError, ZnodePath};
pub use self::znodes::Znodes;
