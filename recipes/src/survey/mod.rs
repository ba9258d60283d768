//! Every lock, election and group below a root.

mod layout;
mod search;

use lockkeeper_core::{ConnectionManager, Error, IntoPath, NodeInfo, ZnodePath};

pub(crate) use self::search::{inspect_each, inspect_path};
use crate::inspection::Inspection;

/// The greatest number of nodes that a survey reads, unless another one is set.
const NODES_MAX: usize = 10_000;

/// Every lock, election and group below a root: a snapshot for people and tools, see [`Inspection`].
///
/// The names of a directory's nodes tell its recipe. A lock without any contender is not seen, because its
/// directory is empty. A group is a directory with ephemeral nodes of no known kind. A directory whose own
/// name is like that of a contender is no contender.
///
/// A survey only reads. It sends one request for each node above the contenders, and one for each contender.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Mutex;
/// use lockkeeper::inspect::Survey;
///
/// let mutex = Mutex::new(&manager, "/shop/locks/train-7")?;
/// let _guard = mutex.acquire().await?;
///
/// let survey = Survey::below(&manager, "/shop").await?;
/// assert_eq!(survey.locks()[0].path().as_str(), "/shop/locks/train-7");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    locks: Vec<Inspection>,
    groups: Vec<SurveyGroup>,
    unread: Vec<ZnodePath>,
    is_partial: bool,
}

/// A directory with ephemeral nodes that are not contenders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyGroup {
    path: ZnodePath,
    members: Vec<NodeInfo>,
    unowned: Vec<NodeInfo>,
}

impl Survey {
    /// Reads everything below `root`, and `root` itself: at most 10,000 nodes besides the contenders
    /// and empty directories.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect). A directory that this client may not
    /// read is no error: see [`unread`](Self::unread).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn below(manager: &ConnectionManager, root: impl IntoPath) -> Result<Self, Error> {
        Self::below_with(manager, root, NODES_MAX).await
    }

    /// As [`below`](Self::below), with another limit of nodes.
    ///
    /// # Errors
    ///
    /// As [`below`](Self::below).
    ///
    /// # Cancel safety
    ///
    /// As [`below`](Self::below).
    pub async fn below_with(
        manager: &ConnectionManager,
        root: impl IntoPath,
        nodes_max: usize,
    ) -> Result<Self, Error> {
        search::search(manager, root.into_path()?, nodes_max).await
    }

    /// The locks and elections, in the order of their paths.
    #[must_use]
    pub fn locks(&self) -> &[Inspection] {
        &self.locks
    }

    /// The groups, in the order of their paths.
    #[must_use]
    pub fn groups(&self) -> &[SurveyGroup] {
        &self.groups
    }

    /// The directories that this client may not list or read, below the manager's chroot.
    #[must_use]
    pub fn unread(&self) -> &[ZnodePath] {
        &self.unread
    }

    /// Whether the survey reached its limit of nodes before it had read all.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }
}

impl Inspection {
    /// Returns the holders and the waiters of whatever recipe has this path. `None` if the path has no
    /// contender: the lock is free, or no lock at all.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn of_path(manager: &ConnectionManager, path: impl IntoPath) -> Result<Option<Self>, Error> {
        inspect_path(manager, path.into_path()?).await
    }
}

impl SurveyGroup {
    /// The path of the directory, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The members, the oldest first.
    #[must_use]
    pub fn members(&self) -> &[NodeInfo] {
        &self.members
    }

    /// The persistent nodes without children beside the members. In a group, a partition or a barrier such a
    /// node is no member, and no crash removes it; elsewhere it may belong to the application.
    #[must_use]
    pub fn unowned(&self) -> &[NodeInfo] {
        &self.unowned
    }
}
