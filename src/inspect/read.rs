//! Reads the lists first, then the nodes in batches.

use std::time::{Duration, SystemTime};

use futures::future::join_all;

use super::contender_info::{AgeClock, ContenderInfo, Role};
use super::order::{Child, Judged, judge};
use crate::error::{Error, Operation, Refusal};
use crate::manager::ConnectionManager;
use crate::queue::LockQueue;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::wire::{Reply, Stat, WireError, existing};
use crate::znode::name::{Kind, NodeName};
use crate::znode::path::ZnodePath;

/// How many nodes are requested at once: a queue of ten thousand must not fill the server's request queue, or
/// this process's memory.
const BATCH: usize = 128;

/// How many bytes of a node's data are kept.
pub(crate) const DATA_BYTES_MAX: usize = 1024;

/// A node's data, if this client may read it, and its stat.
pub(super) type NodeContent = (Option<Vec<u8>>, Stat);

/// The queues of a directory, and the list that was requested.
type Asked<'a> = (&'a [&'a LockQueue], &'a str, Reply<Vec<String>>);

/// Reads the queues, which are grouped by directory.
pub(super) async fn read(
    manager: &ConnectionManager,
    directories: &[Vec<&LockQueue>],
) -> Result<Vec<Vec<ContenderInfo>>, Error> {
    let Some(first) = directories.iter().flatten().next() else {
        return Ok(Vec::new());
    };
    let limit = || Deadline::after(manager.operation_timeout());
    let session = manager.session(limit(), first.full_directory().as_str()).await?;
    // Back to back: the server has caught up when it answers the lists.
    let deadline = limit();
    let mut sync = session.read(|wire| wire.sync(first.full_directory().as_str()));
    let asked: Vec<Asked<'_>> = directories
        .iter()
        .filter_map(|queues| Some((queues.as_slice(), queues.first()?.full_directory().as_str())))
        .map(|(queues, directory)| (queues, directory, session.read(|wire| wire.children(directory))))
        .collect();
    let failed =
        |path: &str, error: &WireError, deadline| Error::of_wire(Operation::List, path, error, deadline);
    session
        .await_reply(&mut sync, deadline)
        .await
        .map_err(|error| failed(first.full_directory().as_str(), &error, deadline))?;
    let mut lists = Vec::with_capacity(asked.len());
    for (queues, directory, mut reply) in asked {
        let names = existing(session.await_reply(&mut reply, deadline).await);
        let names = names.map_err(|error| failed(directory, &error, deadline))?;
        lists.push((queues, names.unwrap_or_default()));
    }
    let mut read = Vec::with_capacity(lists.len());
    for (queues, names) in lists {
        let Some(queue) = queues.first() else { continue };
        let nodes = read_children(manager, &session, queue.full_directory(), &names, DATA_BYTES_MAX).await?;
        read.push((queues, names, nodes));
    }
    let stats = read.iter().flat_map(|(_, _, nodes)| nodes.iter().flatten().map(|(_, stat)| stat));
    let clock = Clock::of(&session, stats);
    Ok(read.into_iter().map(|(queues, names, nodes)| describe(queues, names, nodes, clock)).collect())
}

/// Reads one node without its queue. Returns `None` if it does not exist.
pub(crate) async fn read_node(
    session: &Session,
    manager: &ConnectionManager,
    path: &str,
    deadline: Deadline,
) -> Result<Option<ContenderInfo>, Error> {
    // The server has caught up when it answers the read.
    let mut sync = session.read(|wire| wire.sync(path));
    let failed = |error: WireError| Error::of_wire(Operation::Read, path, &error, deadline);
    session.await_reply(&mut sync, deadline).await.map_err(failed)?;
    let node = read_one(session, path, DATA_BYTES_MAX, deadline).await?;
    Ok(node.map(|node| {
        let clock = Clock::of(session, [&node.1]);
        let kind = path.rsplit('/').next().and_then(NodeName::parse).map(|name| name.kind());
        let judged = Judged { child: 0, role: Role::Unknown, position: None, kind };
        clock.info(ZnodePath::of_node(manager.below_chroot(path)), node, judged)
    }))
}

impl ContenderInfo {
    /// The head of a queue, whose node was read alone.
    pub(crate) fn head(
        manager: &ConnectionManager,
        session: &Session,
        path: &str,
        mut data: Vec<u8>,
        stat: Stat,
        kind: Kind,
    ) -> Self {
        data.truncate(DATA_BYTES_MAX);
        let judged = Judged { child: 0, role: Role::Holder, position: Some(0), kind: Some(kind) };
        let path = ZnodePath::of_node(manager.below_chroot(path));
        Clock::of(session, [&stat]).info(path, (Some(data), stat), judged)
    }
}

/// Reads the children of a directory with these names, as many at once as there is room for. `None` for those
/// that do not exist. Each batch has the time of one operation.
pub(super) async fn read_children(
    manager: &ConnectionManager,
    session: &Session,
    directory: &ZnodePath,
    names: &[String],
    data_bytes_max: usize,
) -> Result<Vec<Option<NodeContent>>, Error> {
    let mut nodes = Vec::with_capacity(names.len());
    for batch in names.chunks(BATCH) {
        let deadline = Deadline::after(manager.operation_timeout());
        let asked = batch.iter().map(async |name| {
            read_one(session, &directory.listed_child(name), data_bytes_max, deadline).await
        });
        for node in join_all(asked).await {
            nodes.push(node?);
        }
    }
    Ok(nodes)
}

async fn read_one(
    session: &Session,
    path: &str,
    data_bytes_max: usize,
    deadline: Deadline,
) -> Result<Option<NodeContent>, Error> {
    let failed = |error: WireError| Error::of_wire(Operation::Read, path, &error, deadline);
    match session.read_one_of_many(path, deadline).await {
        Ok((mut data, stat)) => {
            data.truncate(data_bytes_max);
            Ok(Some((Some(data), stat)))
        }
        Err(WireError::Refused(Refusal::NoNode)) => Ok(None),
        // Before 3.8.4 and 3.9.2 every client may read that the node exists, and its owner.
        Err(WireError::Refused(Refusal::NoAuth)) => {
            let mut reply = session.read(|wire| wire.exists(path));
            let stat = session.await_reply(&mut reply, deadline).await.map_err(failed)?;
            Ok(stat.map(|stat| (None, stat)))
        }
        Err(error) => Err(failed(error)),
    }
}

fn describe(
    queues: &[&LockQueue],
    names: Vec<String>,
    mut nodes: Vec<Option<NodeContent>>,
    clock: Clock,
) -> Vec<ContenderInfo> {
    let rules: Vec<_> = queues.iter().map(|queue| (queue.label().kind(), *queue.rule())).collect();
    let child = |(name, node): (String, &Option<NodeContent>)| {
        let stat = node.as_ref().map(|(_, stat)| stat);
        Child { name, czxid: stat.map(|stat| stat.czxid), is_directory: stat.is_some_and(Stat::is_directory) }
    };
    let children: Vec<Child> = names.into_iter().zip(&nodes).map(child).collect();
    let Some(queue) = queues.first() else { return Vec::new() };
    let own_holds = queue.manager().hold_registry().holds_in(queue.full_directory().as_str(), usize::MAX);
    let info = |judged: Judged| {
        let (child, node) = (children.get(judged.child)?, nodes.get_mut(judged.child)?.take()?);
        let is_holder = judged.role == Role::Holder;
        let path = ZnodePath::of_node(&queue.directory().listed_child(&child.name));
        let own_hold = || own_holds.get(&queue.full_directory().listed_child(&child.name)).copied();
        let held_here = is_holder.then(own_hold).flatten();
        Some(ContenderInfo { held_here, ..clock.info(path, node, judged) })
    };
    judge(&children, &rules).into_iter().filter_map(info).collect()
}

/// The servers' time, in milliseconds, as far as is known.
#[derive(Clone, Copy)]
struct Clock {
    now: i64,
    by: AgeClock,
    /// Of fencing tokens.
    generation: u32,
}

impl Clock {
    /// The time cannot be earlier than what the servers have reported.
    fn of<'a>(session: &Session, stats: impl IntoIterator<Item = &'a Stat>) -> Self {
        let newest = stats.into_iter().map(|stat| stat.ctime.max(stat.mtime)).max().unwrap_or_default();
        let (now, by) = match session.server_time() {
            Some(now) => (now, AgeClock::Server),
            None => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                (i64::try_from(now.as_millis()).unwrap_or(i64::MAX), AgeClock::Local)
            }
        };
        Self { now: now.max(newest), by, generation: session.settings().token_generation }
    }

    fn info(self, path: ZnodePath, (data, stat): NodeContent, judged: Judged) -> ContenderInfo {
        let age = Duration::from_millis(self.now.saturating_sub(stat.ctime).max(0).unsigned_abs());
        let Judged { role, position, kind, .. } = judged;
        let (age_clock, generation) = (self.by, self.generation);
        ContenderInfo { path, role, position, kind, data, stat, age, age_clock, held_here: None, generation }
    }
}
