//! Checks the settings, and starts a manager with them.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use super::options::ConnectionManagerBuilder;
use crate::config::connect_string::ConnectString;
use crate::config::limits;
use crate::config::tls::check_tls;
use crate::environment::{Environment, ThisMachine};
use crate::error::{ConfigError, ConnectError};
use crate::manager::connection_manager::ConnectionManager;
use crate::manager::shared::{Handle, ManagerInner, Settings};
use crate::manager::state::StatePublisher;
use crate::manager::task;
use crate::manager::time_limits::{check_operation_timeout, within};
use crate::session::{PendingJobs, SessionPurpose, SessionSettings};
use crate::wire::{Backend, ZooKeeper};
use crate::znode::node_data;

/// What a budget of node bytes may be.
const NODE_BYTES: RangeInclusive<usize> = 1_024..=64 * 1_024 * 1_024;

impl ConnectionManager {
    /// Connects to `servers` with the default settings.
    ///
    /// # Errors
    ///
    /// As [`ConnectionManagerBuilder::connect`].
    pub async fn connect(servers: &str) -> Result<Self, ConnectError> {
        Self::builder(servers).connect().await
    }

    /// Settings for a connection to `servers`: `host:port,host:port,…/chroot`, see
    /// [`ConnectString`](crate::ConnectString).
    pub fn builder(servers: &str) -> ConnectionManagerBuilder {
        ConnectionManagerBuilder::new(servers)
    }
}

impl From<&str> for ConnectionManagerBuilder {
    /// The default settings: see [`ConnectionManager::builder`].
    fn from(servers: &str) -> Self {
        Self::new(servers)
    }
}

impl From<&String> for ConnectionManagerBuilder {
    /// The default settings: see [`ConnectionManager::builder`].
    fn from(servers: &String) -> Self {
        Self::new(servers)
    }
}

impl ConnectionManagerBuilder {
    /// Opens the first session.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Config`] for invalid settings, before anything is sent; [`ConnectError::Timeout`] when
    /// no server granted a session within the connect deadline, with the fault of each server;
    /// [`ConnectError::AuthFailed`] when the servers refuse the credentials; [`ConnectError::NoChroot`] when
    /// the chroot does not exist and [should](Self::existing_chroot).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe. A session that the server is opening for a dropped call expires by itself.
    pub async fn connect(self) -> Result<ConnectionManager, ConnectError> {
        let servers = self.check()?;
        let backend = self.backend(&servers)?;
        let settings = self.settings(&servers, Arc::new(ThisMachine::here()?));
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
        let operation_timeout = settings.session.operation_timeout;
        let closing = CancellationToken::new();
        let holds = Arc::default();
        let shared = Arc::new(ManagerInner {
            publisher: StatePublisher::new(&settings.session, Arc::clone(&holds)),
            settings,
            draining: CancellationToken::new(),
            closing: closing.clone(),
            closed: CancellationToken::new(),
            close_confirmed: AtomicBool::new(false),
            shared_tables: DashMap::new(),
            holds,
            pending_jobs: PendingJobs::default(),
            backend,
            views: parking_lot::Mutex::default(),
        });
        // From here on, dropping this future ends the task.
        let last_clone = Arc::new(closing.drop_guard());
        let handle = Handle { shared: Arc::clone(&shared), operation_timeout, last_clone };
        let manager = ConnectionManager(Arc::new(handle));
        task::start(shared, connect_deadline).await?;
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
        check_operation_timeout(self.chosen_operation_timeout())?;
        if self.session_timeout < self.tick * 2 {
            return Err(ConfigError::Setting {
                name: "session_timeout",
                value: format!("{:?} with a tick_time of {:?}", self.session_timeout, self.tick),
                advice: "servers grant at least two ticks; raise it, or set tick_time to what the servers \
                         have",
            });
        }
        check_tls(&servers, self.tls.as_ref())?;
        if !NODE_BYTES.contains(&self.node_bytes_max) {
            return Err(ConfigError::Setting {
                name: "node_bytes_max",
                value: self.node_bytes_max.to_string(),
                advice: "take 1,024 to 67,108,864 bytes, and less than half of the servers' jute.maxbuffer",
            });
        }
        limits::check(self.node_data.as_ref().map_or(0, Vec::len))?;
        if self.acl.entries.is_empty() {
            return Err(ConfigError::Setting {
                name: "acl",
                value: "without an entry".to_owned(),
                advice: "add one, or use Acl::open()",
            });
        }
        if self.acl.names_the_creator() && !self.authenticates() {
            return Err(ConfigError::Setting {
                name: "acl",
                value: format!("{:?} without an authentication", self.acl),
                advice: "add digest_auth(), sasl() or a client certificate, or use Acl::open()",
            });
        }
        Ok(servers)
    }

    /// Whether the servers know an identity of the session.
    fn authenticates(&self) -> bool {
        #[cfg(feature = "tls")]
        let has_certificate = self.tls.as_ref().is_some_and(|tls| tls.identity().is_some());
        #[cfg(not(feature = "tls"))]
        let has_certificate = false;
        has_certificate || !self.credentials.is_empty() || self.sasl.is_some()
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
            token_generation: self.token_generation,
            lease_keep_alive: self.lease_keep_alive,
            lease_renewal: self.lease_renewal,
            node_bytes_max: self.node_bytes_max,
            environment,
            purpose: SessionPurpose::Locks,
            lacks_containers: AtomicBool::new(false),
            lacks_multi_read: AtomicBool::new(false),
            hang_ups: Arc::default(),
            zxids: Arc::default(),
        };
        Settings {
            chroot: servers.chroot().clone(),
            needs_chroot: self.needs_chroot,
            servers: Arc::new(ArcSwap::from_pointee(self.servers.clone())),
            session_timeout: self.session_timeout,
            node_data: self.node_data.clone().unwrap_or_else(node_data::of_this_process).into(),
            session: Arc::new(session),
        }
    }

    fn chosen_operation_timeout(&self) -> Duration {
        self.operation_timeout.unwrap_or(self.session_timeout)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::config::acl::{Acl, Permissions};
    #[cfg(feature = "tls")]
    use crate::config::tls::Tls;

    fn refusal(builder: ConnectionManagerBuilder) -> String {
        builder.check().unwrap_err().to_string()
    }

    /// `ZooKeeperServer.DEFAULT_TICK_TIME`; the sample configuration has 2 s.
    #[test]
    fn the_default_tick_is_that_of_servers_without_a_setting() {
        assert_eq!(ConnectionManagerBuilder::new("localhost:1").tick, Duration::from_secs(3));
    }

    #[test]
    fn invalid_settings_are_refused_before_anything_is_sent() {
        let builder = || ConnectionManagerBuilder::new("localhost:1");
        assert!(refusal(ConnectionManagerBuilder::new("")).contains("names no server"));
        let too_short = refusal(builder().session_timeout(Duration::ZERO));
        assert!(too_short.contains("session_timeout is 0ns, below 100ms"), "{too_short}");
        let too_long = refusal(builder().session_timeout(Duration::from_secs(100_000)));
        assert!(too_long.contains("session_timeout is 100000s, above 86400s"), "{too_long}");
        assert!(refusal(builder().session_timeout(Duration::from_secs(3))).contains("two ticks"));
        assert!(refusal(builder().tick_time(Duration::ZERO)).contains("tick_time"));
        assert!(refusal(builder().operation_timeout(Duration::ZERO)).contains("operation_timeout"));
        assert!(refusal(builder().connect_deadline(Duration::ZERO)).contains("connect_deadline"));
        assert!(refusal(builder().node_bytes_max(1_023)).contains("node_bytes_max is 1023"));
        assert!(refusal(builder().node_data(vec![0; 2_000_000])).contains("2000000 bytes"));
        assert!(refusal(builder().acl(Acl::creator_only())).contains("digest_auth"));
        assert!(builder().acl(Acl::creator_only()).digest_auth("a", "b").check().is_ok());
        // The servers refuse the whole list.
        let with_readers = Acl::creator_only().and(Permissions::READ, "world", "anyone");
        assert!(refusal(builder().acl(with_readers.clone())).contains("digest_auth"));
        assert!(builder().acl(with_readers).digest_auth("a", "b").check().is_ok());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn a_client_certificate_is_an_authentication() {
        let builder = || ConnectionManagerBuilder::new("tcp+tls://localhost:1").acl(Acl::creator_only());
        assert!(refusal(builder().tls(Tls::new())).contains("client certificate"));
        assert!(builder().tls(Tls::new().client_identity("certificate", "key")).check().is_ok());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn invalid_certificates_are_refused_before_anything_is_sent() {
        let builder = || ConnectionManagerBuilder::new("tcp+tls://localhost:1");
        let connect = builder().tls(Tls::new().authority("not a certificate")).connect();
        assert!(connect.now_or_never().unwrap().unwrap_err().to_string().contains("PEM"));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_settings_beside_a_server_without_tls_are_refused_before_anything_is_sent() {
        let refusal = |servers| {
            let connect = ConnectionManagerBuilder::new(servers).tls(Tls::new()).connect();
            connect.now_or_never().unwrap().unwrap_err()
        };
        // One server without TLS would have the locks in plain.
        for servers in ["localhost:1", "tcp://localhost:1", "tcp+tls://a,localhost:1"] {
            let ConnectError::Config(error) = refusal(servers) else { panic!("{servers}") };
            assert!(matches!(&error, ConfigError::Setting { name: "tls", .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("tcp://localhost:1 is") && text.contains("tcp+tls://"), "{text}");
        }
        assert!(ConnectionManagerBuilder::new("tcp+tls://a,tcp+tls://b").tls(Tls::new()).check().is_ok());
    }

    #[test]
    fn without_a_runtime_there_is_an_error_and_no_panic() {
        let connect = ConnectionManagerBuilder::new("localhost:1").connect();
        let error = connect.now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, ConnectError::Config(ConfigError::NoRuntime)));
    }
}
