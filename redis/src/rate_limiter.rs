use std::time::Duration;

use lockkeeper_lock::{BootInstant, Deadline};
use uuid::Uuid;

use crate::error::{ConfigError, Error, Phase};
use crate::manager::{CallError, ConnectionManager};
use crate::name::LockName;
use crate::recipe_error::RateLimiterError;
use crate::script;

/// The shortest time from a request to a start.
const GRACE_MIN: Duration = Duration::from_millis(50);
/// The most starts in a window: each one is an element of a sorted set.
const STARTS_MAX: u32 = 1_000_000;
/// The longest window: the server counts milliseconds with the numbers of Lua.
const WINDOW_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A rate limiter over all processes: at most a given number of starts in any window of time.
///
/// Use it for *at most N starts in any minute*, however short the work is. For *at most N at the same
/// time* use a [`Semaphore`](crate::Semaphore).
///
/// The server records a start at the first time that has room for it, which may be later than now. The caller
/// waits until that time, in its own process. So an admission costs one round trip, also with a wait.
///
/// # Ordering and fairness
///
/// First in, first out, in the order in which the server received the requests.
///
/// # Conditions
///
/// No more than `starts` starts fall into any window, whichever process crashes at whatever time, if the
/// caller starts while the [`Admission`] is [fresh](Admission::is_fresh) and checks that directly before; if
/// the server keeps its data, and its clock is not set forward; and if all users of the name give the same
/// numbers. If the clock is set back, every contender waits for that much longer.
///
/// A lost reply, or a cancelled `admit`, may use up a start. A start cannot be given back.
///
/// # Examples
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockkeeper_redis::Error> {
/// use std::time::Duration;
/// use lockkeeper_redis::{ConnectionManager, RateLimiter};
///
/// let manager = ConnectionManager::connect("redis://127.0.0.1/").await?;
/// let calls = RateLimiter::new(&manager, "limits:partner-api", 100, Duration::from_secs(60))?;
///
/// let admission = calls.admit().await?;
/// if admission.is_fresh() {
///     // start now
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    manager: ConnectionManager,
    name: LockName,
    limit: u32,
    window: Duration,
    grace: Duration,
}

/// Permission to start, from a [`RateLimiter`]. It is used up, whether the caller starts or not.
///
/// An admission does not depend on the connection. But it becomes stale.
#[derive(Debug)]
#[must_use = "the start is used up"]
pub struct Admission {
    starts: u32,
    fresh_until: BootInstant,
}

impl Admission {
    /// The number of admitted starts.
    #[must_use]
    pub fn starts(&self) -> u32 {
        self.starts
    }

    /// The instant until which the caller may start. A later start may fall into a window that is full.
    #[must_use]
    pub fn fresh_until(&self) -> BootInstant {
        self.fresh_until
    }

    /// Whether the caller may still start: check this directly before the start.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        BootInstant::now() < self.fresh_until
    }
}

/// The answer of [`RateLimiter::try_admit`].
#[derive(Debug)]
#[must_use = "an admission that is dropped is used up"]
pub enum TryAdmit {
    /// The start is admitted.
    Admitted(Admission),
    /// There is no room now. Nothing is used up.
    Later {
        /// The time after which there is room, if no other contender takes it first.
        retry_after: Duration,
    },
}

impl TryAdmit {
    /// The admission, if there is one.
    #[must_use]
    pub fn admitted(self) -> Option<Admission> {
        match self {
            Self::Admitted(admission) => Some(admission),
            Self::Later { .. } => None,
        }
    }

    /// The time after which another try can succeed; `None` if the start is admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Admitted(_) => None,
            Self::Later { retry_after } => Some(*retry_after),
        }
    }
}

/// The answer of the script.
enum Recorded {
    /// The starts are recorded: the admission, and how long to wait for it.
    Admitted(Admission, Duration),
    /// They would have had to wait too long.
    TooLate(Duration),
}

impl RateLimiter {
    /// Makes the limiter with this name: at most `starts` in any `window`. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name is as [`Mutex::new`](crate::Mutex::new) refuses it, if `starts` is
    /// zero or above a million, or if `window` is shorter than a millisecond or longer than a year.
    pub fn new(
        manager: &ConnectionManager,
        name: &str,
        starts: u32,
        window: Duration,
    ) -> Result<Self, Error> {
        let refuse = |setting, value, advice| Err(ConfigError { setting, value, advice }.into());
        if starts == 0 || starts > STARTS_MAX {
            return refuse("starts", starts.to_string(), "allow one or more, and at most a million");
        }
        if window.as_millis() == 0 || window > WINDOW_MAX {
            return refuse("window", format!("{window:?}"), "use a millisecond to a year");
        }
        let (manager, name) = (manager.clone(), LockName::new(name)?);
        Ok(Self { manager, name, limit: starts, window, grace: GRACE_MIN.max(window / 10) })
    }

    /// Sets the time for which an [`Admission`] is fresh. A start counts for that much longer. Default: a
    /// tenth of the window, and at least 50 ms. At most the longest window. If it is shorter than a round
    /// trip, every admission is stale.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace: grace.min(WINDOW_MAX), ..self }
    }

    /// The name of the limiter: its key.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Waits until one start is admitted, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the server refuses the request. [`Error::ConflictingKind`] if the key has a
    /// value of another type. [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a start may be used up.
    pub async fn admit(&self) -> Result<Admission, Error> {
        self.admit_by(1, Deadline::never(), None).await
    }

    /// Waits until `starts` starts are admitted at once, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`RateLimiterError::TooManyStarts`] if `starts` is above the limit. [`Error::Config`] if it is zero.
    /// Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_many(&self, starts: u32) -> Result<Admission, Error> {
        self.admit_by(starts, Deadline::never(), None).await
    }

    /// Waits until one start is admitted, for at most `timeout`. If the wait would be longer, it fails at
    /// once, and no start is used up.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn admit_timeout(&self, timeout: Duration) -> Result<Admission, Error> {
        if timeout.is_zero() {
            let limit = Deadline::after(self.manager.operation_timeout());
            return self.admit_by(1, limit, Some(Duration::ZERO)).await;
        }
        self.admit_by(1, Deadline::after(timeout), Some(timeout)).await
    }

    /// Admits one start if there is room now. Otherwise says [when to try again](TryAdmit::retry_after).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the operation timeout. Otherwise as
    /// [`admit`](Self::admit).
    ///
    /// # Cancel safety
    ///
    /// As [`admit`](Self::admit).
    pub async fn try_admit(&self) -> Result<TryAdmit, Error> {
        self.check(1)?;
        let limit = Deadline::after(self.manager.operation_timeout());
        match self.record(1, limit, Some(Duration::ZERO)).await? {
            Recorded::Admitted(admission, _) => Ok(TryAdmit::Admitted(admission)),
            Recorded::TooLate(retry_after) => Ok(TryAdmit::Later { retry_after }),
        }
    }

    fn check(&self, asked: u32) -> Result<(), Error> {
        if asked == 0 {
            let advice = "ask for one or more";
            return Err(ConfigError { setting: "starts", value: "0".to_owned(), advice }.into());
        }
        if asked > self.limit {
            let (name, limit) = (self.name.to_string(), self.limit);
            return Err(RateLimiterError::TooManyStarts { name, asked, limit }.into());
        }
        Ok(())
    }

    async fn admit_by(
        &self,
        asked: u32,
        deadline: Deadline,
        longest: Option<Duration>,
    ) -> Result<Admission, Error> {
        self.check(asked)?;
        match self.record(asked, deadline, longest).await? {
            Recorded::Admitted(admission, wait) => {
                tokio::select! {
                    biased;
                    () = self.manager.closing() => Err(Error::Closed),
                    () = tokio::time::sleep(wait) => Ok(admission),
                }
            }
            Recorded::TooLate(wait) => Err(self.timeout(Phase::Starts { wait }, deadline)),
        }
    }

    fn timeout(&self, phase: Phase, deadline: Deadline) -> Error {
        Error::Timeout { phase, name: self.name.to_string(), waited: deadline.waited() }
    }

    /// Records the starts. An id makes a repeated request the same one.
    async fn record(
        &self,
        asked: u32,
        deadline: Deadline,
        longest: Option<Duration>,
    ) -> Result<Recorded, Error> {
        let shared = self.manager.shared();
        let id = Uuid::new_v4().simple().to_string();
        let attempts = async {
            loop {
                let mut connection = shared.link.connection().await;
                // What the wait for a connection took is not left for the start.
                let left = longest.map(|longest| millis(longest.saturating_sub(deadline.waited())));
                let call = script::admit(&self.name, &id, asked, self.limit, self.span(), left);
                let sent = BootInstant::now();
                match shared.link.send(&mut connection, &call, shared.settings.request_limit()).await {
                    Ok(answer) => return self.read(&answer, asked, sent),
                    Err(CallError::NoAnswer(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Err(CallError::Refused(cause)) => {
                        return Err(Error::Refused { name: self.name.to_string(), cause });
                    }
                    Err(CallError::ConflictingKind) => {
                        return Err(Error::ConflictingKind { name: self.name.to_string() });
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = self.manager.closing() => Err(Error::Closed),
            recorded = attempts => recorded,
            () = deadline.passed() => Err(self.timeout(Phase::Answer, deadline)),
        }
    }

    /// The starts begin at `wait` after the server's time of the request, which was not before `sent`.
    fn read(&self, answer: &[i64], asked: u32, sent: BootInstant) -> Result<Recorded, Error> {
        let (is_admitted, wait) = match *answer {
            [1, wait] => (true, wait),
            [0, wait] => (false, wait),
            _ => {
                let cause = "an answer that is not of this protocol".to_owned();
                return Err(Error::Refused { name: self.name.to_string(), cause });
            }
        };
        let span = Duration::from_millis(wait.unsigned_abs());
        if !is_admitted {
            return Ok(Recorded::TooLate(span));
        }
        // A repeated request may find starts whose time has come.
        let (begin, wait) =
            if wait < 0 { (sent.before(span), Duration::ZERO) } else { (sent.after(span), span) };
        Ok(Recorded::Admitted(Admission { starts: asked, fresh_until: begin.after(self.grace) }, wait))
    }

    /// The time for which a start counts, in milliseconds: rounded up, and one more for the server's whole
    /// milliseconds.
    fn span(&self) -> u64 {
        let whole = self.window.saturating_add(self.grace).as_nanos().div_ceil(1_000_000);
        u64::try_from(whole).unwrap_or(u64::MAX / 4).saturating_add(1)
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX / 4)
}
