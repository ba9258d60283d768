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
//! * [`Schedule`]: work that one process does once per interval. [`OnceCell`]: a value that one process
//!   initialises.
//! * [`RateLimiter`]: a limited number of starts in any window of time. [`KeyedRateLimiter`]: one limiter for
//!   each key.
//! * [`NodeView`], [`ChildrenView`], [`TreeView`]: copies of nodes that follow the server, and say when they
//!   are complete.
//! * [`Counter`]: a number that counts every addition exactly once. [`IdBlocks`]: unique ids from it.
//! * [`SharedValue`]: a value that many processes read and write.
//! * [`Registration`]: an ephemeral node that is created again in each session. [`Group`]: the processes that
//!   belong together, and a view of them.
//! * [`Partition`]: members share a set of items; each item is a hold of one member.
//! * `Discovery`, with the feature `discovery`: the instances of services, and clients that balance over
//!   them.
//! * [`Barrier`]: others wait until it is removed. [`DoubleBarrier`]: members enter and leave together.
//! * [`Inspection`]: the holders and the waiters of a lock, with their ages.
//! * [`Survey`]: every lock, election and group below a root. [`Deadlocks`]: contenders of several processes
//!   that wait for each other.
//! * [`Revoker`]: asks a holder to release, or removes a lock by force.
//! * [`blocking`]: the same locks for programs without async, and one call for every other recipe.
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
mod counter;
mod deadlock;
#[cfg(feature = "discovery")]
mod discovery;
mod double_barrier;
mod election;
mod group;
mod id_blocks;
mod inspection;
mod limits;
mod lock;
mod multi_lock;
mod mutex;
mod once_cell;
mod owner;
mod partition;
mod rate_limiter;
mod reentrant_mutex;
mod registration;
mod rw_lock;
mod schedule;
mod semaphore;
mod shared_value;
mod survey;
mod view;

pub use self::barrier::{Barrier, BarrierInspection};
pub use self::compare_and_set::CompareAndSet;
pub use self::counter::{Counter, CounterError, CounterNumber};
pub use self::deadlock::{Certainty, Deadlock, Deadlocks, WaitEdge};
#[cfg(feature = "discovery")]
pub use self::discovery::{
    Balancer, Discovery, DiscoveryInspection, FailurePolicy, Instance, InstanceInspection,
    InstanceRegistration, InstanceState, NoPayload, ServiceInspection, ServiceType, ServiceView, Strategy,
    UriSpec,
};
pub use self::double_barrier::{DoubleBarrier, DoubleBarrierInspection, Inside};
pub use self::election::{CandidateState, CandidateWatch, Election, Leader, LeaderWatch, Leadership};
pub use self::group::{
    Group, GroupInspection, Member, MemberInspection, MemberLayout, MembersView, Membership,
};
pub use self::id_blocks::{IdBlocks, IdBlocksError};
pub use self::inspection::Inspection;
pub use self::lock::{Guard, Lock, LockGuard, QueueTicket, ReleaseErrors};
pub use self::multi_lock::{MultiLock, MultiLockBuilder, MultiLockError};
pub use self::mutex::{HandOffPolicy, Mutex, MutexGuard, MutexTicket};
pub use self::once_cell::{InitError, OnceCell};
pub use self::owner::{NoOwner, Owner, WouldDeadlock};
pub use self::partition::{
    AssignedItem, ItemHold, ItemsView, Partition, PartitionInspection, PartitionItem, PartitionMember,
    PartitionShare, ReleaseReason,
};
pub use self::rate_limiter::{Admission, KeyedRateLimiter, RateLimiter, RateLimiterError, TryAdmit};
pub use self::reentrant_mutex::{ReentrantMutex, ReentrantMutexGuard, ReentrantTicket};
pub use self::registration::Registration;
pub use self::rw_lock::{
    NotAlone, ReadGuard, ReadTicket, RwLock, RwLockSide, UpgradeError, WriteGuard, WriteTicket,
};
pub use self::schedule::{Missed, Schedule, ScheduleError, ScheduleInspection, Slot, SlotRecord};
pub use self::semaphore::{Lease, Permits, Semaphore, SemaphoreError, SemaphoreTicket, SharedLimit};
pub use self::shared_value::{Revision, SharedCount, SharedData, SharedValue, SharedValueError, Versioned};
pub use self::survey::{Survey, SurveyGroup, SurveyMember};
pub use self::view::{ChildrenView, EveryLevel, NodeView, OneLevel, OneNode, TreeView, View};
#[cfg(feature = "tls")]
#[doc(inline)]
pub use lockkeeper_core::Tls;
#[cfg(feature = "metrics")]
#[doc(inline)]
pub use lockkeeper_core::metrics;
#[doc(inline)]
pub use lockkeeper_core::{
    ANY_VERSION, Acl, AgeClock, BootInstant, ConfigError, ConnectError, ConnectString, ConnectStringError,
    ConnectionManager, ConnectionManagerBuilder, ConnectionPool, ContenderInfo, CreateMode, Deadline,
    DecodeError, DecodeFailure, Difference, Epoch, Error, ErrorKind, Exceeded, FencingToken,
    FencingTokenError, Health, Hold, HoldEvent, HoldEvents, Identity, IntoPath, Kind, LeaseRenewal,
    LossReason, Lost, NODE_BYTES_MAX, OnDeletion, Once, OnceTxn, Operation, Outcome, PathError, Permissions,
    Phase, PresenceError, PresenceState, PresenceWatch, RecipeError, Refusal, RegisterInfo, ReleaseError,
    RetryPolicy, RevokeError, Revoker, Role, Snapshot, Stat, State, Transition, Transitions, Txn, TxnError,
    TxnResult, ViewBounds, ViewChange, ViewChanges, ViewError, ViewNode, ViewPoint, ViewState, WholePath,
    WriterInfo, ZnodePath, Znodes,
};
