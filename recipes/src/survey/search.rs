//! Reads a tree level by level.

use futures::future::join_all;
use lockkeeper_core::{ConnectionManager, Error, IntoPath, NodeInfo, Refusal, Stat, ZnodePath};

use super::found::{Survey, SurveyGroup};
use super::layout::{Layout, may_be_a_directory};
use super::queue::queue_at;
use crate::inspection::{InspectedRecipe, Inspection};
use crate::rate_limiter::RateLimiter;
use crate::semaphore::Semaphore;
use crate::{Election, Mutex, RwLock};

/// The greatest number of nodes that a survey reads, unless another one is set.
const NODES_MAX: usize = 10_000;

/// How many requests of a survey are in flight.
const BATCH: usize = 64;

const RATE_LIMITER: InspectedRecipe = InspectedRecipe { name: "rate limiter", counted: None };

/// A directory, and the names of its children.
struct Listed {
    path: ZnodePath,
    children: Vec<String>,
    /// The children that are directories though they have the name of a contender.
    directories: Vec<ZnodePath>,
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
        search(manager, root.into_path()?, nodes_max).await
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

async fn search(manager: &ConnectionManager, root: ZnodePath, nodes_max: usize) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let mut located: Vec<(ZnodePath, Layout)> = Vec::new();
    let mut left = nodes_max;
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            for listed in list_each(manager, batch, &mut survey.unread).await? {
                let listed = without_directories(manager, listed, &mut survey.unread).await?;
                let queue = queue_at(manager, &listed.path, &listed.children).await;
                if let Some(Some(queue)) = readable(queue, &listed.path, &mut survey.unread)? {
                    survey.queues.push(queue);
                    continue;
                }
                let layout = Layout::of(&listed.children);
                // No lock is at the root, whatever other programs keep there.
                if layout != Layout::Plain && !listed.path.is_root() {
                    located.push((listed.path.clone(), layout));
                }
                let searched = listed.children.iter().filter(|child| layout.is_searched(child));
                let below: Vec<ZnodePath> = searched
                    .filter_map(|child| listed.path.child(child).ok())
                    // The servers' own nodes.
                    .filter(|path| path.as_str() != "/zookeeper")
                    .collect();
                let mut found = Vec::new();
                for some in below.chunks(BATCH) {
                    if survey.is_partial {
                        break;
                    }
                    for node in stats(manager, some, &mut survey.unread).await? {
                        if node.counts() {
                            survey.is_partial = left == 0;
                            left = left.saturating_sub(1);
                        }
                        if survey.is_partial {
                            break;
                        }
                        found.push(node);
                    }
                }
                let (directories, group) = sort(&listed, found);
                next.extend(directories);
                next.extend(listed.directories);
                survey.groups.extend(group);
            }
        }
        level = next;
    }
    located.sort_by(|one, other| one.0.cmp(&other.0));
    survey.queues.sort_by(|one, other| one.path.cmp(&other.path));
    survey.groups.sort_by(|one, other| one.path.cmp(&other.path));
    for batch in located.chunks(BATCH) {
        let inspected = join_all(batch.iter().map(|(path, layout)| inspect(manager, path.clone(), *layout)));
        for (inspected, (path, _)) in inspected.await.into_iter().zip(batch) {
            match readable(inspected, path, &mut survey.unread)? {
                Some(lock) if !lock.contenders().is_empty() => survey.locks.push(lock),
                _ => {}
            }
        }
    }
    Ok(survey)
}

/// The inspection of whatever recipe has this path.
async fn inspect_path(manager: &ConnectionManager, path: ZnodePath) -> Result<Option<Inspection>, Error> {
    let children = manager.znodes().children(&path).await?.unwrap_or_default();
    let listed = Listed { path: path.clone(), children, directories: Vec::new() };
    let listed = without_directories(manager, listed, &mut Vec::new()).await?;
    match Layout::of(&listed.children) {
        Layout::Plain => RateLimiter::inspect_at(manager, &path).await,
        layout => inspect(manager, path, layout).await.map(Some),
    }
}

/// The inspections of several paths. A path without a contender is left out.
pub(crate) async fn inspect_each(
    manager: &ConnectionManager,
    paths: &[ZnodePath],
) -> Result<Vec<Inspection>, Error> {
    let mut inspections = Vec::new();
    for batch in paths.chunks(BATCH) {
        let read = join_all(batch.iter().map(|path| inspect_path(manager, path.clone()))).await;
        for inspection in read {
            inspections.extend(inspection?);
        }
    }
    Ok(inspections)
}

async fn inspect(manager: &ConnectionManager, path: ZnodePath, layout: Layout) -> Result<Inspection, Error> {
    match layout {
        Layout::Mutex | Layout::Plain => Mutex::new(manager, path)?.inspect().await,
        Layout::ReadWrite => RwLock::new(manager, path)?.inspect().await,
        Layout::Election => Election::new(manager, path, "")?.inspect().await,
        Layout::Semaphore => Semaphore::inspect_at(manager, path).await,
        Layout::RateLimiter => match RateLimiter::inspect_at(manager, &path).await? {
            Some(inspection) => Ok(inspection),
            // Its first contender has not written yet.
            None => Ok(Inspection::of(RATE_LIMITER, manager, &path, None, Vec::new())),
        },
    }
}

/// The children of each directory that exists.
async fn list_each(
    manager: &ConnectionManager,
    paths: &[ZnodePath],
    unread: &mut Vec<ZnodePath>,
) -> Result<Vec<Listed>, Error> {
    let znodes = manager.znodes();
    let lists = join_all(paths.iter().map(|path| znodes.children(path))).await;
    let mut listed = Vec::new();
    for (children, path) in lists.into_iter().zip(paths) {
        if let Some(Some(mut children)) = readable(children, path, unread)? {
            children.sort_unstable();
            listed.push(Listed { path: path.clone(), children, directories: Vec::new() });
        }
    }
    Ok(listed)
}

/// Sets the directories apart that have the name of a contender: `lock-1700000001` may be a lock itself.
async fn without_directories(
    manager: &ConnectionManager,
    mut listed: Listed,
    unread: &mut Vec<ZnodePath>,
) -> Result<Listed, Error> {
    let asked = listed.children.iter().filter(|child| may_be_a_directory(child));
    let asked: Vec<ZnodePath> = asked.filter_map(|child| listed.path.child(child).ok()).collect();
    for ReadNode { path, stat, .. } in stats(manager, &asked, unread).await? {
        if stat.is_directory() {
            listed.children.retain(|child| child != path.name());
            if stat.children > 0 {
                listed.directories.push(path);
            }
        }
    }
    Ok(listed)
}

/// A node that exists.
struct ReadNode {
    path: ZnodePath,
    stat: Stat,
    /// An instance of a service that is persistent on purpose.
    is_permanent: bool,
}

impl ReadNode {
    /// Whether the node counts to the limit of a survey. Empty directories do not: locks that are free have
    /// left them.
    fn counts(&self) -> bool {
        self.stat.children > 0 || self.stat.ephemeral_owner != 0
    }
}

/// Each node that exists.
async fn stats(
    manager: &ConnectionManager,
    paths: &[ZnodePath],
    unread: &mut Vec<ZnodePath>,
) -> Result<Vec<ReadNode>, Error> {
    let znodes = manager.znodes();
    let mut found = Vec::new();
    for batch in paths.chunks(BATCH) {
        let read = join_all(batch.iter().map(|path| znodes.read(path))).await;
        for (node, path) in read.into_iter().zip(batch) {
            if let Some(Some((data, stat))) = readable(node, path, unread)? {
                found.push(ReadNode { path: path.clone(), stat, is_permanent: is_permanent(&data) });
            }
        }
    }
    Ok(found)
}

/// Whether this is the data of an instance of a service whose type is persistent: Curator's JSON.
fn is_permanent(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    [r#""serviceType":"PERMANENT""#, r#""serviceType":"STATIC""#].iter().any(|of| text.contains(of))
}

/// The nodes to search, and the group that the ephemeral ones are.
fn sort(listed: &Listed, nodes: Vec<ReadNode>) -> (Vec<ZnodePath>, Option<SurveyGroup>) {
    let (mut members, mut unowned, mut directories) = (Vec::new(), Vec::new(), Vec::new());
    for ReadNode { path, stat, is_permanent } in nodes {
        match stat.ephemeral_owner {
            0 if stat.children > 0 => directories.push(path),
            // The node that opens a double barrier is persistent on purpose.
            0 if stat.is_directory() || is_permanent || path.name() == "ready" => {}
            0 => unowned.push(NodeInfo::new(path.name(), None, stat)),
            _ => members.push(NodeInfo::new(path.name(), None, stat)),
        }
    }
    members.sort_by_key(NodeInfo::czxid);
    let group = (!members.is_empty()).then(|| SurveyGroup { path: listed.path.clone(), members, unowned });
    (directories, group)
}

/// `None` for a node that this client may not read.
fn readable<T>(
    read: Result<T, Error>,
    path: &ZnodePath,
    unread: &mut Vec<ZnodePath>,
) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Refused { refusal: Refusal::NoAuth, .. }) => {
            unread.push(path.clone());
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
