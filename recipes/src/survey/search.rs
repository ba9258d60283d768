//! Reads a tree level by level.

use futures::future::join_all;
use lockkeeper_core::{ConnectionManager, Error, Label, LockQueue, Refusal, Rule, Stat, ZnodePath};

use super::layout::Layout;
use super::{Survey, SurveyGroup, SurveyMember};
use crate::inspection::{InspectedRecipe, Inspection, waiting};
use crate::semaphore::Semaphore;
use crate::{Election, Mutex, RwLock};

/// How many requests of a survey are in flight.
const BATCH: usize = 64;

const RATE_LIMITER: InspectedRecipe = InspectedRecipe { name: "rate limiter", counted: None };

/// A directory, and the names of its children.
struct Listed {
    path: ZnodePath,
    children: Vec<String>,
}

pub(super) async fn search(
    manager: &ConnectionManager,
    root: ZnodePath,
    nodes_max: usize,
) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let mut located: Vec<(ZnodePath, Layout)> = Vec::new();
    let mut left = nodes_max;
    let mut level = vec![root];
    while !level.is_empty() {
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            for listed in list_each(manager, batch, &mut survey.unread).await? {
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
                    found.extend(stats(manager, some, &mut survey.unread).await?);
                    survey.is_partial = found.len() > left;
                    found.truncate(left);
                }
                left -= found.len();
                let (directories, group) = sort(&listed, found);
                next.extend(directories);
                survey.groups.extend(group);
            }
        }
        level = next;
    }
    located.sort_by(|one, other| one.0.cmp(&other.0));
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
pub(crate) async fn inspect_path(
    manager: &ConnectionManager,
    path: ZnodePath,
) -> Result<Option<Inspection>, Error> {
    let children = manager.znodes().children(&path).await?.unwrap_or_default();
    match Layout::of(&children) {
        Layout::Plain => Ok(None),
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
        Layout::RateLimiter => {
            // The window is known to the limiter's users only, so no start is said to count.
            let queue = LockQueue::new(manager, path.child("locks")?, Label::LOCK, Rule::MUTEX)?;
            let contenders = waiting(queue.inspect().await?).collect();
            Ok(Inspection::of(RATE_LIMITER, manager, &path, None, contenders))
        }
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
            listed.push(Listed { path: path.clone(), children });
        }
    }
    Ok(listed)
}

/// The stat of each node that exists, but not of empty directories: locks that are free have left them.
async fn stats(
    manager: &ConnectionManager,
    paths: &[ZnodePath],
    unread: &mut Vec<ZnodePath>,
) -> Result<Vec<(ZnodePath, Stat)>, Error> {
    let znodes = manager.znodes();
    let mut found = Vec::new();
    let read = join_all(paths.iter().map(|path| znodes.read(path))).await;
    for (node, path) in read.into_iter().zip(paths) {
        match readable(node, path, unread)? {
            Some(Some((_, stat))) if stat.children > 0 || stat.ephemeral_owner != 0 => {
                found.push((path.clone(), stat));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The nodes to search, and the group that the ephemeral ones are.
fn sort(listed: &Listed, nodes: Vec<(ZnodePath, Stat)>) -> (Vec<ZnodePath>, Option<SurveyGroup>) {
    let (mut members, mut directories) = (Vec::new(), Vec::new());
    for (path, stat) in nodes {
        match stat.ephemeral_owner {
            0 => directories.push(path),
            _ => members.push(SurveyMember { name: path.name().to_owned(), stat }),
        }
    }
    members.sort_by_key(|member: &SurveyMember| member.stat.czxid);
    let group = (!members.is_empty()).then(|| SurveyGroup { path: listed.path.clone(), members });
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
