use std::ops::ControlFlow;
use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, Phase, ReleaseError, WholePath, ZnodePath};
use tracing::{debug, info};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use super::runtime_thread::RuntimeThread;
use crate::election::TermPauses;
use crate::{CandidateState, Leader};

/// One leader among many processes, for threads. Everything is as for the async
/// [`Election`](crate::Election).
///
/// The work of a thread cannot be dropped when its leadership is lost: call [`Guard::check`] between the
/// steps of the work.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::blocking::Election;
///
/// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
/// let leadership = election.campaign()?;
/// assert_eq!(election.candidates()?, ["planner-3"]);
/// leadership.check()?; // between the steps of the work
/// leadership.resign()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Election = Blocking<crate::Election>;

/// The leadership of an [`Election`].
pub type Leadership = Guard<crate::election::LeadershipHold>;

impl Leadership {
    /// Ends the leadership, and waits until the server has deleted the node. It works also within an async
    /// task.
    ///
    /// # Errors
    ///
    /// As [`Leadership::resign`](crate::Leadership::resign).
    pub fn resign(self) -> Result<(), ReleaseError> {
        self.release()
    }
}

impl Election {
    /// Makes the election at `path`, below the manager's chroot, for the participant `id`, in the layout of
    /// Curator's `LeaderLatch`. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Election::new`](crate::Election::new).
    pub fn new(
        manager: &ConnectionManager,
        path: impl IntoPath,
        id: impl Into<String>,
    ) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Election::new(manager.as_async(), path, id)?))
    }

    /// Makes the election at `path` in the layout of Curator's `LeaderSelector`: see
    /// [`Election::in_selector_layout`](crate::Election::in_selector_layout).
    ///
    /// # Errors
    ///
    /// As that method.
    pub fn in_selector_layout(
        manager: &ConnectionManager,
        path: impl IntoPath,
        id: impl Into<String>,
    ) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Election::in_selector_layout(manager.as_async(), path, id)?))
    }

    /// The path of the election, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The id of this participant.
    #[must_use]
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// Waits until this participant leads, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Otherwise as
    /// [`Election::campaign`](crate::Election::campaign).
    pub fn campaign(&self) -> Result<Leadership, Error> {
        self.guard(self.inner.campaign())
    }

    /// Waits until this participant leads, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. Otherwise as [`campaign`](Self::campaign).
    pub fn campaign_timeout(&self, timeout: Duration) -> Result<Leadership, Error> {
        self.guard(self.inner.campaign_timeout(timeout))
    }

    /// Leads if there is no other candidate. Returns `None` if any candidate is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`campaign`](Self::campaign).
    pub fn try_campaign(&self) -> Result<Option<Leadership>, Error> {
        self.try_guard(self.inner.try_campaign())
    }

    /// Returns the ids of all participants in the order of the queue, the leader first.
    ///
    /// # Errors
    ///
    /// As [`Election::candidates`](crate::Election::candidates), and
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task.
    pub fn candidates(&self) -> Result<Vec<String>, Error> {
        self.block(self.inner.candidates())
    }

    /// Leads again and again: campaigns, calls `work` while this participant leads, and campaigns again when
    /// `work` has returned [`ControlFlow::Continue`]. Ends when `work` returns [`ControlFlow::Break`], with
    /// its value.
    ///
    /// `work` is not interrupted when the leadership is lost: call [`Guard::check`] between its steps, and
    /// return. Terms and pauses are as for [`Election::lead`](crate::Election::lead).
    ///
    /// # Panics
    ///
    /// A panic of `work` is passed on. The participant resigns in the background.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Otherwise as
    /// [`Election::lead`](crate::Election::lead).
    ///
    /// # Examples
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
    /// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
    /// use std::ops::ControlFlow;
    /// use lockkeeper::blocking::Election;
    ///
    /// let election = Election::new(&manager, "/elections/planner", "planner-3")?;
    /// let mut steps = 0;
    /// let done = election.lead(|leadership| {
    ///     while leadership.is_valid() && steps < 3 {
    ///         steps += 1;
    ///     }
    ///     if steps < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(steps) }
    /// })?;
    /// assert_eq!(done, 3);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn lead<T>(&self, mut work: impl FnMut(&Leadership) -> ControlFlow<T>) -> Result<T, Error> {
        let now = crate::BootInstant::now;
        let mut pauses = TermPauses::default();
        loop {
            let mut begun = now();
            match self.campaign() {
                Ok(leadership) => {
                    begun = now();
                    let ended = work(&leadership);
                    if let Err(error) = leadership.resign() {
                        info!(path = self.path().as_str(), %error, "the resignation is not confirmed");
                    }
                    if let ControlFlow::Break(value) = ended {
                        return Ok(value);
                    }
                }
                Err(error) if error.is_transient() => {
                    debug!(path = self.path().as_str(), %error, "campaigning again");
                }
                Err(error) => return Err(error),
            }
            self.thread.block_checked(self.inner.pause(pauses.after(now().since(begun))))?;
        }
    }

    /// Follows this participant: whether it waits, leads, or has lost. See
    /// [`Election::state`](crate::Election::state).
    #[must_use]
    pub fn state(&self) -> CandidateWatch {
        let path = self.inner.whole_path();
        CandidateWatch { inner: self.inner.state(), path, thread: self.thread.clone() }
    }

    /// Follows the leader of the election, without being a candidate. Waits for the first answer, within the
    /// manager's operation timeout.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Otherwise as
    /// [`Election::observe`](crate::Election::observe).
    pub fn observe(&self) -> Result<LeaderWatch, Error> {
        let inner = self.block(self.inner.observe())?;
        let path = self.inner.whole_path();
        Ok(LeaderWatch { inner, path, thread: self.thread.clone() })
    }
}

/// The leader of an election, followed by [`Election::observe`], for threads: see the async
/// [`LeaderWatch`](crate::LeaderWatch).
#[derive(Clone, Debug)]
pub struct LeaderWatch {
    // Dropped in this order.
    inner: crate::LeaderWatch,
    path: WholePath,
    thread: RuntimeThread,
}

impl LeaderWatch {
    /// The leader now, as far as is known; `None` if there is none.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.inner.leader()
    }

    /// Waits until the leader is another one than the last call returned, and returns it. Between two
    /// leaders, a call returns `None`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Otherwise as
    /// [`LeaderWatch::changed`](crate::LeaderWatch::changed).
    pub fn changed(&mut self) -> Result<Option<Leader>, Error> {
        self.thread.block_checked(self.inner.changed())?
    }

    /// As [`changed`](Self::changed), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the leader has not changed. Otherwise as [`changed`](Self::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<Option<Leader>, Error> {
        let Self { inner, path, thread } = self;
        within(thread, timeout, inner.changed(), "waiting for another leader", path)
    }
}

/// The state of an election's own participant, followed by [`Election::state`], for threads: see the async
/// [`CandidateWatch`](crate::CandidateWatch).
#[derive(Clone, Debug)]
pub struct CandidateWatch {
    // Dropped in this order.
    inner: crate::CandidateWatch,
    path: WholePath,
    thread: RuntimeThread,
}

impl CandidateWatch {
    /// The state now. Costs no request.
    #[must_use]
    pub fn state(&self) -> CandidateState {
        self.inner.state()
    }

    /// Waits until the state is another one than the last call returned, and returns it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::CannotBlock`](crate::ConfigError::CannotBlock) within an async task. Otherwise as
    /// [`CandidateWatch::changed`](crate::CandidateWatch::changed).
    pub fn changed(&mut self) -> Result<CandidateState, Error> {
        self.thread.block_checked(self.inner.changed())?
    }

    /// As [`changed`](Self::changed), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the state has not changed. Otherwise as [`changed`](Self::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<CandidateState, Error> {
        let Self { inner, path, thread } = self;
        within(thread, timeout, inner.changed(), "waiting for another state of the candidate", path)
    }
}

/// Waits for a change, for at most `timeout`.
fn within<T>(
    thread: &RuntimeThread,
    timeout: Duration,
    change: impl Future<Output = Result<T, Error>>,
    waiting: &'static str,
    path: &WholePath,
) -> Result<T, Error> {
    let change = async { tokio::time::timeout(timeout, change).await };
    thread.block_checked(change)?.unwrap_or_else(|_| {
        let phase = Phase::Recipe(waiting.into());
        Err(Error::Timeout { phase, path: path.clone(), waited: timeout })
    })
}
