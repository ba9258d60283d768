//! What a survey finds.

use lockkeeper_core::{NodeInfo, ZnodePath};

use crate::inspection::Inspection;

/// Every lock, election, group and work queue below a root: a snapshot for people and tools, see
/// [`Inspection`].
///
/// The names of a directory's nodes tell its recipe. A lock without any contender is not seen, because its
/// directory is empty. A group is a directory with ephemeral nodes of no known kind. A directory whose own
/// name is like that of a contender is no contender. A work queue has items alone in its directory `items`.
///
/// A survey only reads. It sends one request for each node above the contenders, one for each contender, and
/// two for each work queue, with one more for each further directory of its items.
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
    pub(super) locks: Vec<Inspection>,
    pub(super) groups: Vec<SurveyGroup>,
    pub(super) queues: Vec<SurveyQueue>,
    pub(super) unread: Vec<ZnodePath>,
    pub(super) is_partial: bool,
}

/// A directory with ephemeral nodes that are not contenders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyGroup {
    pub(super) path: ZnodePath,
    pub(super) members: Vec<NodeInfo>,
    pub(super) unowned: Vec<NodeInfo>,
}

/// A work queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyQueue {
    pub(super) path: ZnodePath,
    pub(super) item_count: u32,
    pub(super) failed_count: u32,
}

impl Survey {
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

    /// The work queues, in the order of their paths.
    #[must_use]
    pub fn queues(&self) -> &[SurveyQueue] {
        &self.queues
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

impl SurveyQueue {
    /// The path of the queue, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The number of items, those included that a process has.
    #[must_use]
    pub fn item_count(&self) -> u32 {
        self.item_count
    }

    /// The number of failed items.
    #[must_use]
    pub fn failed_count(&self) -> u32 {
        self.failed_count
    }
}
