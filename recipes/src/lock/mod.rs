//! One interface over all locks, for code that works with any of them.

pub(crate) mod any_engine;
mod any_lock;
pub(crate) mod at_head;
mod guard;
mod lock_guard;
mod owned;
mod recipe;
mod ticket;
mod tries;

pub use self::any_lock::Lock;
pub use self::guard::{Guard, HoldSet, SingleHold};
pub(crate) use self::guard::{HoldAccess, HoldRelease, MemberGuard};
pub use self::lock_guard::{LockGuard, ReleaseErrors};
pub(crate) use self::lock_guard::{Members, release};
pub(crate) use self::owned::{OwnerQueued, OwnerShare, Reading, Reentrant, Writing};
pub(crate) use self::recipe::{BatchEntry, Entered, LockRequest, Recipe, Sealed};
pub(crate) use self::ticket::QueueWait;
pub use self::ticket::{QueueTicket, Queued};
