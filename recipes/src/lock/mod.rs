//! One interface over all locks, for code that works with any of them.

pub(crate) mod any_engine;
pub(crate) mod at_head;
mod guard;
mod multi_lock_guard;
mod owned;
mod recipe;
mod ticket;
mod tries;
mod zookeeper_lock;

pub(crate) use self::guard::{AcquiredAt, HoldAccess, HoldRelease, MemberGuard};
pub use self::guard::{Guard, HoldSet, SingleHold};
pub(crate) use self::multi_lock_guard::{Members, release};
pub use self::multi_lock_guard::{MultiLockGuard, ReleaseErrors};
pub(crate) use self::owned::{OwnerQueued, OwnerShare, Reading, Reentrant, Writing};
pub(crate) use self::recipe::{BatchEntry, Entered, LockRequest, Recipe, Sealed};
pub(crate) use self::ticket::QueueWait;
pub use self::ticket::{QueueTicket, Queued};
pub use self::zookeeper_lock::ZooKeeperLock;
