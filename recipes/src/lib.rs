//! Distributed locks on [Apache ZooKeeper](https://zookeeper.apache.org), in async Rust.
//!
//! Many processes on many machines agree which of them holds a lock right now. The promises, and what no lock
//! can promise, are short and exact: see the README and `docs/failure-model.md`. The node layout is that of
//! Apache Curator, so Java and Rust services share one lock.
//!
//! * [`ConnectionManager`]: connects once, for every lock of the process. [`ConnectionPool`]: several
//!   sessions, for very many locks.
//! * [`Mutex`]: one holder at a time.
//! * [`ReentrantMutex`]: a mutex that its [`Owner`] can acquire again.
//! * [`RwLock`]: many readers, or one writer.
//! * [`Semaphore`]: a limited number of permits at a time; a [`Lease`] holds one or more.
//! * [`MultiLock`]: several locks at once, without deadlock. [`Lock`]: one interface over all locks.
//! * [`Election`]: one leader at a time; its [`Leadership`] ends before the next one begins.
//! * [`RateLimiter`]: a limited number of starts in any window of time.
//! * [`Inspection`]: the holders and the waiters of a lock, with their ages.
//! * [`Revoker`]: asks a holder to release, or removes a lock by force.
//! * [`blocking`]: the same locks for programs without async.
//! * [`Guard`]: the methods of every guard. It tells whether the guard is valid and when it is lost, has the
//!   [`FencingToken`], and commits writes only while its node exists ([`Txn`]).
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = lockkeeper_testserver::TestServer::start().await?;
//! # let servers = server.connect_string();
//! use lockkeeper::{ConnectionManager, Mutex};
//!
//! let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
//! let mutex = Mutex::new(&manager, "/locks/nightly-report")?;
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

pub mod blocking;
#[cfg(test)]
mod bounds_test;
mod election;
mod inspection;
mod limits;
mod lock;
mod multi_lock;
mod mutex;
mod owner;
mod rate_limiter;
mod reentrant_mutex;
mod rw_lock;
mod semaphore;

pub use self::election::{Election, Leader, LeaderWatch, Leadership};
pub use self::inspection::Inspection;
pub use self::lock::{Guard, Lock, LockGuard, QueueTicket, ReleaseErrors};
pub use self::multi_lock::{MultiLock, MultiLockBuilder, MultiLockError};
pub use self::mutex::{HandOffPolicy, Mutex, MutexGuard, MutexTicket};
pub use self::owner::{NoOwner, Owner};
pub use self::rate_limiter::{Admission, RateLimiter, RateLimiterError};
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard, ReentrantTicket};
pub use self::rw_lock::{ReadGuard, ReadTicket, RwLock, RwLockSide, UpgradeError, WriteGuard, WriteTicket};
pub use self::semaphore::{Lease, Permits, Semaphore, SemaphoreError, SemaphoreTicket, SharedLimit};
#[cfg(feature = "tls")]
#[doc(inline)]
pub use lockkeeper_core::Tls;
#[cfg(feature = "metrics")]
#[doc(inline)]
pub use lockkeeper_core::metrics;
#[doc(inline)]
pub use lockkeeper_core::{
    ANY_VERSION, Acl, AgeClock, BootInstant, ConfigError, ConnectError, ConnectString, ConnectStringError,
    ConnectionManager, ConnectionManagerBuilder, ConnectionPool, ContenderInfo, CreateMode, Deadline, Epoch,
    Error, ErrorKind, FencingToken, Health, Hold, HoldEvent, HoldEvents, Identity, IntoPath, Kind,
    LeaseRenewal, LossReason, Lost, Once, OnceTxn, Operation, Outcome, PathError, Permissions, Phase,
    RecipeError, Refusal, ReleaseError, RetryPolicy, RevokeError, Revoker, Role, Stat, State, Transition,
    Transitions, Txn, TxnError, TxnResult, WholePath, ZnodePath, Znodes,
};
