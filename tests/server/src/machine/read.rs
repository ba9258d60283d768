use bytes::Bytes;

use super::replica::Replica;
use super::{ClientId, Machine, Output};
use crate::protocol::{ErrorCode, Op, ReadOp, ReadResult, Reply, Request};
use crate::tree::{Acl, Identity, Node, Permissions, Tree, WatchEvent, WatchMode, Watches};

/// The longest answer to a multi-read, in bytes of data and names. A small request can name one large node a
/// hundred thousand times.
const MAX_MULTI_READ: usize = 64 << 20;

impl Machine {
    /// Answers what needs no leader, from the tree as the client's server has it.
    pub(super) fn read(
        &mut self,
        client: ClientId,
        request: Request,
        out: &mut Vec<Output>,
    ) -> Result<Reply, ErrorCode> {
        let Some(known) = self.clients.get(&client) else { return Err(ErrorCode::SessionExpired) };
        let Some(replica) = self.replicas.get_mut(known.server) else {
            return Err(ErrorCode::SessionExpired);
        };
        let Replica { watches, past, .. } = replica;
        let tree = past.as_ref().map_or(&self.tree, |past| &past.tree);
        let identities = known.identities.as_slice();
        match request {
            Request::Exists { path, watch } => {
                if path.contains('\0') {
                    return Err(ErrorCode::BadArguments);
                }
                if watch {
                    watches.watch_data(&path, client);
                }
                tree.node(&path).map(|node| Reply::Stat(node.stat())).ok_or(ErrorCode::NoNode)
            }
            Request::GetData { path, watch } => {
                let node = readable(tree, &path, identities)?;
                if watch {
                    watches.watch_data(&path, client);
                }
                Ok(Reply::Data(node.data.clone(), node.stat()))
            }
            Request::GetChildren { path, watch, with_stat } => {
                let node = readable(tree, &path, identities)?;
                if watch {
                    watches.watch_children(&path, client);
                }
                let names = node.children.iter().cloned().collect();
                Ok(if with_stat { Reply::ChildrenStat(names, node.stat()) } else { Reply::Children(names) })
            }
            Request::CountDescendants { path } => {
                readable(tree, &path, identities)?;
                Ok(Reply::Count(i32::try_from(tree.count_descendants(&path)).unwrap_or(i32::MAX)))
            }
            Request::Ephemerals { prefix } => {
                let session = known.session.unwrap_or_default();
                let all = matches!(prefix.trim(), "" | "/");
                let paths = tree.ephemerals(session).filter(|path| all || path.starts_with(&prefix));
                Ok(Reply::Ephemerals(paths.map(str::to_owned).collect()))
            }
            Request::GetAcl { path } => get_acl(tree, &path, identities),
            Request::MultiRead(ops) => multi_read(tree, &ops, identities),
            Request::WhoAmI => Ok(Reply::Identities(identities.to_vec())),
            request => watch(watches, tree, client, request, out),
        }
    }
}

/// Sets, removes and restores watches.
fn watch(
    watches: &mut Watches,
    tree: &Tree,
    client: ClientId,
    request: Request,
    out: &mut Vec<Output>,
) -> Result<Reply, ErrorCode> {
    match request {
        // No event is one of a null path, so such a watch is not kept.
        Request::NullPath { op: Op::AddWatch } => Ok(Reply::WatchAdded),
        Request::NullPath { op: Op::RemoveWatches } => Err(ErrorCode::NoWatcher),
        Request::AddWatch { path, mode } => {
            watches.add(&path, client, mode);
            Ok(Reply::WatchAdded)
        }
        Request::RemoveWatches { path, kind } => {
            watches.remove(&path, client, kind).then_some(Reply::Done).ok_or(ErrorCode::NoWatcher)
        }
        Request::CheckWatches { path, kind } => {
            watches.is_watched(&path, kind).then_some(Reply::Done).ok_or(ErrorCode::NoWatcher)
        }
        Request::SetWatches { seen, data, absent, children, persistent } => {
            let mut missed: Vec<WatchEvent> = Vec::new();
            missed.extend(data.iter().filter_map(|path| watches.restore_data(tree, path, seen, client)));
            missed.extend(absent.iter().filter_map(|path| watches.restore_absence(tree, path, client)));
            missed.extend(
                children.iter().filter_map(|path| watches.restore_children(tree, path, seen, client)),
            );
            let (persistent, recursive) = persistent.unwrap_or_default();
            for path in &persistent {
                watches.add(path, client, WatchMode::Persistent);
            }
            for path in &recursive {
                watches.add(path, client, WatchMode::PersistentRecursive);
            }
            // No server says by which transaction it happened.
            out.extend(missed.into_iter().map(|event| Output::Event { client, event, zxid: -1 }));
            Ok(Reply::Done)
        }
        _ => Err(ErrorCode::MarshallingError),
    }
}

fn multi_read(tree: &Tree, ops: &[ReadOp], requester: &[Identity]) -> Result<Reply, ErrorCode> {
    let length = |op: &ReadOp| match op {
        ReadOp::Data(path) => tree.node(path).and_then(|node| node.data.as_ref()).map_or(0, Bytes::len),
        ReadOp::Children(path) => {
            tree.node(path).map_or(0, |node| node.children.iter().map(String::len).sum())
        }
    };
    if ops.iter().map(length).sum::<usize>() > MAX_MULTI_READ {
        return Err(ErrorCode::MarshallingError);
    }
    let result = |op: &ReadOp| match readable(tree, op.path(), requester) {
        Err(error) => ReadResult::Failed(error),
        Ok(node) => match op {
            ReadOp::Data(_) => ReadResult::Data(node.data.clone(), node.stat()),
            ReadOp::Children(_) => ReadResult::Children(node.children.iter().cloned().collect()),
        },
    };
    Ok(Reply::MultiRead(ops.iter().map(result).collect()))
}

fn readable<'a>(tree: &'a Tree, path: &str, requester: &[Identity]) -> Result<&'a Node, ErrorCode> {
    let node = tree.node(path).ok_or(ErrorCode::NoNode)?;
    Acl::permit(&node.acl, Permissions::READ, requester).then_some(node).ok_or(ErrorCode::NoAuth)
}

fn get_acl(tree: &Tree, path: &str, requester: &[Identity]) -> Result<Reply, ErrorCode> {
    let node = tree.node(path).ok_or(ErrorCode::NoNode)?;
    if !Acl::permit(&node.acl, Permissions::READ_OR_ADMIN, requester) {
        return Err(ErrorCode::NoAuth);
    }
    let lines = node.acl.iter();
    let acl = if Acl::permit(&node.acl, Permissions::ADMIN, requester) {
        lines.cloned().collect()
    } else {
        lines.map(Acl::redacted).collect()
    };
    Ok(Reply::Acl(acl, node.stat()))
}
