//! The `zookeeper-client` crate behind the seam: the only file that names it.
//!
//! Its known wounds are dressed here. Requests are sent when a method is called, while some of its futures borrow
//! the client: those are boxed with a clone and polled once at once. A link that breaks mostly yields an opaque
//! error, so only definite answers of the server are told apart. A single endpoint is listed several times, since
//! the pauses between whole rounds of the list grow without a limit.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use zookeeper_client as client;

use super::in_flight::{InFlight, send_now};
use super::{
    Backend, CreateMode, Created, Link, MultiError, Reply, Stat, Watch, WatchEvent, Wire, WireError, WriteOp,
    WriteResult, nodelay,
};
use crate::config::acl::{Acl, Credentials};
use crate::config::connect_string::{ConnectString, Endpoint};
use crate::config::tls::{Sasl, Tls};
use crate::error::{ConfigError, LossReason, Refusal};
use crate::time::fractions;

/// What is needed to open sessions.
pub(crate) struct ZooKeeper {
    connector: client::Connector,
    servers: String,
    endpoints: Arc<[Endpoint]>,
    acl: Arc<[client::Acl]>,
    has_nodelay: bool,
}

impl ZooKeeper {
    pub(crate) fn new(
        servers: &ConnectString,
        session_timeout: Duration,
        credentials: &[Credentials],
        acl: &Acl,
        tls: Option<&Tls>,
        sasl: Option<&Sasl>,
    ) -> Result<Self, ConfigError> {
        let hang = fractions::connect_attempt(session_timeout);
        let connector =
            client::Client::connector().with_session_timeout(session_timeout).with_connection_timeout(hang);
        let connector = credentials.iter().fold(connector, |connector, credentials| {
            connector.with_auth(&credentials.scheme, &credentials.secret)
        });
        let connector = with_tls(connector, tls)?;
        let connector = with_sasl(connector, sasl)?;
        let acl = acl
            .entries
            .iter()
            .map(|(permissions, scheme, id)| client_acl(*permissions, scheme, id))
            .collect();
        Ok(Self {
            connector,
            servers: repeated(servers.endpoints()),
            endpoints: servers.endpoints().into(),
            acl,
            has_nodelay: true,
        })
    }

    pub(crate) fn with_nodelay(self, has_nodelay: bool) -> Self {
        Self { has_nodelay, ..self }
    }
}

impl Debug for ZooKeeper {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ZooKeeper").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Backend for ZooKeeper {
    fn open(&self) -> Reply<Arc<dyn Wire>> {
        let connector = self.connector.clone();
        let servers = self.servers.clone();
        let (endpoints, acl) = (Arc::clone(&self.endpoints), Arc::clone(&self.acl));
        let has_nodelay = self.has_nodelay;
        Box::pin(async move {
            let client = connector.connect(&servers).await.map_err(|error| match error {
                client::Error::AuthFailed => WireError::AuthFailed,
                // Whatever the matter is, the client does not say more.
                client::Error::Timeout => WireError::Timeout,
                other => WireError::Broken(other.to_string()),
            })?;
            let client = Arc::new(client);
            let connection_id = Mutex::new((client.state_watcher(), 0));
            let in_flight = InFlight::default();
            let wire: Arc<dyn Wire> =
                Arc::new(ZooKeeperSession { client, connection_id, in_flight, endpoints, acl, has_nodelay });
            Ok(wire)
        })
    }

    fn no_answer_hint(&self) -> &'static str {
        if self.endpoints.iter().any(Endpoint::is_secure) {
            "no answer over TLS; is ZooKeeper running there, with TLS, do the authorities given vouch for the \
             certificate it shows and for this name, and does it ask for a certificate of ours?"
        } else {
            "no answer; is ZooKeeper running there?"
        }
    }
}

/// One session of the client crate.
struct ZooKeeperSession {
    // Shared with each request: a client is some 100 bytes large.
    client: Arc<client::Client>,
    /// A watcher of the link, and how many changes it has seen.
    connection_id: Mutex<(client::StateWatcher, u64)>,
    /// Replies that hold a client: it keeps the session alive, also in a future that nobody polls.
    in_flight: InFlight,
    endpoints: Arc<[Endpoint]>,
    acl: Arc<[client::Acl]>,
    has_nodelay: bool,
}

impl ZooKeeperSession {
    /// Sends what `request` asks of the client now; the reply outlives this borrow.
    fn send<T, F>(&self, request: impl FnOnce(Arc<client::Client>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, client::Error>> + Send + 'static,
    {
        let reply = request(Arc::clone(&self.client)).map(|reply| reply.map_err(wire_error));
        self.in_flight.send(caught(reply), || Err(abandoned()))
    }
}

impl Debug for ZooKeeperSession {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ZooKeeperSession")
            .field("id", &self.client.session_id())
            .finish_non_exhaustive()
    }
}

impl Wire for ZooKeeperSession {
    fn session_id(&self) -> i64 {
        self.client.session_id().0
    }

    fn session_timeout(&self) -> Duration {
        self.client.session_timeout()
    }

    fn link(&self) -> Link {
        link(self.client.state())
    }

    fn connection_id(&self) -> u64 {
        // The client publishes a change of state before it hands out any reply that came after it, and a change
        // is never overwritten without being seen as one: so asking here, at a reply, misses none.
        let mut guard = self.connection_id.lock();
        let (watcher, seen) = &mut *guard;
        while watcher.changed().now_or_never().is_some() {
            *seen += 1;
        }
        *seen
    }

    fn link_changed(&self) -> BoxFuture<'static, ()> {
        let mut watcher = self.client.state_watcher();
        Box::pin(async move {
            watcher.changed().await;
        })
    }

    fn ended(&self) -> BoxFuture<'static, LossReason> {
        let mut watcher = self.client.state_watcher();
        Box::pin(async move {
            while !watcher.peek_state().is_terminated() && !watcher.changed().await.is_terminated() {}
            match watcher.peek_state() {
                client::SessionState::Closed => LossReason::Closed,
                client::SessionState::AuthFailed => LossReason::AuthFailed,
                // Also said by the client itself, after a long silence: the server may have the session still.
                _ => LossReason::SessionExpired,
            }
        })
    }

    fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Reply<Created> {
        let (path, data) = (path.to_owned(), data.to_owned());
        let acl = Arc::clone(&self.acl);
        self.send(move |client| async move {
            let created = {
                // What is sent already need not be kept.
                let options = client_mode(mode).with_acls(client::Acls::new(&acl));
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
        // This future borrows nothing, so it holds no client that would keep an ended session open.
        send_now(self.client.delete(path, version).map(|reply| reply.map_err(wire_error)))
    }

    fn exists(&self, path: &str) -> Reply<Option<Stat>> {
        let reply = self.client.check_stat(path);
        send_now(reply.map(|reply| reply.map(|stat| stat.as_ref().map(our_stat)).map_err(wire_error)))
    }

    fn data(&self, path: &str) -> Reply<(Vec<u8>, Stat)> {
        let reply = self.client.get_data(path);
        let reply = reply.map(|reply| reply.map(|(data, stat)| (data, our_stat(&stat))).map_err(wire_error));
        send_now(caught(reply))
    }

    fn watch_data(&self, path: &str) -> Reply<(Vec<u8>, Stat, Watch)> {
        let path = path.to_owned();
        self.send(move |client| async move {
            let (data, stat, watcher) = client.get_and_watch_data(&path).await?;
            Ok((data, our_stat(&stat), our_watch(watcher)))
        })
    }

    fn set_data(&self, path: &str, data: &[u8], version: Option<i32>) -> Reply<Stat> {
        let reply = self.client.set_data(path, data, version);
        send_now(reply.map(|reply| reply.map(|stat| our_stat(&stat)).map_err(wire_error)))
    }

    fn children(&self, path: &str) -> Reply<Vec<String>> {
        let path = path.to_owned();
        self.send(move |client| async move { client.list_children(&path).await })
    }

    fn children_stat(&self, path: &str) -> Reply<(Vec<String>, Stat)> {
        let reply = self.client.get_children(path);
        send_now(reply.map(|reply| reply.map(|(names, stat)| (names, our_stat(&stat))).map_err(wire_error)))
    }

    fn watch_children(&self, path: &str) -> Reply<(Vec<String>, Stat, Watch)> {
        let path = path.to_owned();
        self.send(move |client| async move {
            let (names, stat, watcher) = client.get_and_watch_children(&path).await?;
            Ok((names, our_stat(&stat), our_watch(watcher)))
        })
    }

    fn children_of_all(&self, paths: &[String]) -> Reply<Vec<Option<Vec<String>>>> {
        let paths = paths.to_owned();
        self.send(move |client| async move {
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

    fn sync(&self, path: &str) -> Reply<()> {
        let path = path.to_owned();
        self.send(move |client| async move { client.sync(&path).await })
    }

    fn multi(&self, operations: &[WriteOp]) -> BoxFuture<'static, Result<Vec<WriteResult>, MultiError>> {
        let client = Arc::clone(&self.client);
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
            Ok(results.into_iter().map(write_result).collect())
        };
        self.in_flight.send(commit, || Err(MultiError::Request(abandoned())))
    }

    fn own_ephemerals(&self, prefix: &str) -> Reply<Vec<String>> {
        let prefix = prefix.to_owned();
        self.send(move |client| async move { client.list_ephemerals(&prefix).await })
    }

    fn on_connected(&self) {
        if self.has_nodelay {
            nodelay::set_on_connections_to(&self.endpoints);
        }
    }

    fn abandon(&self) {
        self.in_flight.abandon();
    }
}

/// The client takes it for granted that data is as long as it must be, and panics in whoever reads it: here.
fn caught<T>(
    reply: impl Future<Output = Result<T, WireError>> + Send,
) -> impl Future<Output = Result<T, WireError>> + Send {
    let unreadable = |_| Err(WireError::Broken("the answer is not one to what was asked".to_owned()));
    AssertUnwindSafe(reply).catch_unwind().map(move |reply| reply.unwrap_or_else(unreadable))
}

fn abandoned() -> WireError {
    WireError::SessionEnded(LossReason::SessionExpired)
}

/// The endpoints for the client, the fewer the more often each.
///
/// It tries the whole list at once, then pauses longer and longer between rounds: one server listed once and back
/// after seven seconds is next tried after thirteen, when a session of ten is gone.
fn repeated(endpoints: &[Endpoint]) -> String {
    let times = match endpoints.len() {
        0 | 1 => 16,
        2 => 4,
        3..=5 => 2,
        _ => 1,
    };
    let list: Vec<String> = endpoints.iter().map(ToString::to_string).collect();
    vec![list.join(","); times].join(",")
}

fn client_mode(mode: CreateMode) -> client::CreateMode {
    match mode {
        CreateMode::Persistent => client::CreateMode::Persistent,
        CreateMode::PersistentSequential => client::CreateMode::PersistentSequential,
        CreateMode::Ephemeral => client::CreateMode::Ephemeral,
        CreateMode::EphemeralSequential => client::CreateMode::EphemeralSequential,
        CreateMode::Container => client::CreateMode::Container,
    }
}

fn client_acl(permissions: crate::config::acl::Permissions, scheme: &str, id: &str) -> client::Acl {
    use crate::config::acl::Permissions;
    let all = [
        (Permissions::READ, client::Permission::READ),
        (Permissions::WRITE, client::Permission::WRITE),
        (Permissions::CREATE, client::Permission::CREATE),
        (Permissions::DELETE, client::Permission::DELETE),
        (Permissions::ADMIN, client::Permission::ADMIN),
    ];
    let permission = all
        .into_iter()
        .filter(|(ours, _)| permissions.0 & ours.0 != 0)
        .fold(client::Permission::NONE, |sum, (_, theirs)| sum | theirs);
    client::Acl::new(permission, client::AuthId::new(scheme, id))
}

fn our_stat(stat: &client::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        child_version: stat.cversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        children: stat.num_children,
    }
}

fn link(state: client::SessionState) -> Link {
    match state {
        client::SessionState::SyncConnected => Link::Up,
        // Read-only sessions are never asked for; one would not let us write.
        client::SessionState::Disconnected | client::SessionState::ConnectedReadOnly => Link::Down,
        client::SessionState::AuthFailed => Link::Ended(LossReason::AuthFailed),
        client::SessionState::Expired | client::SessionState::Closed => {
            Link::Ended(LossReason::SessionExpired)
        }
    }
}

fn our_watch(watcher: client::OneshotWatcher) -> Watch {
    // A runtime that is shut down takes the client's task away, and its watcher panics then.
    let changed = AssertUnwindSafe(watcher.changed()).catch_unwind();
    Box::pin(changed.map(|event| event.map_or(WatchEvent::SessionEnded, watch_event)))
}

fn watch_event(event: client::WatchedEvent) -> WatchEvent {
    match event.event_type {
        client::EventType::NodeDeleted => WatchEvent::Deleted,
        client::EventType::Session => WatchEvent::SessionEnded,
        _ => WatchEvent::Changed,
    }
}

fn write_result(result: client::MultiWriteResult) -> WriteResult {
    match result {
        client::MultiWriteResult::Create { path, stat } => {
            // Before 3.8.2 the server sends no stat here, and what it sends instead may read as any (ZOOKEEPER-4026).
            let stat = (!stat.is_invalid() && stat.czxid > 0).then(|| our_stat(&stat));
            WriteResult::Created(Created { path, stat })
        }
        client::MultiWriteResult::SetData { stat } => WriteResult::Written(our_stat(&stat)),
        _ => WriteResult::Done,
    }
}

fn multi_error(error: client::MultiWriteError) -> MultiError {
    match error {
        client::MultiWriteError::RequestFailed { source } => MultiError::Request(wire_error(source)),
        client::MultiWriteError::OperationFailed { index, source } => match wire_error(source) {
            // Said by the server we talk to, not by the quorum, and about the request rather than the operation.
            refused @ WireError::Refused(Refusal::SessionMoved | Refusal::Throttled | Refusal::ReadOnly) => {
                MultiError::Request(refused)
            }
            WireError::Refused(refusal) => MultiError::Operation { index, refusal },
            other => MultiError::Request(other),
        },
    }
}

/// An allow-list: what is not a definite answer of the server leaves the outcome open.
fn wire_error(error: client::Error) -> WireError {
    use client::Error;
    let refusal = match error {
        Error::NoNode => Refusal::NoNode,
        Error::NodeExists => Refusal::NodeExists,
        Error::BadVersion => Refusal::BadVersion,
        Error::NoAuth => Refusal::NoAuth,
        Error::InvalidAcl => Refusal::InvalidAcl,
        Error::NotEmpty => Refusal::NotEmpty,
        Error::NoChildrenForEphemerals => Refusal::EphemeralParent,
        Error::QuotaExceeded => Refusal::QuotaExceeded,
        Error::Throttled => Refusal::Throttled,
        Error::NotReadOnly => Refusal::ReadOnly,
        Error::Unimplemented => Refusal::Unimplemented,
        Error::SessionMoved => Refusal::SessionMoved,
        Error::MarshallingError | Error::BadArguments(_) => Refusal::BadRequest,
        Error::SessionExpired => return WireError::SessionEnded(LossReason::SessionExpired),
        Error::AuthFailed => return WireError::SessionEnded(LossReason::AuthFailed),
        Error::ClientClosed => return WireError::SessionEnded(LossReason::SessionExpired),
        // So the client reports that its own task is gone: nothing will ever answer on this session.
        Error::UnexpectedError(text) if text.starts_with("BUG") || text.starts_with("expect error state") => {
            return WireError::SessionEnded(LossReason::SessionExpired);
        }
        other => return WireError::Broken(other.to_string()),
    };
    WireError::Refused(refusal)
}

#[cfg(feature = "tls")]
fn with_tls(connector: client::Connector, tls: Option<&Tls>) -> Result<client::Connector, ConfigError> {
    let Some(tls) = tls else {
        return Ok(connector);
    };
    let refused = |error: client::Error| ConfigError::Setting {
        name: "tls",
        value: error.to_string(),
        advice: "give certificates and keys in PEM form",
    };
    let mut options = client::TlsOptions::new();
    // The client takes one text; PEM texts are put together by writing one after the other.
    if !tls.authorities().is_empty() {
        options = options.with_pem_ca(&tls.authorities().join("\n")).map_err(refused)?;
    }
    if let Some((certificate, key)) = tls.identity() {
        options = options.with_pem_identity(certificate, key).map_err(refused)?;
    }
    Ok(connector.with_tls(options))
}

#[cfg(not(feature = "tls"))]
fn with_tls(connector: client::Connector, _: Option<&Tls>) -> Result<client::Connector, ConfigError> {
    Ok(connector)
}

#[cfg(any(feature = "sasl-digest-md5", feature = "sasl-gssapi"))]
fn with_sasl(connector: client::Connector, sasl: Option<&Sasl>) -> Result<client::Connector, ConfigError> {
    Ok(match sasl {
        None => connector,
        #[cfg(feature = "sasl-digest-md5")]
        Some(Sasl::DigestMd5 { user, password }) => {
            connector.with_sasl(client::SaslOptions::digest_md5(user.clone(), password.clone()))
        }
        #[cfg(feature = "sasl-gssapi")]
        Some(Sasl::Gssapi) => connector.with_sasl(client::SaslOptions::gssapi()),
    })
}

#[cfg(not(any(feature = "sasl-digest-md5", feature = "sasl-gssapi")))]
fn with_sasl(connector: client::Connector, _: Option<&Sasl>) -> Result<client::Connector, ConfigError> {
    Ok(connector)
}
