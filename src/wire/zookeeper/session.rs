use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use zookeeper_client as client;

use super::attached::{Attached, ClientTask, moving};
use super::convert::{
    client_acls, client_mode, link, multi_error, our_acl, our_stat, wire_error, write_results,
};
use super::link_watch::LinkWatch;
use super::route::Route;
use super::servers::Servers;
use super::session_move::SessionMove;
use crate::config::acl::Acl;
use crate::error::{LossReason, Refusal};
use crate::wire::in_flight::{RepliesInFlight, send_now};
use crate::wire::{
    ChangedPaths, CreateMode, CreateOptions, Created, Data, Link, MultiError, Reply, Stat, Watch, WatchDepth,
    Wire, WireError, WriteOp, WriteResult, nodelay,
};

/// One session of the client crate.
pub(super) struct ZooKeeperSession {
    id: client::SessionId,
    timeout: Duration,
    // A client is shared by all requests: it has some 100 bytes.
    route: Arc<Route>,
    links: Arc<LinkWatch>,
    /// Replies in flight that hold a client. A client keeps its session alive, even in a future that is not
    /// polled.
    in_flight: RepliesInFlight,
    acl: Arc<[client::Acl]>,
    has_nodelay: bool,
    /// Of the manager: whatever task moves the session.
    runtime: Handle,
}

impl ZooKeeperSession {
    /// With `has_nodelay`, connections to the servers get `TCP_NODELAY`.
    pub(super) fn new(
        attached: Attached,
        servers: Arc<Servers>,
        acl: Arc<[client::Acl]>,
        has_nodelay: bool,
    ) -> Self {
        let (id, timeout) = (attached.client.session_id(), attached.client.session_timeout());
        let links = LinkWatch::new(&attached.client);
        let route = Arc::new(Route::new(attached, servers));
        let (in_flight, runtime) = (RepliesInFlight::default(), Handle::current());
        Self { id, timeout, route, links, in_flight, acl, has_nodelay, runtime }
    }

    /// The session moves to the latest of these servers. The link is down from now on until it is there.
    pub(super) fn begin_move(&self, servers: watch::Receiver<Arc<Servers>>) {
        if self.links.state().is_terminated() {
            return;
        }
        let Some((first, _over)) = self.route.begin_move() else { return };
        let (route, links) = (Arc::clone(&self.route), Arc::clone(&self.links));
        let moving = SessionMove { route, links, first, timeout: self.timeout, servers, _over };
        self.runtime.spawn(moving.run());
    }

    /// Sends `request` with the client now. The reply outlives this borrow, and holds the client.
    fn send<T, F>(&self, request: impl FnOnce(Arc<client::Client>, Arc<ClientTask>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, client::Error>> + Send + 'static,
    {
        let attached = match self.route.attached() {
            Ok(attached) => attached,
            Err(over) => return held_back(over, Err),
        };
        let task = attached.task();
        let reply = request(Arc::clone(&attached.client), Arc::clone(&task));
        let reply = reply.map(move |reply| reply.map_err(|error| task.error(wire_error(error))));
        self.in_flight.send(caught(reply), || Err(abandoned()))
    }

    /// As [`send`](Self::send), for a reply that does not hold the client, which would keep an ended session
    /// alive.
    fn send_owned<T, F>(&self, request: impl FnOnce(&client::Client) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, client::Error>> + Send + 'static,
    {
        let attached = match self.route.attached() {
            Ok(attached) => attached,
            Err(over) => return held_back(over, Err),
        };
        let task = attached.task();
        let reply = request(&attached.client);
        let reply = reply.map(move |reply| reply.map_err(|error| task.error(wire_error(error))));
        send_now(caught(reply))
    }
}

impl Debug for ZooKeeperSession {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ZooKeeperSession").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Wire for ZooKeeperSession {
    fn session_id(&self) -> i64 {
        self.id.0
    }

    fn session_timeout(&self) -> Duration {
        self.timeout
    }

    fn link(&self) -> Link {
        self.route.while_attached(|| link(self.links.state())).unwrap_or(Link::Down)
    }

    fn connection_id(&self) -> u64 {
        self.links.changes()
    }

    fn link_changed(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.links.changed())
    }

    fn ended(&self) -> BoxFuture<'static, LossReason> {
        let links = Arc::clone(&self.links);
        Box::pin(async move {
            loop {
                // The listener is armed before the state is read, so no change is missed.
                let changed = links.changed();
                if links.state().is_terminated() {
                    break;
                }
                changed.await;
            }
            match links.state() {
                client::SessionState::Closed => LossReason::Closed,
                client::SessionState::AuthFailed => LossReason::AuthFailed,
                // The client also reports this by itself after a long silence. The session may still exist on
                // the server.
                _ => LossReason::SessionExpired,
            }
        })
    }

    fn create(&self, path: &str, data: &[u8], options: &CreateOptions) -> Reply<Created> {
        let (path, data) = (path.to_owned(), data.to_owned());
        let (mode, time_to_live) = (options.mode, options.time_to_live);
        let acl = options.acl.as_ref().map_or_else(|| Arc::clone(&self.acl), client_acls);
        self.send(move |client, _| async move {
            let created = {
                // The request has been sent, so the list is no longer needed.
                let options = client_mode(mode).with_acls(client::Acls::new(&acl));
                let options = match time_to_live {
                    Some(time) => options.with_ttl(time),
                    None => options,
                };
                client.create(&path, &data, &options)
            };
            let (stat, sequence) = created.await?;
            let stat = (!stat.is_invalid()).then(|| our_stat(&stat));
            let path = match mode {
                CreateMode::EphemeralSequential | CreateMode::PersistentSequential => {
                    format!("{path}{sequence}")
                }
                _ => path,
            };
            Ok(Created { path, stat })
        })
    }

    fn delete(&self, path: &str, version: Option<i32>) -> Reply<()> {
        self.send_owned(|client| client.delete(path, version))
    }

    fn exists(&self, path: &str) -> Reply<Option<Stat>> {
        let reply = self.send_owned(|client| client.check_stat(path));
        Box::pin(reply.map(|reply| reply.map(|stat| stat.as_ref().map(our_stat))))
    }

    fn data(&self, path: &str) -> Reply<(Vec<u8>, Stat)> {
        let reply = self.send_owned(|client| client.get_data(path));
        Box::pin(reply.map(|reply| reply.map(|(data, stat)| (data, our_stat(&stat)))))
    }

    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)> {
        let path = path.to_owned();
        self.send(move |client, task| async move {
            let (data, stat, watcher) = client.get_and_watch_data(&path).await?;
            Ok((data, our_stat(&stat), task.watch(watcher)))
        })
    }

    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        let reply = self.send_owned(|client| client.set_data(path, data, version));
        Box::pin(reply.map(|reply| reply.map(|stat| our_stat(&stat))))
    }

    fn acl(&self, path: &str) -> Reply<(Acl, i32)> {
        let path = path.to_owned();
        self.send(move |client, _| async move {
            let (acl, stat) = client.get_acl(&path).await?;
            Ok((our_acl(&acl), stat.aversion))
        })
    }

    fn set_acl(&self, path: &str, acl: &Acl, version: Option<i32>) -> Reply<i32> {
        let (path, acl) = (path.to_owned(), client_acls(acl));
        self.send(move |client, _| async move {
            let set = client.set_acl(&path, &acl, version).await?;
            Ok(set.aversion)
        })
    }

    fn children(&self, path: &str) -> Reply<Vec<String>> {
        let path = path.to_owned();
        self.send(move |client, _| async move { client.list_children(&path).await })
    }

    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)> {
        let reply = self.send_owned(|client| client.get_children(path));
        Box::pin(reply.map(|reply| reply.map(|(names, stat)| (names, our_stat(&stat)))))
    }

    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)> {
        let path = path.to_owned();
        self.send(move |client, task| async move {
            let (names, stat, watcher) = client.get_and_watch_children(&path).await?;
            Ok((names, our_stat(&stat), task.watch(watcher)))
        })
    }

    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>> {
        let paths = paths.to_owned();
        self.send(move |client, _| async move {
            let mut reader = client.new_multi_reader();
            for path in &paths {
                reader.add_get_children(path)?;
            }
            let lists = reader.commit().await?.into_iter().map(|result| match result {
                client::MultiReadResult::Children { children } => Ok(Some(children)),
                client::MultiReadResult::Error { err: client::Error::NoNode } => Ok(None),
                client::MultiReadResult::Error { err } => Err(err),
                other => Err(client::Error::UnexpectedError(format!("{other:?} instead of children"))),
            });
            lists.collect()
        })
    }

    fn data_of_all(&self, paths: &[String]) -> Reply<Vec<Result<Data, Refusal>>> {
        let paths = paths.to_owned();
        let reply = self.send(move |client, _| async move {
            let mut reader = client.new_multi_reader();
            for path in &paths {
                reader.add_get_data(path)?;
            }
            reader.commit().await
        });
        let data = |result| match result {
            client::MultiReadResult::Data { data, stat } => Ok(Ok((data, our_stat(&stat)))),
            client::MultiReadResult::Error { err } => match wire_error(err) {
                WireError::Refused(refusal) => Ok(Err(refusal)),
                error => Err(error),
            },
            other => Err(WireError::Broken(format!("{other:?} instead of data"))),
        };
        Box::pin(reply.map(move |results| results?.into_iter().map(data).collect()))
    }

    fn watch_all_changes(&self, path: &str, depth: WatchDepth) -> Reply<ChangedPaths> {
        let path = path.to_owned();
        let mode = match depth {
            WatchDepth::Node => client::AddWatchMode::Persistent,
            WatchDepth::Tree => client::AddWatchMode::PersistentRecursive,
        };
        self.send(move |client, task| async move {
            client.watch(&path, mode).await.map(|watcher| task.changed_paths(watcher))
        })
    }

    fn sync(&self, path: &str) -> Reply<()> {
        let path = path.to_owned();
        self.send(move |client, _| async move { client.sync(&path).await })
    }

    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>> {
        let attached = match self.route.attached() {
            Ok(attached) => attached,
            Err(over) => return held_back(over, |error| Err(MultiError::Request(error))),
        };
        let (client, task) = (Arc::clone(&attached.client), attached.task());
        let operations = operations.to_vec();
        let acl = Arc::clone(&self.acl);
        let commit = async move {
            let mut writer = client.new_multi_writer();
            for operation in &operations {
                match operation {
                    WriteOp::Check { path, version } => writer.add_check_version(path, version.unwrap_or(-1)),
                    WriteOp::Create { path, data, mode } => {
                        let options = client_mode(*mode).with_acls(client::Acls::new(&acl));
                        writer.add_create(path, data, &options)
                    }
                    WriteOp::SetData { path, data, version } => writer.add_set_data(path, data, *version),
                    WriteOp::Delete { path, version } => writer.add_delete(path, *version),
                }
                .map_err(|error| MultiError::Request(wire_error(error)))?;
            }
            let results = writer.commit().await.map_err(multi_error)?;
            write_results(&operations, results).map_err(MultiError::Request)
        };
        let commit = commit.map(move |result| {
            result.map_err(|error| match error {
                MultiError::Request(error) => MultiError::Request(task.error(error)),
                refused @ MultiError::Operation { .. } => refused,
            })
        });
        self.in_flight.send(commit, || Err(MultiError::Request(abandoned())))
    }

    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>> {
        let prefix = prefix.to_owned();
        self.send(move |client, _| async move { client.list_ephemerals(&prefix).await })
    }

    fn on_connected(&self) {
        if self.has_nodelay {
            nodelay::set_on_connections_to(self.route.servers().endpoints());
        }
    }

    fn abandon(&self) {
        self.in_flight.abandon();
    }
}

/// The client assumes that the data of a reply is complete, and panics in the task that awaits the reply. The
/// panic is caught here.
fn caught<T>(
    reply: impl Future<Output = Result<T, WireError>> + Send,
) -> impl Future<Output = Result<T, WireError>> + Send {
    let unreadable = |_| Err(WireError::Broken("the answer is not one to what was asked".to_owned()));
    AssertUnwindSafe(reply).catch_unwind().map(move |reply| reply.unwrap_or_else(unreadable))
}

/// The reply to a request that is made while the session moves: it is not sent, and fails once the move is
/// over.
fn held_back<T: Send + 'static>(
    over: CancellationToken,
    failed: fn(WireError) -> T,
) -> BoxFuture<'static, T> {
    Box::pin(async move {
        over.cancelled().await;
        failed(moving())
    })
}

fn abandoned() -> WireError {
    WireError::SessionEnded(LossReason::SessionExpired)
}
