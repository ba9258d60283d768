use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use super::state::StatePublisher;
use super::{ConnectionManager, Handle, ManagerInner, Settings, task};
use crate::config::acl::{Acl, Credentials};
use crate::config::connect_string::ConnectString;
#[cfg(feature = "tls")]
use crate::config::connect_string::Endpoint;
use crate::config::lease_renewal::LeaseRenewal;
use crate::config::limits;
use crate::config::retry::RetryPolicy;
use crate::config::tls::{Sasl, Tls};
use crate::environment::{Environment, ThisMachine};
use crate::error::{ConfigError, ConnectError};
use crate::session::SessionSettings;
use crate::session::janitor::Pending;
use crate::wire::{Backend, ZooKeeper};
use crate::znode::node_data;

/// Settings of a [`ConnectionManager`]; every one has a default.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper_core::{Acl, ConnectionManager};
///
/// let manager = ConnectionManager::builder(&servers) // zk1,zk2,zk3/shop
///     .session_timeout(Duration::from_secs(20))
///     .digest_auth("shop", "secret")
///     .acl(Acl::creator_only())
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionManagerBuilder {
    servers: String,
    session_timeout: Duration,
    connect_deadline: Duration,
    operation_timeout: Option<Duration>,
    retry: RetryPolicy,
    tick: Duration,
    lease_keep_alive: Duration,
    tcp_nodelay: bool,
    lease_renewal: LeaseRenewal,
    acl: Acl,
    credentials: Vec<Credentials>,
    node_data: Option<Vec<u8>>,
    tls: Option<Tls>,
    sasl: Option<Sasl>,
}

impl ConnectionManagerBuilder {
    pub(super) fn new(servers: &str) -> Self {
        Self {
            servers: servers.to_owned(),
            session_timeout: Duration::from_secs(15),
            connect_deadline: Duration::from_secs(15),
            operation_timeout: None,
            retry: RetryPolicy::default(),
            tick: Duration::from_secs(2),
            lease_keep_alive: Duration::from_secs(60),
            tcp_nodelay: true,
            lease_renewal: LeaseRenewal::Quorum,
            acl: Acl::open(),
            credentials: Vec::new(),
            node_data: None,
            tls: None,
            sasl: None,
        }
    }

    /// How long the server keeps a session it hears nothing from. Default 15 s.
    ///
    /// All servers must grant the same: what another server grants on a reconnect is not seen. A crashed
    /// holder's lock is free after at most this and a tick. The server keeps it within its own limits, by
    /// default 2 to 20 ticks. Take at least twice the ensemble's `syncLimit × tickTime` (20 s with the usual
    /// configuration) where a short partition of one server must not cost sessions.
    #[must_use]
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long [`connect`](Self::connect) tries before it gives up. Default 15 s.
    #[must_use]
    pub fn connect_deadline(mut self, timeout: Duration) -> Self {
        self.connect_deadline = timeout;
        self
    }

    /// How long a call that does not wait for its turn may take, its connection and its answers together:
    /// `try_acquire`, `release`, [`Znodes`](crate::Znodes), transactions and inspections. Default: the
    /// session timeout.
    ///
    /// It does not shorten the single requests of calls that wait for their turn, such as `acquire`: each of
    /// them gets at least the session timeout, so a short value here never makes a wait repeat its requests.
    #[must_use]
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = Some(timeout);
        self
    }

    /// The pauses between tries to open a new session, and between tries to clean up. Default: 50 ms doubling
    /// up to 5 s.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The ensemble's `tickTime`. Default 2 s, ZooKeeper's own default.
    ///
    /// Set it to at least what the servers have: a sign of life may wait half a tick in a follower, and the
    /// lease clock counts with that. With observers behind observer masters, set twice the tick time.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// How long after its last use the session is still kept confirmed. Default 60 s.
    ///
    /// While it is, an acquire costs one round trip. The first one after a longer pause also waits for the
    /// session to be confirmed anew: about half a tick. Confirming costs one small write every sixth of the
    /// session timeout.
    #[must_use]
    pub fn lease_keep_alive(mut self, span: Duration) -> Self {
        self.lease_keep_alive = span;
        self
    }

    /// Whether `TCP_NODELAY` is set on this manager's connection. Default: yes.
    ///
    /// Without it, two requests that are sent together may cost two round trips. The client crate does not
    /// lend its socket, so with each connection it is looked for among the descriptors of the process (on
    /// Linux; elsewhere nothing is done): some microseconds for each of them. Leave it out where there are
    /// very many, or no `/proc`.
    #[must_use]
    pub fn tcp_nodelay(mut self, is_set: bool) -> Self {
        self.tcp_nodelay = is_set;
        self
    }

    /// Which request confirms the session. Default: [`LeaseRenewal::Quorum`].
    #[must_use]
    pub fn lease_renewal(mut self, lease_renewal: LeaseRenewal) -> Self {
        self.lease_renewal = lease_renewal;
        self
    }

    /// The access list of every node that is made. Default: [`Acl::open`].
    #[must_use]
    pub fn acl(mut self, acl: Acl) -> Self {
        self.acl = acl;
        self
    }

    /// Authenticates as `user` with ZooKeeper's digest scheme. Default: no authentication. May be called more
    /// than once.
    #[must_use]
    pub fn digest_auth(self, user: &str, password: &str) -> Self {
        self.auth("digest", format!("{user}:{password}").into_bytes())
    }

    /// Authenticates with any scheme the server has. Default: no authentication.
    #[must_use]
    pub fn auth(mut self, scheme: &str, secret: Vec<u8>) -> Self {
        self.credentials.push(Credentials { scheme: scheme.to_owned(), secret });
        self
    }

    /// What is written into contenders' nodes: who holds or waits, for people who look. Default: host and
    /// process id. No one parses it.
    #[must_use]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.node_data = Some(data.into());
        self
    }

    /// How `tcp+tls://` endpoints are secured. Default: no certificate is trusted, so that none can be
    /// reached.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Authenticates through SASL DIGEST-MD5. Default: none.
    #[cfg(feature = "sasl-digest-md5")]
    #[must_use]
    pub fn sasl_digest_md5(mut self, user: &str, password: &str) -> Self {
        self.sasl = Some(Sasl::DigestMd5 { user: user.to_owned(), password: password.to_owned() });
        self
    }

    /// Authenticates through SASL GSSAPI (Kerberos), as the environment sets it up. Default: none.
    #[cfg(feature = "sasl-gssapi")]
    #[must_use]
    pub fn sasl_gssapi(mut self) -> Self {
        self.sasl = Some(Sasl::Gssapi);
        self
    }

    /// Opens the first session.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] for settings that cannot be right, before anything is sent;
    /// [`ConnectError::Timeout`] when no server gave a session within the connect deadline;
    /// [`ConnectError::AuthFailed`] when the servers refuse the credentials.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. A session that the server was just opening for a dropped attempt expires by itself.
    pub async fn connect(self) -> Result<ConnectionManager, ConnectError> {
        let servers = self.check()?;
        let backend = self.backend(&servers)?;
        let settings = self.settings(&servers, Arc::new(ThisMachine));
        ensure_runtime()?;
        Self::start(settings, backend, self.connect_deadline).await
    }

    /// As [`connect`](Self::connect), over a simulated ensemble and machine.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    #[cfg(feature = "__simulation")]
    #[doc(hidden)]
    pub async fn connect_over(
        self,
        backend: Arc<dyn Backend>,
        environment: Arc<dyn Environment>,
    ) -> Result<ConnectionManager, ConnectError> {
        let builder = Self { retry: self.retry.in_step(), ..self };
        let settings = builder.settings(&builder.check()?, environment);
        Self::start(settings, backend, builder.connect_deadline).await
    }

    async fn start(
        settings: Settings,
        backend: Arc<dyn Backend>,
        connect_deadline: Duration,
    ) -> Result<ConnectionManager, ConnectError> {
        let closing = CancellationToken::new();
        let shared = Arc::new(ManagerInner {
            publisher: StatePublisher::new(Arc::clone(&settings.session.environment)),
            settings,
            draining: CancellationToken::new(),
            closing: closing.clone(),
            closed: CancellationToken::new(),
            close_confirmed: AtomicBool::new(false),
            shared_tables: DashMap::new(),
            holds: Arc::default(),
            pending_jobs: Pending::default(),
        });
        // From here on, dropping this future ends the task.
        let manager = ConnectionManager(Arc::new(Handle {
            shared: Arc::clone(&shared),
            _last_clone: closing.drop_guard(),
        }));
        task::start(shared, backend, connect_deadline).await?;
        Ok(manager)
    }

    fn check(&self) -> Result<ConnectString, ConfigError> {
        let servers: ConnectString = self.servers.parse()?;
        within(
            "session_timeout",
            self.session_timeout,
            Duration::from_millis(100),
            Duration::from_secs(86_400),
        )?;
        within("tick_time", self.tick, Duration::from_millis(1), Duration::from_secs(3_600))?;
        within("connect_deadline", self.connect_deadline, Duration::from_millis(1), Duration::MAX)?;
        within(
            "operation_timeout",
            self.chosen_operation_timeout(),
            Duration::from_millis(1),
            Duration::MAX,
        )?;
        if self.session_timeout < self.tick * 2 {
            return Err(ConfigError::Setting {
                name: "session_timeout",
                value: format!("{:?} with a tick_time of {:?}", self.session_timeout, self.tick),
                advice: "servers grant at least two ticks; raise it, or set tick_time to what the servers have",
            });
        }
        limits::check(self.node_data.as_ref().map_or(0, Vec::len))?;
        if self.acl.entries.is_empty()
            || (self.acl == Acl::creator_only() && self.credentials.is_empty() && self.sasl.is_none())
        {
            return Err(ConfigError::Setting {
                name: "acl",
                value: format!("{:?} without an authentication", self.acl),
                advice: "add digest_auth(), or use Acl::open()",
            });
        }
        #[cfg(feature = "tls")]
        if servers.endpoints().iter().any(Endpoint::is_secure)
            && self.tls.as_ref().is_none_or(|tls| tls.authorities().is_empty())
        {
            return Err(ConfigError::Setting {
                name: "tls",
                value: "without an authority, though a server is to be reached over TLS".to_owned(),
                advice: "give the certificates to be trusted by Tls::authority()",
            });
        }
        Ok(servers)
    }

    fn backend(&self, servers: &ConnectString) -> Result<Arc<dyn Backend>, ConfigError> {
        let backend = ZooKeeper::new(
            servers,
            self.session_timeout,
            &self.credentials,
            &self.acl,
            self.tls.as_ref(),
            self.sasl.as_ref(),
        )?;
        Ok(Arc::new(backend.with_nodelay(self.tcp_nodelay)))
    }

    fn settings(&self, servers: &ConnectString, environment: Arc<dyn Environment>) -> Settings {
        let session = SessionSettings {
            operation_timeout: self.chosen_operation_timeout(),
            retry: self.retry,
            tick: self.tick,
            lease_keep_alive: self.lease_keep_alive,
            lease_renewal: self.lease_renewal,
            environment,
        };
        Settings {
            chroot: servers.chroot().clone(),
            servers: self.servers.clone(),
            session_timeout: self.session_timeout,
            node_data: self.node_data.clone().unwrap_or_else(node_data::of_this_process).into(),
            session: Arc::new(session),
        }
    }

    fn chosen_operation_timeout(&self) -> Duration {
        self.operation_timeout.unwrap_or(self.session_timeout)
    }
}

fn within(name: &'static str, value: Duration, min: Duration, max: Duration) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let advice = if value < min { "give a longer time" } else { "give a shorter time" };
    Err(ConfigError::Setting { name, value: format!("{value:?}"), advice })
}

/// Tasks and timers of tokio panic where there are none; better an error here.
fn ensure_runtime() -> Result<(), ConfigError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(ConfigError::NoRuntime);
    }
    std::panic::catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| ConfigError::NoRuntime)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn refusal(builder: ConnectionManagerBuilder) -> String {
        builder.check().unwrap_err().to_string()
    }

    #[test]
    fn settings_that_cannot_be_right_are_refused_before_anything_is_sent() {
        let builder = || ConnectionManagerBuilder::new("localhost:1");
        assert!(refusal(ConnectionManagerBuilder::new("")).contains("names no server"));
        assert!(refusal(builder().session_timeout(Duration::ZERO)).contains("session_timeout"));
        assert!(refusal(builder().session_timeout(Duration::MAX)).contains("session_timeout"));
        assert!(refusal(builder().session_timeout(Duration::from_secs(3))).contains("two ticks"));
        assert!(refusal(builder().tick_time(Duration::ZERO)).contains("tick_time"));
        assert!(refusal(builder().operation_timeout(Duration::ZERO)).contains("operation_timeout"));
        assert!(refusal(builder().connect_deadline(Duration::ZERO)).contains("connect_deadline"));
        assert!(refusal(builder().node_data(vec![0; 2_000_000])).contains("2000000 bytes"));
        assert!(refusal(builder().acl(Acl::creator_only())).contains("digest_auth"));
        assert!(builder().acl(Acl::creator_only()).digest_auth("a", "b").check().is_ok());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_that_are_none_are_refused_before_anything_is_sent() {
        let builder = || ConnectionManagerBuilder::new("tcp+tls://localhost:1");
        let connect = builder().tls(Tls::new().authority("not a certificate")).connect();
        assert!(connect.now_or_never().unwrap().unwrap_err().to_string().contains("PEM"));
        assert!(refusal(builder()).contains("Tls::authority()"));
        assert!(refusal(builder().tls(Tls::new())).contains("Tls::authority()"));
    }

    #[test]
    fn without_a_runtime_there_is_an_error_and_no_panic() {
        let connect = ConnectionManagerBuilder::new("localhost:1").connect();
        let error = connect.now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Config(ConfigError::NoRuntime)));
    }
}
