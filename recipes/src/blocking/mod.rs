//! The same locks for programs without async: each call blocks its thread.
//!
//! The names are those of the async face, and so are promises, fairness, layout and cost: a thread with a lock from here and
//! a task with one from there stand in one line. Guards are owned. They may be sent to other threads, but for those of a
//! [`ReentrantMutex`], whose owner is the thread. Dropping one releases in the background, as ever.
//!
//! # Threads
//!
//! A [`ConnectionManager`] has one thread of its own, called `lockkeeper`, which does all that goes on in the background; a
//! [`ConnectionPool`] has one for all its managers. It ends when the last handle, lock and guard are gone and every session is
//! closed. The caller's runtime, if there is one, does nothing for it: so a call that blocks a thread of that runtime never
//! waits for the runtime itself.
//!
//! # Within an async runtime
//!
//! In the midst of an async task a blocked thread keeps other tasks from running, among them, perhaps, the one that holds
//! the lock. What may wait is refused there, before anything is sent, with [`ConfigError::CannotBlock`]: call it from
//! a thread, `tokio::task::spawn_blocking` or `block_in_place`, or take the async face. Giving back always works:
//! `release()` and `shutdown()` block for the time the server takes to answer.
//!
//! Seen are tasks of tokio, by their cooperative budget: not those of other runtimes, nor what runs in
//! `tokio::task::unconstrained`. There such a call blocks.
//!
//! # Giving up
//!
//! A thread that waits cannot be cancelled: give it a timeout. [`ConnectionManager::shutdown`], called from another thread,
//! ends all waits with [`Error::Closed`]. Nor can the work of a thread be dropped when its lock is lost, as
//! [`Hold::run`](crate::Hold::run) does with a future: look at [`Guard::check`] between its steps, and write by
//! [`Guard::txn`] or with the fencing token.
//!
//! # The rest
//!
//! What has no blocking counterpart (nodes beside the locks, tickets, inspections, revocation) is reached through
//! [`ConnectionManager::as_async`] and [`ConnectionManager::block_on`].
//!
//! # Examples
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
//! # let servers = server.connect_string();
//! use lockkeeper::blocking::{ConnectionManager, Mutex};
//!
//! let manager = ConnectionManager::connect(&servers)?; // host:port,host:port,…
//! let mutex = Mutex::new(&manager, "/locks/nightly-report")?;
//!
//! let guard = mutex.acquire()?;
//! println!("written once, fenced by {}", guard.fencing_token());
//! guard.txn().create("/report".parse()?, b"written once".to_vec()).commit()?;
//! guard.release()?;
//!
//! manager.shutdown()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`ConfigError::CannotBlock`]: crate::ConfigError::CannotBlock
//! [`Error::Closed`]: crate::Error::Closed

mod guard;
mod lock;
mod lock_guard;
mod manager;
mod multi_lock;
mod mutex;
mod pool;
mod rate_limiter;
mod reentrant_mutex;
mod runtime_thread;
mod rw_lock;
mod semaphore;
mod txn;
mod wait;

pub use self::guard::Guard;
pub use self::lock::Lock;
pub use self::lock_guard::LockGuard;
pub use self::manager::ConnectionManager;
pub use self::multi_lock::{MultiLock, MultiLockBuilder};
pub use self::mutex::{Mutex, MutexGuard};
pub use self::pool::ConnectionPool;
pub use self::rate_limiter::RateLimiter;
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard};
pub use self::rw_lock::{ReadGuard, RwLock, RwLockSide, UpgradeError, WriteGuard};
pub use self::semaphore::{Lease, Permits, Semaphore, SharedLimit};
pub use self::txn::Txn;
