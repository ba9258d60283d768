use std::ops::ControlFlow;
use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ReleaseError, ZnodePath};
use tracing::{debug, info};

use super::events::{Events, HoldEvents};
use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;
use super::watch::Watch;
use crate::Inspection;
use crate::election::{CandidateState, Leader, TermPauses};

/// One leader among many processes, for threads. Everything is as for the async
/// [`Election`](crate::Election).
///
/// The work of a thread cannot be dropped when its leadership is lost: call [`Guard::check`] between the
/// steps of the work.
///
/// # Methods
///
/// [`campaign`](Self::campaign), [`try_campaign`](Self::try_campaign), [`lead`](Self::lead), and others; and
/// those of every [`Blocking`](super::Blocking).
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
///
/// # Methods
///
/// Those of every [`Guard`](super::Guard), and [`resign`](Self::resign).
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
        Ok(manager.beside(crate::Election::new(manager.as_async(), path, id)?))
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
        Ok(manager.beside(crate::Election::in_selector_layout(manager.as_async(), path, id)?))
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
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Election::campaign`](crate::Election::campaign).
    #[track_caller]
    pub fn campaign(&self) -> Result<Leadership, Error> {
        self.guard(self.inner.campaign())
    }

    /// Waits until this participant leads, for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], which names the predecessor. Otherwise as [`campaign`](Self::campaign).
    #[track_caller]
    pub fn campaign_timeout(&self, timeout: Duration) -> Result<Leadership, Error> {
        self.guard(self.inner.campaign_timeout(timeout))
    }

    /// Leads if there is no other candidate. Returns `None` if any candidate is ahead.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if there was no connection or no answer within the manager's operation timeout.
    /// Otherwise as [`campaign`](Self::campaign).
    #[track_caller]
    pub fn try_campaign(&self) -> Result<Option<Leadership>, Error> {
        self.try_guard(self.inner.try_campaign())
    }

    /// Returns the ids of all participants in the order of the queue, the leader first.
    ///
    /// # Errors
    ///
    /// As [`Election::candidates`](crate::Election::candidates), and
    /// [`CannotBlock`](super::CannotBlock) within an async task.
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
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
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
    #[track_caller]
    pub fn lead<T>(&self, mut work: impl FnMut(&Leadership) -> ControlFlow<T>) -> Result<T, Error> {
        let now = lockkeeper_core::BootInstant::now;
        let mut pauses = TermPauses::default();
        loop {
            let mut begun = now();
            match self.campaign() {
                Ok(leadership) => {
                    begun = now();
                    let ended = work(&leadership);
                    if let Err(error) = leadership.resign() {
                        info!(path = %self.inner.whole_path(), %error, "the resignation is not confirmed");
                    }
                    if let ControlFlow::Break(value) = ended {
                        return Ok(value);
                    }
                }
                Err(error) if error.is_transient() => {
                    debug!(path = %self.inner.whole_path(), %error, "campaigning again");
                }
                Err(error) => return Err(error),
            }
            self.thread.block_checked(self.inner.pause(pauses.after(now().since(begun))))?;
        }
    }

    /// Follows this participant: whether it waits, leads, or has lost. See
    /// [`Election::state`](crate::Election::state).
    #[must_use]
    pub fn state(&self) -> Watch<CandidateState> {
        let waiting = "waiting for another state of the candidate";
        Watch::new(self.inner.state(), &self.thread, waiting, self.inner.whole_path())
    }

    /// Follows the leader of the election, without being a candidate. Waits for the first answer, within the
    /// manager's operation timeout.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Election::observe`](crate::Election::observe).
    pub fn observe(&self) -> Result<Watch<Option<Leader>>, Error> {
        let (leader, waiting) = (self.block(self.inner.observe())?, "waiting for another leader");
        Ok(Watch::new(leader, &self.thread, waiting, self.inner.whole_path()))
    }

    /// Whether a participant of this process leads: by this manager, with any id. Costs no request.
    #[must_use]
    pub fn is_led_here(&self) -> bool {
        self.inner.is_led_here()
    }

    /// The events of the leaderships of this manager's participants from now on: granted, given up, lost.
    #[must_use]
    pub fn events(&self) -> HoldEvents {
        let waiting = "waiting for an event of the leadership";
        Events::new(self.inner.events(), &self.thread, waiting, self.inner.whole_path())
    }

    /// Returns the leader and the other candidates, with their ids and ages: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Election::inspect`](crate::Election::inspect).
    pub fn inspect(&self) -> Result<Inspection, Error> {
        self.block(self.inner.inspect())
    }
}
