//! A barrier that is set and removed.
//!
//! # Protocol
//!
//! The barrier is set while its node exists, as Curator's `DistributedBarrier` and kazoo's `Barrier` have it.
//! The node is persistent. A waiter reads it with a watch.
//!
//! Sources: Apache Curator's `DistributedBarrier`, kazoo's `recipe/barrier.py`.

use std::fmt::{self, Debug, Display, Formatter};
use std::time::{Duration, SystemTime};

use lockkeeper_core::{
    ConnectionManager, CreateMode, Error, IntoPath, Outcome, Refusal, WholePath, ZnodePath, Znodes,
};

use crate::limits;

/// A barrier that one process sets and removes, and that others wait behind.
///
/// It stays set until it is removed, also if the process that set it crashes. To wait for a process that may
/// crash, use a [`Mutex`](crate::Mutex).
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Barrier;
///
/// let migration = Barrier::new(&manager, "/barriers/migration")?;
/// migration.set().await?;
/// let waiting = tokio::spawn({
///     let migration = migration.clone();
///     async move { migration.wait().await }
/// });
/// println!("{}", migration.inspect().await?); // the client that set it, and how long ago
/// migration.remove().await?;
/// waiting.await??;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Barrier {
    manager: ConnectionManager,
    path: ZnodePath,
}

/// Whether a [`Barrier`] is set, and by which client: a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierInspection {
    path: WholePath,
    set: Option<(String, SystemTime)>,
}

impl Barrier {
    /// Makes the barrier at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = limits::own_path(path, "name a node below the root")?;
        Ok(Self { manager: manager.clone(), path })
    }

    /// The path of the barrier, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// Sets the barrier. Returns `false` if it was set before. Missing parents are created.
    ///
    /// After a lost answer it returns `true` if the barrier is set then, by this call or by another client,
    /// before or since: the node does not tell. To know which client has the barrier, take a
    /// [`Mutex`](crate::Mutex).
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: no answer came, and the barrier is not set now; it may be set later.
    /// [`Error::Timeout`], [`Error::Refused`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// The barrier may be set.
    pub async fn set(&self) -> Result<bool, Error> {
        let data = self.manager.node_data().to_vec();
        match self.manager.znodes().create(self.path.clone(), data, CreateMode::Persistent).await {
            Ok(_) => Ok(true),
            Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => Ok(false),
            Err(error) if error.outcome() == Outcome::Unknown => match self.is_set().await {
                Ok(true) => Ok(true),
                Ok(false) | Err(_) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Removes the barrier, whichever client set it: all waits end. Returns `false` if it was not set.
    ///
    /// After a lost answer it returns `true` if the barrier is not set then, whether this call or another
    /// client removed it.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: no answer came, and the barrier is still set; it may be removed later.
    /// [`Error::Refused`] with [`Refusal::NotEmpty`] if there are nodes below the barrier, [`Error::Timeout`]
    /// and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// The barrier may be removed.
    pub async fn remove(&self) -> Result<bool, Error> {
        match self.manager.znodes().delete(self.path.clone()).await {
            Err(error) if error.outcome() == Outcome::Unknown => match self.is_set().await {
                Ok(false) => Ok(true),
                Ok(true) | Err(_) => Err(error),
            },
            removed => removed,
        }
    }

    /// Whether the barrier is set, as the connected server knows it.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn is_set(&self) -> Result<bool, Error> {
        Ok(self.manager.znodes().read(self.path.clone()).await?.is_some())
    }

    /// Waits until the barrier is not set, without a limit of time. Returns at once if it is not.
    ///
    /// A barrier that is removed and set again between may not be seen to be removed.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] (no right to read), [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn wait(&self) -> Result<(), Error> {
        self.waits().deleted(self.path.clone()).await
    }

    /// As [`wait`](Self::wait), for at most `timeout`. With a `timeout` of zero, it reads once.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if the barrier is still set. Otherwise as [`wait`](Self::wait).
    ///
    /// # Session loss
    ///
    /// As [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.waits().deleted_timeout(self.path.clone(), timeout).await
    }

    fn waits(&self) -> Znodes {
        self.manager.znodes().with_metric_name("barrier")
    }

    /// Whether the barrier is set, by which client and since when: a snapshot. Needs only the right to read.
    ///
    /// # Errors
    ///
    /// As [`is_set`](Self::is_set).
    ///
    /// # Cancel safety
    ///
    /// As [`is_set`](Self::is_set).
    pub async fn inspect(&self) -> Result<BarrierInspection, Error> {
        let node = self.manager.znodes().read(self.path.clone()).await?;
        let set = node.map(|(data, stat)| {
            let since = SystemTime::UNIX_EPOCH
                .checked_add(Duration::from_millis(stat.ctime.try_into().unwrap_or_default()));
            (String::from_utf8_lossy(&data).into_owned(), since.unwrap_or(SystemTime::UNIX_EPOCH))
        });
        Ok(BarrierInspection { path: self.manager.whole_path(&self.path), set })
    }
}

impl BarrierInspection {
    /// Whether the barrier is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.set.is_some()
    }

    /// The data of the node: by default host and process of the client that set the barrier; of Curator its
    /// address.
    #[must_use]
    pub fn set_by(&self) -> Option<&str> {
        self.set.as_ref().map(|(by, _)| by.as_str())
    }

    /// When the barrier was set, by the servers' clock.
    #[must_use]
    pub fn since(&self) -> Option<SystemTime> {
        self.set.as_ref().map(|(_, since)| *since)
    }
}

impl Display for BarrierInspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match &self.set {
            None => write!(formatter, "barrier {}: not set", self.path),
            Some((by, _)) => write!(formatter, "barrier {}: set by {}", self.path, by.escape_debug()),
        }
    }
}

impl Debug for Barrier {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Barrier").field("path", &self.path).finish_non_exhaustive()
    }
}
