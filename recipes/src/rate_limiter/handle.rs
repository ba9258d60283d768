use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, IntoPath, ManagerExt, WholePath, ZnodePath,
};

use tokio::task::coop::consume_budget;

use super::admission::{Admission, TryAdmit};
use super::ahead::RecordedStarts;
use super::error::RateLimiterError;
use super::line::{AdmitAnswer, AskedStarts, CallEntry};
use super::numbers::{LimiterKey, StartsLimit};
use super::queue::limiter_queue;
use super::table::line_of;
use super::worker::LimiterWorker;
use crate::limits;
use crate::owner;
use crate::semaphore::SharedLimit;

/// A rate limiter over all processes: at most a given number of starts in any window of time.
///
/// Use it for *at most N starts in any minute*, however short the work is, as a service that counts calls
/// requires. For *at most N at the same time* use a [`Semaphore`](crate::Semaphore). One write of the
/// ensemble records the starts of all tasks of a process that wait at the same time.
///
/// A clone is cheap. Clones, and other objects with the same path in any process, are the same limiter. The
/// path belongs to the limiter alone, and all its users give the same numbers. For one limit for each
/// customer or each address there is [`KeyedRateLimiter`](super::KeyedRateLimiter).
///
/// # Ordering and fairness
///
/// First in, first out among the calls of one process, also for calls that ask for several starts. Processes
/// take turns, in the order in which they queue. While others wait, a process takes in its turn no more than
/// its equal part of the free starts, or four if that is no more than its equal part of the limit, or the
/// starts of one call if that asks for more. It takes them for the calls that waited when its turn began.
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
/// A turn costs five requests, for all calls of the process that it admits: a node, a list, a read, the write
/// of the window, and the delete of the node. A call in a free process waits for two round trips. A wait
/// behind other processes adds three requests. The cost does not depend on the limit, nor on the number of
/// processes. With [`with_ahead`](Self::with_ahead) most calls wait for no round trip.
///
/// # Session loss
///
/// An admission does not depend on the session. Waiting calls queue again in the next session, at the end of
/// the queue.
///
/// # Layout
///
/// `<path>` is a persistent node, whose data is the window as text, of at most some kilobytes. Its children
/// are the contenders. When the starts count no more, and no process wants any, the process that wrote last
/// deletes the node. If that process has ended, the node stays until the limiter is used again, or
/// [`sweep`](Self::sweep) deletes it. The layout of earlier versions is refused:
/// [`RateLimiterError::EarlierLayout`].
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
    pub(super) manager: ConnectionManager,
    pub(super) key: LimiterKey,
    ahead: u32,
    pub(super) data: Arc<[u8]>,
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
        if starts == 0 {
            return Err(setting("starts", "0", "allow one or more"));
        }
        Self::at(manager, path, StartsLimit::Fixed(starts), window)
    }

    /// Makes the limiter at `path`, below the manager's chroot: in any `window` at most as many starts as
    /// `limit` says, which can change at run time. Sends nothing.
    ///
    /// A start is recorded by a transaction that checks that the node of the limit has not changed. So a
    /// lower limit holds from its write on: earlier starts count, and there is no room until enough of them
    /// are over. A higher limit wakes the call that waits for room. A turn costs one request more, and a wait
    /// for room two.
    ///
    /// If the node of the limit does not exist, a call fails with
    /// [`SemaphoreError::NoLimit`](crate::error::SemaphoreError::NoLimit). Change it by
    /// [`SharedLimit::set`], and do not delete it: a node that is made again may have the version of the
    /// earlier one, and counts from the next read on.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed, or is the root, if `window` is zero, or if the limit is of
    /// another manager.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
    /// use std::time::Duration;
    /// use lockkeeper::RateLimiter;
    /// use lockkeeper::locks::SharedLimit;
    ///
    /// let limit = SharedLimit::new(&manager, "/limits/partner-api-starts")?;
    /// limit.set(1).await?;
    /// let minute = Duration::from_secs(60);
    /// let calls = RateLimiter::new_shared(&manager, "/limits/partner-api", &limit, minute)?;
    /// drop(calls.admit().await?);
    /// assert!(calls.try_admit().await?.retry_after().is_some());
    /// limit.set(2).await?;
    /// drop(calls.admit().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new_shared(
        manager: &ConnectionManager,
        path: impl IntoPath,
        limit: &SharedLimit,
        window: Duration,
    ) -> Result<Self, Error> {
        if !limit.manager().is_same_as(manager) {
            let advice = "make the shared limit with the manager of the rate limiter";
            return Err(setting("limit", "of another connection manager", advice));
        }
        Self::at(manager, path, StartsLimit::Shared(limit.path().clone()), window)
    }

    fn at(
        manager: &ConnectionManager,
        path: impl IntoPath,
        starts: StartsLimit,
        window: Duration,
    ) -> Result<Self, Error> {
        let path = limits::own_path(path, "give it a path of its own, such as /limits/a")?;
        if window.as_millis() == 0 {
            return Err(setting("window", &format!("{window:?}"), "have at least a millisecond"));
        }
        // A path that is too long with the chroot.
        limiter_queue(manager, &path, None, manager.node_data())?;
        let (key, data) = (LimiterKey::new(path, starts, window), manager.node_data().into());
        Ok(Self { manager: manager.clone(), key, ahead: 0, data })
    }

    /// Sets the time for which an [`Admission`] is fresh after its request was sent. A start counts for that
    /// much longer, so a long grace leaves a part of the limit unused. If it is shorter than a round trip,
    /// every admission is stale.
    ///
    /// Default: four times the last round trip, and at least a hundredth of the window and 10 ms, and at most
    /// a tenth of the window or 50 ms.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { key: self.key.with_grace(grace), ..self }
    }

    /// Takes up to so many starts before a call asks for them, so that most calls wait for no round trip.
    /// Default: none.
    ///
    /// Starts are taken ahead while there are calls, and not in advance of the first one. They are fresh for
    /// the [grace](Self::with_grace), and used up if no call comes until then. So set a grace too: with the
    /// default one they are lost after some milliseconds. All tasks of the process share them. They are taken
    /// as the starts of one call, also while other processes wait.
    #[must_use]
    pub fn with_ahead(self, starts: u32) -> Self {
        Self { ahead: starts, ..self }
    }

    /// Sets the data of the limiter's nodes, for people who inspect it. Default: the manager's node data,
    /// which has the host and the process id. The name of an [owner in scope](crate::Owner::scope) is
    /// appended.
    #[must_use]
    pub fn with_node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The path of the limiter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.key.path()
    }

    /// The number of starts that are admitted in any [window](Self::window). `None` if a
    /// [node has it](Self::new_shared).
    #[must_use]
    pub fn starts(&self) -> Option<u32> {
        self.key.fixed_starts()
    }

    /// The length of the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.key.window()
    }

    /// Waits until one start is admitted, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses a node (access list, quota). [`Error::ConflictingKind`] if
    /// another kind of lock uses the path. [`Error::Closed`] after a shutdown has begun.
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
        Ok(match self.ask(1, false, Deadline::after(self.manager.operation_timeout())).await? {
            AdmitAnswer::Admitted(admitted) => TryAdmit::Admitted(self.admission(1, admitted)),
            AdmitAnswer::Later { retry_after } => TryAdmit::Later { retry_after },
        })
    }

    pub(super) async fn admit_by(&self, asked: u32, deadline: Deadline) -> Result<Admission, Error> {
        let is_try = deadline.is_immediate();
        let limit = if is_try { Deadline::after(self.manager.operation_timeout()) } else { deadline };
        match self.ask(asked, !is_try, limit).await? {
            AdmitAnswer::Admitted(admitted) => Ok(self.admission(asked, admitted)),
            AdmitAnswer::Later { retry_after } => Err(RateLimiterError::NoRoom {
                path: self.whole_path(),
                asked,
                limit: Duration::ZERO,
                waited: deadline.waited(),
                retry_after,
            }
            .into()),
        }
    }

    fn admission(&self, starts: u32, admitted: RecordedStarts) -> Admission {
        Admission::new(&self.manager, starts, admitted.sent.after(admitted.grace))
    }

    /// Waits in the line of this process.
    async fn ask(&self, starts: u32, waits: bool, deadline: Deadline) -> Result<AdmitAnswer, Error> {
        self.check(starts)?;
        self.manager.ensure_runtime()?;
        let line = line_of(&self.manager, &self.key);
        let data = owner::signed(&self.data).into();
        let ahead = self.key.fixed_starts().map_or(self.ahead, |limit| limit.min(self.ahead));
        let asked = AskedStarts { starts, waits, deadline, data };
        if self.manager.is_closing() {
            return Err(Error::Closed);
        }
        let limit = Deadline::after(self.manager.operation_timeout());
        let (entered, needs_worker) = line.enter(asked, ahead, self.manager.now(), limit);
        if needs_worker {
            let worker = LimiterWorker::new(&line, self.key.clone());
            self.manager.spawn(worker.run(self.manager.downgrade()));
        }
        let in_line = match entered {
            CallEntry::Ready(admitted) => {
                // A task that never waits would keep the runtime from all others.
                consume_budget().await;
                return Ok(AdmitAnswer::Admitted(admitted));
            }
            CallEntry::InLine(in_line) => in_line,
        };
        tokio::select! {
            biased;
            () = self.manager.closing() => Err(Error::Closed),
            answer = in_line.answer() => {
                answer.unwrap_or_else(|| Err(Error::RuntimeEnded { path: self.whole_path() }))
            }
        }
    }

    fn check(&self, asked: u32) -> Result<(), Error> {
        if asked == 0 {
            return Err(setting("starts", "0", "ask for one or more"));
        }
        match self.key.fixed_starts() {
            Some(limit) if asked > limit => {
                let path = self.whole_path();
                Err(RateLimiterError::TooManyStarts { path, asked, limit }.into())
            }
            _ => Ok(()),
        }
    }

    /// For errors and logs.
    pub(super) fn whole_path(&self) -> WholePath {
        self.manager.whole_path(self.key.path())
    }
}

fn setting(name: &'static str, value: &str, advice: &'static str) -> Error {
    ConfigError::Setting { name, value: value.to_owned(), advice }.into()
}

impl Debug for RateLimiter {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RateLimiter")
            .field("path", &self.whole_path())
            .field("starts", &self.key.starts())
            .field("window", &self.key.window())
            .field("grace", &self.key.set_grace())
            .finish_non_exhaustive()
    }
}
