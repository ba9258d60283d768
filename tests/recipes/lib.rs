//! The recipes as the test rings see them: one file for each recipe, with its [adapters](Adapter) and its
//! grants.
//!
//! A ring takes a lock through an adapter, and judges the grant by its [claims](Claim). A new recipe is a
//! file here, and its rows in `rings.rs`: one for each ring that runs it.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod adapter;
mod additions;
pub mod election;
mod grant;
pub mod handoff;
pub mod multi_lock;
pub mod mutex;
pub mod partition;
pub mod rate_limiter;
pub mod reentrant_mutex;
mod rings;
pub mod rw_lock;
pub mod schedule;
pub mod semaphore;
mod target;

pub use self::adapter::{AcquireMode, Adapter, AnyAdapter, Seen, Taking};
pub use self::additions::{Addition, AdditionEnd, judge_additions, judge_additions_to_several};
pub use self::grant::{Claim, DueSlot, Grant, Granted, Share, Starts};
pub use self::handoff::{SharedLock, SharedLocks};
pub use self::rings::{FAMILIES, Family, LOCKS, SOAK_LOCKS, SoakLock};
pub use self::target::Target;
