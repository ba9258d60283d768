//! The requests of a session, with their times and their bytes: with the feature `metrics`.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::config::acl::Acl;
use crate::environment::Environment;
use crate::error::{LossReason, Refusal};
use crate::telemetry::metrics;
use crate::wire::{
    ChangedPaths, CreateOptions, Created, Data, Link, MultiError, Reply, Stat, Watch, WatchDepth, Wire,
    WireError, WriteOp, WriteResult,
};

/// The wire of a session, measured. The names of the requests are those of the metrics.
#[derive(Debug)]
pub(super) struct MeasuredWire {
    wire: Arc<dyn Wire>,
    environment: Arc<dyn Environment>,
}

impl MeasuredWire {
    pub(super) fn new(wire: Arc<dyn Wire>, environment: Arc<dyn Environment>) -> Self {
        Self { wire, environment }
    }

    /// Measures a reply when it arrives. Nothing is known of one that is dropped before.
    fn measured<T: Send + 'static, E: Send + 'static>(
        &self,
        request: &'static str,
        send: impl FnOnce(&dyn Wire) -> BoxFuture<'static, Result<T, E>>,
        received: fn(&T) -> usize,
        is_refusal: fn(&E) -> bool,
    ) -> BoxFuture<'static, Result<T, E>> {
        let (environment, sent) = (Arc::clone(&self.environment), self.environment.now());
        let reply = send(&*self.wire);
        Box::pin(async move {
            let result = reply.await;
            let outcome = match &result {
                Ok(_) => "done",
                Err(error) if is_refusal(error) => "refused",
                Err(_) => "unanswered",
            };
            metrics::request(request, outcome, environment.now().since(sent));
            metrics::received(request, result.as_ref().map_or(0, received));
            result
        })
    }

    fn timed<T: Send + 'static>(
        &self,
        request: &'static str,
        send: impl FnOnce(&dyn Wire) -> Reply<T>,
        received: fn(&T) -> usize,
    ) -> Reply<T> {
        self.measured(request, send, received, |error| matches!(error, WireError::Refused(_)))
    }
}

fn nothing<T>(_: &T) -> usize {
    0
}

fn names(names: &[String]) -> usize {
    names.iter().map(String::len).sum()
}

fn data(operation: &WriteOp) -> usize {
    match operation {
        WriteOp::Create { data, .. } | WriteOp::SetData { data, .. } => data.len(),
        WriteOp::Check { .. } | WriteOp::Delete { .. } => 0,
    }
}

impl Wire for MeasuredWire {
    fn create(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created> {
        metrics::sent("create", data.len());
        self.timed("create", |wire| wire.create(path, data, options), nothing)
    }

    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()> {
        self.timed("delete", |wire| wire.delete(path, version), nothing)
    }

    fn exists(&self, path: &str) -> Reply<Option<Stat>> {
        self.timed("exists", |wire| wire.exists(path), nothing)
    }

    fn data(&self, path: &str) -> Reply<Data> {
        self.timed("read", |wire| wire.data(path), |(data, _)| data.len())
    }

    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)> {
        self.timed("read", |wire| wire.watch_data(path), |(data, _, _)| data.len())
    }

    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        metrics::sent("write", data.len());
        self.timed("write", |wire| wire.set_data(path, data, version), nothing)
    }

    fn acl(&self, path: &str) -> Reply<(Acl, i32)> {
        self.timed("acl", |wire| wire.acl(path), nothing)
    }

    fn set_acl(&self, path: &str, acl: &Acl, version: Option<i32>) -> Reply<i32> {
        self.timed("acl", |wire| wire.set_acl(path, acl, version), nothing)
    }

    fn children(&self, path: &str) -> Reply<Vec<String>> {
        self.timed("children", |wire| wire.children(path), |children| names(children))
    }

    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)> {
        self.timed("children", |wire| wire.children_stat(path), |(children, _)| names(children))
    }

    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)> {
        self.timed("children", |wire| wire.watch_children(path), |(children, _, _)| names(children))
    }

    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>> {
        let received = |lists: &Vec<Option<Vec<String>>>| lists.iter().flatten().map(|of| names(of)).sum();
        self.timed("multi_read", |wire| wire.children_of_all(paths), received)
    }

    fn data_of_all(&self, paths: &[String]) -> Reply<Vec<Result<Data, Refusal>>> {
        let received =
            |all: &Vec<Result<Data, Refusal>>| all.iter().flatten().map(|(data, _)| data.len()).sum();
        self.timed("multi_read", |wire| wire.data_of_all(paths), received)
    }

    fn watch_all_changes(&self, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
        self.timed("watch", |wire| wire.watch_all_changes(path, depth), nothing)
    }

    fn sync(&self, path: &str) -> Reply<()> {
        self.timed("sync", |wire| wire.sync(path), nothing)
    }

    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>> {
        metrics::sent("multi", operations.iter().map(data).sum());
        let is_refusal = |error: &MultiError| match error {
            MultiError::Operation { .. } => true,
            MultiError::Request(error) => matches!(error, WireError::Refused(_)),
        };
        self.measured("multi", |wire| wire.multi(operations), nothing, is_refusal)
    }

    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>> {
        self.timed("ephemerals", |wire| wire.own_ephemerals(prefix), |paths| names(paths))
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

    fn on_connected(&self) {
        self.wire.on_connected();
    }

    fn abandon(&self) {
        self.wire.abandon();
    }
}
