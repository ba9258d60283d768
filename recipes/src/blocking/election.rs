use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, ReleaseError, ZnodePath};

use super::generic::Blocking;
use super::guard::Guard;
use super::manager::ConnectionManager;

/// One leader among many processes, for threads. Everything is as for the async
/// [`Election`](crate::Election).
///
/// [`Election::lead`](crate::Election::lead) has no counterpart: the work of a thread cannot be dropped when
/// its leadership is lost. Call [`Guard::check`] between the steps of the work.
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
}
