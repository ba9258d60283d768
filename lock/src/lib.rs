//! The common parts of the locks of all engines.
//!
//! Code that takes any lock takes a [`&dyn Lock`](Lock): a lock of `lockkeeper` on Apache ZooKeeper, or
//! one of `lockkeeper-redis`. Both crates re-export what they use of this one.
//!
//! * [`Lock`], [`LockGuard`], [`LockError`]: the interface for users. [`HeldLock`] and [`EngineError`] are
//!   for authors of engines.
//! * [`Owner`]: the owner of reentrant holds.
//! * [`FencingToken`]: what a resource compares, so that it refuses the writes of an earlier holder.
//! * [`Deadline`], [`BootInstant`]: the limit of a wait, and the clock of leases.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod boot;
mod count;
mod deadline;
mod error;
mod error_kind;
mod fencing_token;
mod guard;
mod lock;
mod owner;

pub use self::boot::BootInstant;
#[doc(hidden)]
pub use self::count::count_of;
pub use self::deadline::Deadline;
pub use self::error::{EngineError, LockError};
pub use self::error_kind::ErrorKind;
pub use self::fencing_token::{FencingToken, FencingTokenError};
pub use self::guard::{HeldLock, LockGuard};
pub use self::lock::Lock;
pub use self::owner::{Owner, OwnerId};
