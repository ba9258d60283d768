//! At most a given number of starts in any window of time.
//!
//! # Protocol
//!
//! The contenders wait in one queue, an inner mutex at `<path>/locks`. The head of the queue lists
//! `<path>/starts`, where each start is a persistent node, and reads the time at which each was made, by the
//! servers' clock. If there is room, one transaction creates its own starts, deletes some that are over, and
//! deletes its node in the queue. Otherwise it sleeps, and then *asks the servers for the time* by a write to
//! its own node: no local clock decides.
//!
//! # Why a crash cannot admit too many
//!
//! A start is recorded in a persistent node before the caller learns of it. Let `c` be the time of that
//! transaction. The [`Admission`] is fresh only until `grace` after its request was sent, which is before
//! `c + grace`. So a caller that checks it starts between `c` and `c + grace`. The start counts until the
//! servers' clock is past `c + window + grace`, and the start that takes its room is made after that. So the
//! two starts are a window apart.
//!
//! A request without an answer may be committed late, and a later try may find its nodes. Which of the tries
//! was committed is not known then. So the time counts from the first request that may have been the one.

mod admission;
mod admit;
mod decide;
mod error;
mod fresh;
mod inspect;
mod keyed;
mod sweep;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, IntoPath, Label, LockQueue, Phase, Read, Rule,
    WholePath, ZnodePath,
};

pub use self::admission::{Admission, TryAdmit};
use self::admit::StartRequest;
use self::decide::StartCache;
pub use self::error::RateLimiterError;
pub use self::keyed::KeyedRateLimiter;
use crate::limits;
use crate::lock::at_head::{self, NotNow};
use crate::owner;

/// A start: the node stays when its session ends, and no contender waits for it.
const START: Label = match Label::new("start-") {
    Ok(label) => label,
    Err(_) => panic!("not a label"),
};

/// Starts are counted, not ordered.
const STARTS: Rule = Rule::blocked_by(&[START.kind()]);

/// The shortest time from a request to a start.
const GRACE_MIN: Duration = Duration::from_millis(50);

/// A rate limiter over all processes: at most a given number of starts in any window of time.
///
/// Use it for *at most N starts in any minute*, however short the work is, as a service that counts calls
/// requires. For *at most N at the same time* use a [`Semaphore`](crate::Semaphore). Do not use it for more
/// than some hundred starts a second: each start is a write of the whole ensemble.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same limiter. The
/// path belongs to the limiter alone, and all its users give the same numbers. For one limit for each
/// customer or each address there is [`KeyedRateLimiter`].
///
/// # Ordering and fairness
///
/// First in, first out. Only the head of the queue is admitted, as with a [`Semaphore`](crate::Semaphore).
///
/// # Conditions
///
/// No more than `starts` starts fall into any window, whichever process crashes at whatever time, if
///
/// * the caller starts while the [`Admission`] is [fresh](Admission::is_fresh), and checks that directly
///   before;
/// * the clocks of the servers do not jump forward, also not from one leader to the next. If they are set
///   back, every contender waits for that much longer;
/// * the rates of clocks differ by little over the time of `grace`;
/// * no nodes below the path are deleted by hand.
///
/// A lost reply, or a cancelled `admit`, may use up a start. So may a crash before the start. A start cannot
/// be given back, by design.
///
/// # Cost
///
/// Admission, if all recorded starts leave room: two round trips. Otherwise one more for the time, and one
/// for starts that this object has not read yet. A wait adds one write for each time that it wakes.
///
/// # Session loss
///
/// An admission does not depend on the session. A waiter queues again in the next session, at the end of the
/// queue.
///
/// # Layout
///
/// `<path>/locks` is an inner mutex. `<path>/starts/_c_<uuid>-start-<sequence>` is a start: persistent, with
/// the time for which it counts in its data, in milliseconds. Each admission deletes some starts that are
/// over, so not many more than `starts` of these nodes remain when the limiter is not used any more.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper::{ConnectionManager, RateLimiter, TryAdmit};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let calls = RateLimiter::new(&manager, "/limits/partner-api", 100, Duration::from_secs(60))?;
///
/// let admission = calls.admit_fresh().await?; // start now
/// # drop(admission);
/// match calls.try_admit().await? {
///     TryAdmit::Admitted(admission) if admission.is_fresh() => println!("start now"),
///     TryAdmit::Admitted(_) => println!("it took too long: ask again"),
///     TryAdmit::Later { retry_after } => println!("429, Retry-After: {}", retry_after.as_secs() + 1),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimiter {
    manager: ConnectionManager,
    path: ZnodePath,
    starts: ZnodePath,
    queue: LockQueue,
    starts_queue: LockQueue,
    limit: u32,
    window: Duration,
    grace: Duration,
    cache: Arc<StartCache>,
    data: Arc<[u8]>,
}

impl RateLimiter {
    /// Makes the limiter at `path`, below the manager's chroot: at most `starts` in any `window`. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, or if `starts` or `window` is zero.
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        starts: u32,
        window: Duration,
    ) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /limits/a")?;
        let refused = |name, value: String, advice| Err(ConfigError::Setting { name, value, advice }.into());
        if starts == 0 {
            return refused("starts", "0".to_owned(), "allow one or more");
        }
        if window.as_millis() == 0 {
            return refused("window", format!("{window:?}"), "have at least a millisecond");
        }
        let below = path.child("starts")?;
        let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?
            .with_metric_name("rate_limiter");
        Ok(Self {
            manager: manager.clone(),
            starts_queue: LockQueue::new(manager, below.clone(), START, STARTS)?,
            queue: queue.with_reads(&[Read::Children(below.clone())])?,
            path,
            starts: below,
            limit: starts,
            window,
            grace: GRACE_MIN.max(window / 10),
            cache: Arc::default(),
            data: manager.node_data().into(),
        })
    }

    /// Sets the time for which an [`Admission`] is fresh after its request was sent. A start counts for that
    /// much longer. Default: a tenth of the window, and at least 50 ms. If it is shorter than a round trip,
    /// every admission is stale.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Sets the data of the limiter's nodes, for people who inspect it. Default: the manager's node data,
    /// which has the host and the process id. The name of an [owner in scope](crate::Owner::scope) is
    /// appended.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The path of the limiter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Waits until one start is admitted, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses a node (access list, quota). [`Error::ConflictingKind`] if
    /// another kind of lock uses `<path>/locks`. [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the position in the queue is lost, and a start may be used up.
    pub async fn admit(&self) -> Result<Admission, Error> {
        self.admit_many(1).await
    }

    /// Waits until `starts` starts are admitted at once, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`RateLimiterError::TooManyStarts`] if `starts` is above the limit. Otherwise as
    /// [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_many(&self, starts: u32) -> Result<Admission, Error> {
        self.admit_by(starts, Deadline::never()).await
    }

    /// Waits until one start is admitted, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor, or the number of free starts. Otherwise as
    /// [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.admit_by(1, Deadline::after(timeout)).await
    }

    /// Admits one start if there is room now, and no contender is ahead, including another `try_admit` in
    /// progress. Otherwise says [when to try again](TryAdmit::retry_after).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn try_admit(&self) -> Result<TryAdmit, Error> {
        self.check(1)?;
        let request = StartRequest { limiter: self, asked: 1 };
        Ok(match at_head::try_acquire(&request).await? {
            Ok(admission) => TryAdmit::Admitted(admission),
            Err(NotNow { phase, retry_after }) => {
                let ahead = if let Phase::Queued { ahead, .. } = phase { ahead } else { 1 };
                TryAdmit::Later { retry_after: retry_after.unwrap_or_else(|| self.time_of(ahead)) }
            }
        })
    }

    async fn admit_by(&self, asked: u32, deadline: Deadline) -> Result<Admission, Error> {
        self.check(asked)?;
        at_head::acquire(&StartRequest { limiter: self, asked }, deadline).await
    }

    /// The time in which the limiter admits this many starts, in the long run.
    fn time_of(&self, starts: u32) -> Duration {
        self.window.saturating_add(self.grace).saturating_mul(starts.max(1)) / self.limit
    }

    fn check(&self, asked: u32) -> Result<(), Error> {
        if asked == 0 {
            let advice = "ask for one or more";
            return Err(ConfigError::Setting { name: "starts", value: "0".to_owned(), advice }.into());
        }
        if asked > self.limit {
            let (path, limit) = (self.whole_path(), self.limit);
            return Err(RateLimiterError::TooManyStarts { path, asked, limit }.into());
        }
        limits::check("starts", asked, &self.path, &self.data)
    }

    /// For errors and logs.
    fn whole_path(&self) -> WholePath {
        self.manager.whole_path(&self.path)
    }

    fn queue(&self) -> LockQueue {
        self.queue.clone().with_node_data(owner::signed(&self.data))
    }

    /// The time for which a start counts, in milliseconds.
    fn span(&self) -> i64 {
        // Rounded up, so that no start comes a part of a millisecond too early.
        let whole = self.window.saturating_add(self.grace).as_nanos().div_ceil(1_000_000);
        i64::try_from(whole).unwrap_or(i64::MAX / 4)
    }
}

impl Debug for RateLimiter {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RateLimiter")
            .field("path", &self.whole_path())
            .field("starts", &self.limit)
            .field("window", &self.window)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
