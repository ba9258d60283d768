//! The core of the [`lockkeeper`](https://docs.rs/lockkeeper) recipes: a connection to an Apache ZooKeeper
//! ensemble that opens new sessions as needed, and queues of contenders.
//!
//! **To acquire a lock, use the crate `lockkeeper`.** It re-exports everything that its users need from this
//! crate. This crate is for authors of further recipes.
//!
//! * [`ConnectionManager`]: opens one session after the other, publishes its state, and counts the holds.
//! * [`LockQueue`], [`Ticket`], [`Hold`]: the queue of sequential nodes, the one primitive of all recipes.
//! * [`Register`]: one node whose changes are applied exactly once.
//! * [`Rendezvous`]: members that enter together and leave together.
//! * [`Txn`]: writes that are committed only while a hold is valid. [`Znodes`]: reads and writes of other
//!   nodes.
//!
//! Data flows one way: application → recipe → [`LockQueue`] → [`ConnectionManager`] → client.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod author;
mod config;
mod environment;
mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod hold;
mod inspect;
mod local;
mod manager;
mod presence;
mod queue;
mod register;
mod rendezvous;
mod retry;
mod revoker;
mod session;
mod shared_future;
#[cfg(feature = "__simulation")]
#[doc(hidden)]
pub mod simulation;
mod sync;
mod telemetry;
mod time;
mod txn;
mod view;
mod watch;
mod wire;
mod znode;
mod znodes;
#[cfg(test)]
mod znodes_test;

pub use self::author::{HoldExt, ManagerExt};
pub use self::config::acl::{Acl, Permissions};
pub use self::config::connect_string::{ConnectString, ConnectStringError};
pub use self::config::lease_renewal::LeaseRenewal;
pub use self::config::limits::{LONG_WAIT, NODE_BYTES_MAX, REQUEST_BYTES_MAX};
pub use self::config::retry::RetryPolicy;
#[cfg(feature = "tls")]
pub use self::config::tls::Tls;
pub use self::error::recipe::RecipeError;
pub use self::error::release::ReleaseError;
#[doc(hidden)]
pub use lockkeeper_lock::count_of;
#[doc(inline)]
pub use lockkeeper_lock::{BootInstant, Deadline, ErrorKind, FencingToken, FencingTokenError};

pub use self::error::{
    ConfigError, ConnectError, Error, HeldHere, LossReason, Lost, Operation, Outcome, Phase, Refusal,
    TxnError,
};
pub use self::hold::{Changes, DetachedNode, Hold, NamedNode, NodeMonitor, Read, ReadResult};
pub use self::inspect::{AgeClock, ContenderInfo, Identity, NodeInfo, Role};
pub use self::manager::{
    ConnectionManager, ConnectionManagerBuilder, ConnectionPool, Health, HoldEvent, HoldEvents, State,
    Transition, Transitions, WeakConnectionManager, with_manager,
};
pub use self::presence::{OnDeletion, Presence, PresenceError, PresenceState};
pub use self::queue::{AcquireSpan, Exchange, ExchangeError, Exchanged, LockQueue, MultiQueue, Rule, Ticket};
pub use self::register::{Change, Current, Register, RegisterInfo};
pub use self::rendezvous::{Admitted, Rendezvous, RendezvousInfo};
pub use self::retry::retry;
pub use self::revoker::{RevokeError, Revoker};
pub use self::session::Epoch;
#[cfg(feature = "metrics")]
pub use self::telemetry::metrics;
pub use self::telemetry::{count_missing_instance, count_owner_deadlock, count_unreadable_instance};
pub use self::txn::{Once, OnceTxn, Txn, TxnResult};
pub use self::view::{
    DecodeError, DecodeFailure, Difference, Exceeded, Follow, Snapshot, TreeScope, View, ViewBounds,
    ViewChange, ViewChanges, ViewError, ViewNode, ViewPoint, ViewScope, ViewState,
};
pub use self::watch::{Closed, Watch, WatchSource};
pub use self::wire::{CreateMode, CreateOptions, Stat};
pub use self::znode::name::{Kind, LABEL_BYTES_MAX, Label, LabelError, NodeName};
pub use self::znode::path::{IntoPath, PATH_BYTES_MAX, PathError, ZnodePath};
pub use self::znode::version::Version;
pub use self::znode::whole_path::WholePath;
pub use self::znode::zxid::Zxid;
pub use self::znodes::{CreatedNode, DeletedNodes, Znodes};
