//! Distributed locks on [Apache ZooKeeper](https://zookeeper.apache.org), in async Rust.
//!
//! Many processes on many machines agree which of them holds a lock right now. The promises, and what no lock
//! can promise, are short and exact: see the README and `docs/failure-model.md`. The node layout is that of
//! Apache Curator, so Java and Rust services share one lock.
//!
//! * [`ConnectionManager`]: connects once, for every lock of the process. [`ConnectionPool`]: several
//!   sessions, for very many locks. [`with_manager`]: a manager that is shut down on every way out.
//! * [`Mutex`]: one holder at a time.
//! * [`ReentrantMutex`]: a mutex that its [`Owner`] can acquire again.
//! * [`RwLock`]: many readers, or one writer.
//! * [`Semaphore`]: a limited number of permits at a time; a [`Lease`] holds one or more.
//! * [`MultiLock`]: several locks at once, without deadlock. [`Lock`]: one interface over the locks of all
//!   engines.
//! * [`Election`]: one leader at a time; its [`Leadership`] ends before the next one begins.
//! * [`Schedule`]: work that one process does once per interval. [`OnceCell`]: a value that one process
//!   initialises.
//! * [`WorkQueue`]: items that processes put and work off, each done exactly once.
//! * [`RateLimiter`]: a limited number of starts in any window of time. [`KeyedRateLimiter`]: one limiter for
//!   each key.
//! * [`NodeView`], [`ChildrenView`], [`TreeView`]: copies of nodes that follow the server, and say when they
//!   are complete.
//! * [`Counter`]: a number that counts every addition exactly once. [`IdBlocks`]: unique ids from it.
//! * [`SharedValue`]: a value that many processes read and write.
//! * [`Table`]: a typed map of many values, with a view of them. [`Migrations`]: named steps that change what
//!   is stored, each once over the whole fleet.
//! * [`Registration`]: an ephemeral node that is created again in each session. [`Group`]: the processes that
//!   belong together, and a view of them.
//! * [`Partition`]: members share a set of items; each item is a hold of one member.
//! * `Discovery`, with the feature `discovery`: the instances of services, and clients that balance over
//!   them.
//! * [`CountDownLatch`]: others wait until a number of counts.
//! * [`Barrier`]: others wait until it is removed. [`DoubleBarrier`]: members enter and leave together.
//! * [`Inspection`]: the holders and the waiters of a lock, with their ages.
//! * [`Survey`](inspect::Survey): every lock, election, group and work queue below a root.
//!   [`Deadlocks`](inspect::Deadlocks): contenders of several processes that wait for each other.
//! * [`Revoker`]: asks a holder to release, or removes a lock by force.
//! * [`blocking`]: the same locks for programs without async, and one call for every other recipe.
//! * [`error`], [`config`], [`inspect`], [`locks`], [`manager`], [`presence`], [`table`], [`value`],
//!   [`view`], [`znodes`], and the modules of single recipes: what a program names less often.
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

#![cfg_attr(docsrs, feature(doc_cfg))]

mod barrier;
pub mod blocking;
#[cfg(test)]
mod bounds_test;
mod compare_and_set;
pub mod config;
mod counter;
mod deadlock;
#[cfg(feature = "discovery")]
pub mod discovery;
mod double_barrier;
pub mod election;
pub mod error;
#[cfg(any(test, lockkeeper_fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod id_blocks;
pub mod inspect;
mod inspection;
mod latch;
mod limits;
mod lock;
pub mod locks;
pub mod manager;
pub mod migrations;
mod multi_lock;
mod mutex;
mod once_cell;
mod owner;
mod participant_id;
pub mod partition;
pub mod presence;
mod rate_limiter;
mod reentrant_mutex;
mod registration;
mod rw_lock;
pub mod schedule;
mod semaphore;
mod shared_value;
mod sharing;
mod survey;
pub mod table;
pub mod value;
pub mod view;
pub mod work_queue;
pub mod znodes;

pub use self::barrier::Barrier;
pub use self::counter::Counter;
#[cfg(feature = "discovery")]
#[doc(inline)]
pub use self::discovery::Discovery;
pub use self::double_barrier::{DoubleBarrier, Inside};
#[doc(inline)]
pub use self::election::{Election, Leadership};
pub use self::group::Group;
pub use self::id_blocks::IdBlocks;
pub use self::inspection::Inspection;
pub use self::latch::CountDownLatch;
pub use self::lock::{Guard, MultiLockGuard};
#[doc(inline)]
pub use self::migrations::Migrations;
pub use self::multi_lock::MultiLock;
pub use self::mutex::{Mutex, MutexGuard};
pub use self::once_cell::OnceCell;
pub use self::owner::Owner;
#[doc(inline)]
pub use self::partition::Partition;
pub use self::rate_limiter::{Admission, KeyedRateLimiter, RateLimiter, TryAdmit};
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard};
pub use self::registration::Registration;
pub use self::rw_lock::{ReadGuard, RwLock, WriteGuard};
#[doc(inline)]
pub use self::schedule::Schedule;
pub use self::semaphore::{Lease, Semaphore};
pub use self::shared_value::{SharedCount, SharedValue};
#[doc(inline)]
pub use self::table::Table;
#[doc(inline)]
pub use self::view::{ChildrenView, NodeView, TreeView};
#[doc(inline)]
pub use self::work_queue::WorkQueue;
#[cfg(feature = "metrics")]
#[doc(inline)]
pub use lockkeeper_core::metrics;
#[doc(inline)]
pub use lockkeeper_core::{
    BootInstant, ConnectionManager, ConnectionPool, Error, FencingToken, Hold, Lost, ReleaseError, Revoker,
    Txn, Watch, ZnodePath, with_manager,
};
#[doc(inline)]
pub use lockkeeper_lock::{Lock, LockError, LockGuard};
