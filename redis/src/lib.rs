//! Distributed locks on [Redis](https://redis.io), in async Rust, with the interface of `lockkeeper`.
//!
//! For teams that have Redis and no ZooKeeper. The promises are those that Redis can keep: on one primary
//! that keeps its data, at most one guard of a mutex is valid at a time. A failover to a replica can lose
//! a lock that the replica had not received. So give the [`FencingToken`] to every resource that the lock
//! protects. The README and `docs/failure-model.md` have the promises in full, and `PROTOCOL.md` has every
//! key.
//!
//! * [`ConnectionManager`]: connects once, for every lock of the process.
//! * [`Mutex`]: one holder at a time. It shares its key with `redis-py`'s `Lock`.
//! * [`ReentrantMutex`]: a mutex that its [`Owner`] can acquire again.
//! * [`Semaphore`]: a limited number of permits at a time; a [`Lease`] holds one or more.
//! * [`RateLimiter`]: a limited number of starts in any window of time.
//! * [`Lock`]: one interface over the locks of all engines.
//!
//! # Examples
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use lockkeeper_redis::{ConnectionManager, Mutex};
//!
//! let manager = ConnectionManager::connect("redis://127.0.0.1/").await?;
//! let mutex = Mutex::new(&manager, "locks:nightly-report")?;
//!
//! let guard = mutex.acquire().await?;
//! let report = guard.run(async { "written once" }).await?; // dropped if the lock is lost
//! println!("{report}, fenced by {}", guard.fencing_token());
//! guard.release().await?;
//!
//! manager.shutdown().await?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acquire;
mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod hold;
mod lease;
mod manager;
mod mutex;
mod name;
mod owners;
mod rate_limiter;
mod recipe_error;
mod record;
mod reentrant_mutex;
#[cfg(any(test, feature = "__rules"))]
#[doc(hidden)]
pub mod rule;
mod script;
mod semaphore;
#[cfg(feature = "tls")]
mod tls;

#[doc(inline)]
pub use lockkeeper_lock::{
    BootInstant, Deadline, ErrorKind, FencingToken, Lock, LockError, LockGuard, Owner,
};

pub use self::error::{ConfigError, ConnectError, Error, LossReason, Lost, Phase, ReleaseError};
pub use self::guard::Guard;
pub use self::manager::{ConnectionManager, ConnectionManagerBuilder, State};
pub use self::mutex::{Mutex, MutexGuard};
pub use self::rate_limiter::{Admission, RateLimiter, TryAdmit};
pub use self::recipe_error::{RateLimiterError, SemaphoreError};
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard};
pub use self::semaphore::{Lease, Permits, Semaphore};
#[cfg(feature = "tls")]
pub use self::tls::Tls;
