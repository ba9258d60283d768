//! The machinery under the [`lockkeeper`](https://docs.rs/lockkeeper) recipes: a connection to an Apache ZooKeeper
//! ensemble that survives, and lines of contenders that never forget.
//!
//! **To take a lock, use the crate `lockkeeper`**; it re-exports what its users need from here. This crate is for
//! authors of further recipes.
//!
//! * [`ConnectionManager`]: one session after the other, what is known of each, and what is held on it.
//! * [`Line`], [`Ticket`], [`Hold`]: the sequential node, the one primitive under all recipes.
//! * [`Txn`]: writes that are committed only while a hold stands. [`Znodes`]: nodes beside the locks.
//!
//! Data flows one way: application → recipe → [`Line`] → [`ConnectionManager`] → client.

mod acl;
mod backend;
mod clock;
mod connect_string;
mod deadline;
mod error;
mod host;
mod identity;
mod janitor;
mod lease;
mod manager;
mod meter;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(not(feature = "metrics"))]
#[path = "no_metrics.rs"]
mod metrics;
mod path;
mod release;
mod request_size;
mod retry;
mod revoker;
mod secure;
mod sequence;
mod server_clock;
mod session;
#[cfg(feature = "__simulation")]
#[doc(hidden)]
pub mod simulation;
mod token;
mod txn;
mod znodes;

pub use self::acl::{Acl, Permissions};
pub use self::backend::{CreateMode, Stat};
pub use self::clock::BootInstant;
pub use self::connect_string::{ConnectString, ConnectStringError};
pub use self::deadline::Deadline;
pub use self::error::{
    ConfigError, ConnectError, Error, LossReason, Lost, Operation, Outcome, Phase, Refusal,
};
pub use self::manager::{
    ConfirmWith, ConnectionManager, ConnectionManagerBuilder, ConnectionPool, Health, HoldEvent, HoldEvents,
    State, Transition, Transitions,
};
pub use self::path::{PATH_BYTES_MAX, PathError, ZnodePath};
pub use self::release::ReleaseError;
pub use self::retry::RetryPolicy;
pub use self::revoker::{RevokeError, Revoker};
#[cfg(feature = "tls")]
pub use self::secure::Tls;
pub use self::sequence::{
    AgeClock, Call, Changes, ContenderInfo, Exchange, ExchangeError, Exchanged, Hold, Identity, Kind, Label,
    Line, Lines, Look, NodeName, Outlook, Parked, Role, Rule, Sight, Ticket,
};
pub use self::session::Epoch;
pub use self::token::FencingToken;
pub use self::txn::{ANY_VERSION, Txn, TxnError, TxnResult};
pub use self::znodes::Znodes;
