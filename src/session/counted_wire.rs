//! The requests of a session, with a budget for its ephemeral nodes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use super::node_bytes::NodeBytes;
use crate::config::acl::Acl;
use crate::error::{LossReason, Outcome, Refusal};
use crate::wire::{
    ChangedPaths, CreateMode, CreateOptions, Created, Data, Link, MultiError, Reply, Stat, Watch, WatchDepth,
    Wire, WireError, WriteOp, WriteResult,
};

/// The wire of a session. Every create and delete of the session is a request of this type, so no part of the
/// library can create an ephemeral node that the budget does not know.
#[derive(Debug)]
pub(super) struct CountedWire {
    wire: Arc<dyn Wire>,
    nodes: NodeBytes,
}

impl CountedWire {
    pub(super) fn new(wire: Arc<dyn Wire>, nodes: NodeBytes) -> Self {
        Self { wire, nodes }
    }
}

/// Whether the server appends a sequence number; `None` for a node that outlives its session.
fn ephemeral(mode: CreateMode) -> Option<bool> {
    match mode {
        CreateMode::Ephemeral => Some(false),
        CreateMode::EphemeralSequential => Some(true),
        CreateMode::Persistent | CreateMode::PersistentSequential | CreateMode::Container => None,
    }
}

fn created_ephemeral(operation: &WriteOp) -> Option<(&str, bool)> {
    match operation {
        WriteOp::Create { path, mode, .. } => {
            ephemeral(*mode).map(|is_sequential| (path.as_str(), is_sequential))
        }
        WriteOp::Check { .. } | WriteOp::SetData { .. } | WriteOp::Delete { .. } => None,
    }
}

fn deleted(operation: &WriteOp) -> Option<&str> {
    match operation {
        WriteOp::Delete { path, .. } => Some(path),
        WriteOp::Check { .. } | WriteOp::SetData { .. } | WriteOp::Create { .. } => None,
    }
}

const NO_ROOM: WireError = WireError::Refused(Refusal::SessionFull);

impl Wire for CountedWire {
    fn create(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created> {
        let Some(is_sequential) = ephemeral(options.mode) else {
            return self.wire.create(path, data, options);
        };
        let Some(charges) = self.nodes.charge([(path, is_sequential)], []) else {
            return Box::pin(std::future::ready(Err(NO_ROOM)));
        };
        let reply = self.wire.create(path, data, options);
        Box::pin(async move {
            let result = reply.await;
            for charge in charges {
                match &result {
                    Ok(created) => charge.created(&created.path),
                    Err(error) if error.outcome() == Outcome::NotApplied => charge.refused(),
                    Err(_) => drop(charge),
                }
            }
            result
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()> {
        let (nodes, last_create, path_sent) = (self.nodes.clone(), self.nodes.last_create(), path.to_owned());
        let reply = self.wire.delete(path, version);
        Box::pin(async move {
            let result = reply.await;
            if matches!(result, Ok(()) | Err(WireError::Refused(Refusal::NoNode))) {
                nodes.deleted(&path_sent, last_create);
            }
            result
        })
    }

    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>> {
        // A create of the same request at the path of a node that it deletes comes later.
        let (nodes, last_create) = (self.nodes.clone(), self.nodes.last_create());
        // By the index of the operation.
        let deletes: Vec<Option<String>> =
            operations.iter().map(|operation| deleted(operation).map(str::to_owned)).collect();
        let charged = self.nodes.charge(
            operations.iter().filter_map(created_ephemeral),
            deletes.iter().flatten().map(String::as_str),
        );
        let Some(charges) = charged else {
            return Box::pin(std::future::ready(Err(MultiError::Request(NO_ROOM))));
        };
        let reply = self.wire.multi(operations);
        if charges.is_empty() && deletes.iter().flatten().next().is_none() {
            return reply;
        }
        let is_charged: Vec<bool> =
            operations.iter().map(|operation| created_ephemeral(operation).is_some()).collect();
        Box::pin(async move {
            let result = reply.await;
            match &result {
                Ok(results) => {
                    deletes.iter().flatten().for_each(|path| nodes.deleted(path, last_create));
                    let created = results.iter().zip(is_charged).filter(|(_, is_charged)| *is_charged);
                    for ((result, _), charge) in created.zip(charges) {
                        match result {
                            WriteResult::Created(created) => charge.created(&created.path),
                            WriteResult::Done | WriteResult::Written(_) => drop(charge),
                        }
                    }
                }
                Err(MultiError::Operation { index, refusal }) => {
                    // The node of a delete was deleted before, by another client.
                    if let (Refusal::NoNode, Some(path)) = (refusal, deletes.get(*index)) {
                        path.iter().for_each(|path| nodes.deleted(path, last_create));
                    }
                    charges.into_iter().for_each(|charge| charge.refused());
                }
                Err(MultiError::Request(error)) if error.outcome() == Outcome::NotApplied => {
                    charges.into_iter().for_each(|charge| charge.refused());
                }
                Err(MultiError::Request(_)) => drop(charges),
            }
            result
        })
    }

    fn session_id(&self) -> i64 {
        self.wire.session_id()
    }

    fn session_timeout(&self) -> Duration {
        self.wire.session_timeout()
    }

    fn link(&self) -> Link {
        self.wire.link()
    }

    fn connection_id(&self) -> u64 {
        self.wire.connection_id()
    }

    fn link_changed(&self) -> BoxFuture<'static, ()> {
        self.wire.link_changed()
    }

    fn ended(&self) -> BoxFuture<'static, LossReason> {
        self.wire.ended()
    }

    fn exists(&self, path: &str) -> Reply<Option<Stat>> {
        self.wire.exists(path)
    }

    fn data(&self, path: &str) -> Reply<Data> {
        self.wire.data(path)
    }

    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)> {
        self.wire.watch_data(path)
    }

    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        self.wire.set_data(path, data, version)
    }

    fn acl(&self, path: &str) -> Reply<(Acl, i32)> {
        self.wire.acl(path)
    }

    fn set_acl(&self, path: &str, acl: &Acl, version: Option<i32>) -> Reply<i32> {
        self.wire.set_acl(path, acl, version)
    }

    fn children(&self, path: &str) -> Reply<Vec<String>> {
        self.wire.children(path)
    }

    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)> {
        self.wire.children_stat(path)
    }

    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)> {
        self.wire.watch_children(path)
    }

    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>> {
        self.wire.children_of_all(paths)
    }

    fn data_of_all(&self, paths: &[String]) -> Reply<Vec<Result<Data, Refusal>>> {
        self.wire.data_of_all(paths)
    }

    fn watch_all_changes(&self, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
        self.wire.watch_all_changes(path, depth)
    }

    fn sync(&self, path: &str) -> Reply<()> {
        self.wire.sync(path)
    }

    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>> {
        self.wire.own_ephemerals(prefix)
    }

    fn on_connected(&self) {
        self.wire.on_connected();
    }

    fn abandon(&self) {
        self.wire.abandon();
    }
}
