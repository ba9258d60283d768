//! The same locks for programs without async: each call blocks its thread.
//!
//! The names and the arguments are those of the async recipes. So are the promises, the fairness, the layout
//! and the cost: threads and tasks wait in one queue. Guards are owned. They can be sent to other threads,
//! except those of a [`ReentrantMutex`], whose owner is the thread. A drop of a guard releases in the
//! background.
//!
//! # Threads
//!
//! A [`ConnectionManager`] has one thread of its own, named `lockkeeper`, which does all background work. A
//! [`ConnectionPool`] has one thread for all its managers. The thread ends when the last handle, lock and
//! guard are dropped and every session is closed. It needs nothing of the caller's runtime, if there is one.
//! So a call that blocks a thread of that runtime never waits for the runtime itself.
//!
//! # Within an async runtime
//!
//! A blocked thread in an async task keeps other tasks from running, possibly the task that holds the lock.
//! There a call that may wait is refused, before anything is sent, with [`CannotBlock`]. Call it
//! from a thread, from `tokio::task::spawn_blocking` or `block_in_place`, or use the async recipes. A release
//! always works: `release()` and `shutdown()` block for as long as the server takes to answer.
//!
//! The library detects tasks of tokio, by their cooperative budget. It cannot detect tasks of other runtimes,
//! or a future in `tokio::task::unconstrained`: such a call blocks.
//!
//! # Cancellation
//!
//! A waiting thread cannot be cancelled: give it a timeout. A task limits any call by `tokio::time::timeout`.
//! For threads the waits that are not an acquire have a second method instead, such as
//! [`Watch::changed_timeout`], [`Events::next_timeout`] and [`PartitionMember::next_timeout`]; a change that
//! was not returned is returned next time. [`ConnectionManager::shutdown`], called from another thread, ends
//! all waits with [`Error::Closed`].
//!
//! The library cannot drop the work of a thread when its lock is lost, as [`Hold::run`](crate::Hold::run)
//! drops a future: call [`Guard::check`] between the steps of the work, and write by [`Guard::txn`] or with
//! the fencing token.
//!
//! # Ctrl-C
//!
//! A process that a signal ends releases nothing: its session lives on until its timeout. So receive the
//! signal in a thread of its own, as with `tokio::signal` or the crate `signal-hook`. Let that thread set a
//! flag that the working threads read between two steps, and end the process with
//! [`ConnectionManager::shutdown_within`] after they have ended. The example `blocking` does so.
//!
//! # Async counterparts
//!
//! Use `as_async()` of the [manager](ConnectionManager::as_async) or of the [recipe](Blocking::as_async), and
//! [`ConnectionManager::block_on`], for everything that has no blocking counterpart: nodes beside the locks,
//! tickets, revocation, a [`ReentrantMutex`] whose owner is not the thread.
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
//! guard.txn().create("/report", b"written once".to_vec()).commit()?;
//! guard.release()?;
//!
//! manager.shutdown()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Error::Closed`]: crate::Error::Closed

mod barrier;
mod counter;
#[cfg(feature = "discovery")]
mod discovery;
mod election;
mod error;
mod events;
mod generic;
mod group;
mod guard;
mod id_blocks;
mod lock;
mod manager;
mod multi_lock;
mod mutex;
mod once_cell;
mod partition;
mod pool;
mod rate_limiter;
mod reentrant_mutex;
mod registration;
mod runtime_thread;
mod rw_lock;
mod schedule;
mod semaphore;
mod shared_value;
mod survey;
mod txn;
mod view;
mod wait;
mod watch;

pub use self::barrier::{Barrier, DoubleBarrier, Inside};
pub use self::counter::Counter;
#[cfg(feature = "discovery")]
pub use self::discovery::{Balancer, Discovery, InstanceRegistration, ServiceView};
pub use self::election::{Election, Leadership};
pub use self::error::{CannotBlock, NoThread};
pub use self::events::{Events, HoldEvents, Transitions};
pub use self::generic::Blocking;
pub use self::group::{Group, MembersView, Membership};
pub use self::guard::{Guard, LockGuard};
pub use self::id_blocks::IdBlocks;
pub use self::lock::Lock;
pub use self::manager::ConnectionManager;
pub use self::multi_lock::{MultiLock, MultiLockBuilder};
pub use self::mutex::{Mutex, MutexGuard};
pub use self::once_cell::OnceCell;
pub use self::partition::{AssignedItem, Partition, PartitionMember};
pub use self::pool::ConnectionPool;
pub use self::rate_limiter::{KeyedRateLimiter, RateLimiter};
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard};
pub use self::registration::Registration;
pub use self::rw_lock::{ReadGuard, RwLock, RwLockSide, UpgradeError, WriteGuard};
pub use self::schedule::{Schedule, Slot};
pub use self::semaphore::{Lease, Permits, Semaphore, SharedLimit};
pub use self::shared_value::{SharedCount, SharedValue};
pub use self::survey::{Deadlocks, Inspection, Survey};
pub use self::txn::{OnceTxn, Txn};
pub use self::view::{ChildrenView, NodeView, TreeView, View, ViewChanges};
pub use self::watch::{CandidateWatch, LeaderWatch, PresenceWatch, ShareWatch, Watch};
