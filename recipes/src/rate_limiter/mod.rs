//! So many starts in any window of time.
//!
//! # Protocol
//!
//! Whoever wants to start stands in one line, an inner mutex at `<path>/locks`. The first in it lists `<path>/starts`,
//! where each start is a node that stays, and reads when each was made, by the servers' clock. If there is room, one
//! transaction leaves its own starts, removes those that are over, and deletes its place in line. Else it sleeps, and
//! then *asks the servers for the time* by writing to its own node: no local clock decides.
//!
//! # Why a crash cannot admit too many
//!
//! A start is written down, by a node no session takes along, before anyone is told of it. With `c` the time of that
//! transaction, an [`Admission`] says that it is fresh only until `grace` after its request was sent, which is before
//! `c + grace`; so whoever asks it starts between `c` and `c + grace`. The start counts until the servers' clock is past
//! `c + window + grace`, and the one that takes its room is made after that. So the two lie a window apart.
//!
//! A request without an answer may be applied late, and its nodes found by a look that came of a later try. Which of the
//! tries was applied is not known then, so the first one's request is taken for the instant it was sent.

mod admission;
mod admit;
mod inspect;
mod window;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, Kind, Label, LockQueue, PathError, Phase, Read, Rule,
    ZnodePath,
};

pub use self::admission::Admission;
use self::admit::NotAdmitted;
use self::window::StartCache;
use crate::limits;
use crate::owner::Owner;

/// Starts are counted, not ordered; nobody waits behind one.
const STARTS: Rule = Rule::blocked_by(&[Kind::Other]);

/// The least time to get from a request to a start.
const GRACE_MIN: Duration = Duration::from_millis(50);

/// A rate limiter over all processes: at most so many starts in any window of time.
///
/// For *at most N starts in any minute*, however short the work is, as a service that counts calls demands it. For *at
/// most N at the same time* use a [`Semaphore`](crate::Semaphore). Not for more than some hundred starts a second: each
/// is a write of the whole ensemble.
///
/// Cheap to clone; clones, and other objects with the same path in any process, are the same limiter. The path belongs to
/// it alone, and everyone gives the same numbers.
///
/// # Ordering and fairness
///
/// First in, first out, head of line, as a [`Semaphore`](crate::Semaphore).
///
/// # What it rests on
///
/// No more than `starts` fall into any window, whoever crashes when, if
///
/// * whoever was admitted starts while the [`Admission`] is [fresh](Admission::is_fresh), and asks right before;
/// * the clocks of the servers do not jump forward, also not from one leader to the next. Set back, they make everyone
///   wait for that much longer;
/// * the rates of clocks differ by little over the time of `grace`;
/// * nobody deletes nodes below its path by hand.
///
/// A lost reply, or a cancelled `admit`, may use up a start. So may a crash before the start. There is no way to give one
/// back: that is the point.
///
/// # Cost
///
/// Admit, with room for all that is written down: two round trips. Else one more for the time, and one for starts that
/// this object has not seen. A wait adds one write for each time it was woken.
///
/// # Session loss
///
/// An admission does not depend on the session. A wait goes on in the next session, at the end of the line.
///
/// # Layout
///
/// `<path>/locks` is an inner mutex, `<path>/starts/_c_<uuid>-start-<sequence>` is a start: persistent, with the time
/// for which it counts, in milliseconds, in its data. Who is admitted removes some that are over, so that not many more than
/// `starts` of these nodes stay behind when nobody uses it any more.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper::{ConnectionManager, RateLimiter};
///
/// let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
/// let calls = RateLimiter::new(&manager, "/limits/partner-api", 100, Duration::from_secs(60))?;
///
/// let admission = calls.admit().await?;
/// if admission.is_fresh() {
///     // start now
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RateLimiter {
    manager: ConnectionManager,
    /// The whole path.
    path: ZnodePath,
    /// Below the manager's chroot.
    starts: ZnodePath,
    queue: LockQueue,
    starts_line: LockQueue,
    limit: usize,
    window: Duration,
    grace: Duration,
    cache: Arc<StartCache>,
    data: Arc<[u8]>,
}

impl RateLimiter {
    /// The limiter at `path`, below the manager's chroot: at most `starts` in any `window`. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when the path is not one, or is the root, or for no starts or no window at all.
    pub fn new<P>(
        manager: &ConnectionManager,
        path: P,
        starts: usize,
        window: Duration,
    ) -> Result<Self, Error>
    where
        P: TryInto<ZnodePath>,
        PathError: From<P::Error>,
    {
        let path = path.try_into().map_err(PathError::from)?;
        let refused = |name, value: String, advice| Err(ConfigError::Setting { name, value, advice }.into());
        if path.is_root() {
            return refused("path", "/".to_owned(), "give it a path of its own, such as /limits/a");
        }
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
            starts_line: LockQueue::new(manager, below.clone(), Label::START, STARTS)?,
            queue: queue.with_reads(&[Read::Children(below.clone())])?,
            path: manager.full_path(&path)?,
            starts: below,
            limit: starts,
            window,
            grace: GRACE_MIN.max(window / 10),
            cache: Arc::default(),
            data: manager.node_data().into(),
        })
    }

    /// How long after its request an [`Admission`] is fresh, in exchange for as much longer a start counts. Default: a
    /// tenth of the window, and at least 50 ms. Less than a round trip takes makes every admission come too late.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// What is written into its nodes, for people who look. Default: the manager's node data, which is host and process
    /// id. The name of an [owner in scope](Owner::scope) is put behind it.
    #[must_use]
    pub fn node_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into().into(), ..self }
    }

    /// The whole path of the limiter, chroot included.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Waits until one may start, for as long as it takes.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when the server will not have the nodes (access list, quota), [`Error::ConflictingKind`] when another
    /// kind of lock uses `<path>/locks`, [`Error::Closed`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: your place in the line is lost, and a start may be used up.
    pub async fn admit(&self) -> Result<Admission, Error> {
        self.admit_many(1).await
    }

    /// Waits until `starts` may be made at once.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyPermits`] when no window has room for so many. Else as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_many(&self, starts: usize) -> Result<Admission, Error> {
        self.admit_by(starts, Deadline::never()).await
    }

    /// Waits until one may start, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names who was in front, or how many starts were free. Else as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        self.admit_by(1, Deadline::after(timeout)).await
    }

    /// Starts one now, if that may be. `None` when it may not, and also when someone is in front: be it waiting, or passing
    /// through with a try of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when there was no connection or no answer within the manager's operation timeout; else as
    /// [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn try_admit(&self) -> Result<Option<Admission>, Error> {
        Ok(self.attempt(1).await?.ok())
    }

    async fn admit_by(&self, asked: usize, deadline: Deadline) -> Result<Admission, Error> {
        if deadline.is_immediate() {
            let phase = match self.attempt(asked).await? {
                Ok(admission) => return Ok(admission),
                Err(phase) => phase,
            };
            return Err(Error::Timeout { phase, path: self.path.to_string(), waited: deadline.waited() });
        }
        self.check(asked)?;
        loop {
            let hold = self.queue().acquire(deadline).await?;
            match self.spend(hold, asked, Some(deadline)).await {
                Ok(admission) => return Ok(admission),
                Err(NotAdmitted::Restart) => {}
                Err(NotAdmitted::NoRoom(phase)) => {
                    let path = self.path.to_string();
                    return Err(Error::Timeout { phase, path, waited: deadline.waited() });
                }
                Err(NotAdmitted::Failed(error)) => return Err(error),
            }
        }
    }

    /// What may be now, or what it would have to wait for.
    async fn attempt(&self, asked: usize) -> Result<Result<Admission, Phase>, Error> {
        self.check(asked)?;
        loop {
            let hold = match self.queue().acquire(Deadline::after(Duration::ZERO)).await {
                Ok(hold) => hold,
                Err(Error::Timeout { phase: phase @ Phase::InLine { .. }, .. }) => return Ok(Err(phase)),
                Err(error) => return Err(error),
            };
            match self.spend(hold, asked, None).await {
                Ok(admission) => return Ok(Ok(admission)),
                Err(NotAdmitted::Restart) => {}
                Err(NotAdmitted::NoRoom(phase)) => return Ok(Err(phase)),
                Err(NotAdmitted::Failed(error)) => return Err(error),
            }
        }
    }

    fn check(&self, asked: usize) -> Result<(), Error> {
        if asked == 0 {
            let advice = "ask for one or more";
            return Err(ConfigError::Setting { name: "starts", value: "0".to_owned(), advice }.into());
        }
        if asked > self.limit {
            return Err(Error::TooManyPermits { path: self.path.to_string(), asked, limit: self.limit });
        }
        limits::check("starts", asked, &self.path, &self.data)
    }

    fn queue(&self) -> LockQueue {
        self.queue.clone().with_node_data(self.signed_data())
    }

    fn signed_data(&self) -> Vec<u8> {
        Owner::current().map_or_else(|| self.data.to_vec(), |owner| owner.append_owner(&self.data))
    }

    /// For how long a start counts, in milliseconds.
    fn span(&self) -> i64 {
        // Rounded up: nobody's start may come a part of a millisecond early.
        let whole = self.window.saturating_add(self.grace).as_nanos().div_ceil(1_000_000);
        i64::try_from(whole).unwrap_or(i64::MAX / 4)
    }
}

impl Debug for RateLimiter {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RateLimiter")
            .field("path", &self.path)
            .field("starts", &self.limit)
            .field("window", &self.window)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
