use std::time::Duration;

use lockkeeper_core::{Error, IntoPath};

use super::manager::ConnectionManager;

/// The calls of the async [`Survey`](crate::Survey), for threads. Each returns a survey of the async API,
/// whose methods block nothing.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
/// use lockkeeper::blocking::{Deadlocks, Mutex, Survey};
///
/// let guard = Mutex::new(&manager, "/shop/locks/train-7")?.acquire()?;
/// let survey = Survey::below(&manager, "/shop")?;
/// assert_eq!(survey.locks()[0].path().as_str(), "/shop/locks/train-7");
/// let deadlocks = Deadlocks::among(&manager, survey.locks(), Duration::from_secs(1))?;
/// assert!(!deadlocks.is_any_found(), "{deadlocks}");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub enum Survey {}

/// The calls of the async [`Inspection`](crate::Inspection), for threads.
#[derive(Debug)]
pub enum Inspection {}

/// The calls of the async [`Deadlocks`](crate::Deadlocks), for threads: see [`Survey`].
#[derive(Debug)]
pub enum Deadlocks {}

impl Survey {
    /// Reads everything below `root`, and `root` itself: at most 10,000 nodes besides the contenders
    /// and empty directories.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Survey::below`](crate::Survey::below).
    pub fn below(manager: &ConnectionManager, root: impl IntoPath) -> Result<crate::Survey, Error> {
        manager.thread().block_checked(crate::Survey::below(manager.as_async(), root))?
    }

    /// As [`below`](Self::below), with another limit of nodes.
    ///
    /// # Errors
    ///
    /// As [`below`](Self::below).
    pub fn below_with(
        manager: &ConnectionManager,
        root: impl IntoPath,
        nodes_max: usize,
    ) -> Result<crate::Survey, Error> {
        manager.thread().block_checked(crate::Survey::below_with(manager.as_async(), root, nodes_max))?
    }
}

impl Inspection {
    /// Returns the holders and the waiters of whatever recipe has this path. `None` if the path has no
    /// contender.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Inspection::of_path`](crate::Inspection::of_path).
    pub fn of_path(
        manager: &ConnectionManager,
        path: impl IntoPath,
    ) -> Result<Option<crate::Inspection>, Error> {
        manager.thread().block_checked(crate::Inspection::of_path(manager.as_async(), path))?
    }
}

impl Deadlocks {
    /// Finds the deadlocks among these locks. The locks of a suspected deadlock are read once more, after
    /// `pause`.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as
    /// [`Deadlocks::among`](crate::Deadlocks::among).
    pub fn among(
        manager: &ConnectionManager,
        locks: &[crate::Inspection],
        pause: Duration,
    ) -> Result<crate::Deadlocks, Error> {
        manager.thread().block_checked(crate::Deadlocks::among(manager.as_async(), locks, pause))?
    }
}
