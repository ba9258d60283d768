//! What can go wrong, and what each part of an error tells.
//!
//! Every call of the library ends with [`Error`](crate::Error), or with an error of its own that names
//! what only that call can meet. [`Outcome`] says whether the servers carried the request out, and
//! [`retry()`] makes a call again by it.

#[doc(inline)]
pub use crate::counter::CounterError;
#[doc(inline)]
pub use crate::id_blocks::IdBlocksError;
#[doc(inline)]
pub use crate::lock::ReleaseErrors;
#[doc(inline)]
pub use crate::migrations::MigrationError;
#[doc(inline)]
pub use crate::multi_lock::MultiLockError;
#[doc(inline)]
pub use crate::once_cell::InitError;
#[doc(inline)]
pub use crate::owner::{NoOwner, WouldDeadlock};
#[doc(inline)]
pub use crate::rate_limiter::RateLimiterError;
#[doc(inline)]
pub use crate::rw_lock::{NotAlone, UpgradeError};
#[doc(inline)]
pub use crate::schedule::ScheduleError;
#[doc(inline)]
pub use crate::semaphore::SemaphoreError;
#[doc(inline)]
pub use crate::shared_value::SharedValueError;
#[doc(inline)]
pub use crate::table::TableError;
#[doc(inline)]
pub use crate::work_queue::WorkQueueError;
#[doc(inline)]
pub use lockkeeper_core::{
    Closed, ConfigError, ConnectError, ConnectStringError, DecodeError, DecodeFailure, ErrorKind, Exceeded,
    FencingTokenError, LossReason, Operation, Outcome, PathError, Phase, PresenceError, RecipeError, Refusal,
    RevokeError, TxnError, ViewError, WholePath, retry,
};
