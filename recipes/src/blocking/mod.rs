//! The recipes for programs without async: each call blocks its thread.
//!
//! The connection, the locks and the election have methods with the names and the arguments of the async
//! ones: [`ConnectionManager`], [`ConnectionPool`], [`Mutex`], [`ReentrantMutex`], [`RwLock`], [`Semaphore`],
//! [`MultiLock`], the trait [`ZooKeeperLock`], [`Election`], and their guards with [`Guard::txn`]. Everything
//! else has one method: [`ConnectionManager::wrap`] makes a recipe, and [`Blocking::call`] runs an async
//! closure with it, and waits.
//!
//! The promises, the fairness, the layout and the cost are those of the async recipes: threads and tasks wait
//! in one queue. Guards are owned. They can be sent to other threads, except those of a [`ReentrantMutex`],
//! whose owner is the thread. A drop of a guard releases in the background.
//!
//! # Examples
//!
//! A lock, by its methods:
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
//! Any other recipe, by calls:
//!
//! ```
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
//! # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
//! use lockkeeper::{Counter, Registration};
//!
//! let orders = manager.wrap(async |manager| Counter::new(manager, "/orders"))?;
//! let number = orders.call(async |orders| orders.increment().await)?;
//! assert_eq!(number, 1);
//!
//! let here = manager.wrap(async |manager| Registration::register(manager, "/workers/7", "10.0.0.7"))?;
//! here.call(async |here| here.registered().await)?;
//! let mut states = here.wrap(async |here| Ok(here.watch()))?;
//! here.call_once(async |here| here.release().await)?;
//! while let Ok(state) = states.call_mut(async |states| Ok(states.changed().await?)) {
//!     println!("{state}");
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Threads
//!
//! A [`ConnectionManager`] has one thread of its own, named `lockkeeper`, which does all background work. A
//! [`ConnectionPool`] has one thread for all its managers. The thread ends when the last handle, recipe and
//! guard are dropped and every session is closed. It needs nothing of the caller's runtime, if there is one.
//! So a call that blocks a thread of that runtime never waits for the runtime itself.
//!
//! # Within an async runtime
//!
//! A blocked thread in an async task keeps other tasks from running, possibly the task that holds the lock.
//! There a call that may wait is refused, before anything is sent, with [`CannotBlock`]. Call it
//! from a thread, from `tokio::task::spawn_blocking` or `block_in_place`, or use the async recipes. A release
//! of a guard always works: `release()` and `shutdown()` block for as long as the server takes to answer.
//!
//! The library detects tasks of tokio, by their cooperative budget. Where there is none, it cannot detect the
//! task, and a call blocks: in tasks of other runtimes, in a future in `tokio::task::unconstrained`, and in
//! the future of `main` or `Runtime::block_on` after `block_in_place` has returned, up to the next await that
//! waits.
//!
//! # Cancellation
//!
//! A waiting thread cannot be cancelled: give it a timeout. Acquires have a method for it, and so have
//! [`Watch::changed_timeout`] and [`Events::next_timeout`]. [`Blocking::call_timeout`] and
//! [`Blocking::call_mut_timeout`] limit any other call. [`ConnectionManager::shutdown`], called from another
//! thread, ends all waits with [`Error::Closed`].
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
//! [`Error::Closed`]: crate::Error::Closed

mod election;
mod error;
mod events;
mod generic;
mod guard;
mod lock;
mod manager;
mod multi_lock;
mod mutex;
mod pool;
mod reentrant_mutex;
mod runtime_thread;
mod rw_lock;
mod semaphore;
mod txn;
mod wait;
mod watch;
mod with_manager;

pub use self::election::{Election, Leadership};
pub use self::error::{CannotBlock, NoThread};
pub use self::events::{Events, HoldEvents, Transitions};
pub use self::generic::Blocking;
pub use self::guard::{Guard, MultiLockGuard};
pub use self::lock::ZooKeeperLock;
pub use self::manager::ConnectionManager;
pub use self::multi_lock::{MultiLock, MultiLockBuilder};
pub use self::mutex::{Mutex, MutexGuard};
pub use self::pool::ConnectionPool;
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard};
pub use self::rw_lock::{ReadGuard, RwLock, RwLockSide, UpgradeError, WriteGuard};
pub use self::semaphore::{Lease, Permits, Semaphore};
pub use self::txn::{OnceTxn, Txn};
pub use self::watch::Watch;
pub use self::with_manager::with_manager;
