use std::time::Duration;

use crate::config::acl::{Acl, Credentials};
use crate::config::lease_renewal::LeaseRenewal;
use crate::config::limits::NODE_BYTES_MAX;
use crate::config::retry::RetryPolicy;
use crate::config::tls::{Sasl, Tls};

/// Settings of a [`ConnectionManager`](crate::ConnectionManager). Every setting has a default.
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
    pub(super) servers: String,
    pub(super) session_timeout: Duration,
    pub(super) connect_deadline: Duration,
    pub(super) needs_chroot: bool,
    pub(super) operation_timeout: Option<Duration>,
    pub(super) retry: RetryPolicy,
    pub(super) tick: Duration,
    pub(super) token_generation: u32,
    pub(super) lease_keep_alive: Duration,
    pub(super) tcp_nodelay: bool,
    pub(super) lease_renewal: LeaseRenewal,
    pub(super) node_bytes_max: usize,
    pub(super) acl: Acl,
    pub(super) credentials: Vec<Credentials>,
    pub(super) node_data: Option<Vec<u8>>,
    pub(super) tls: Option<Tls>,
    pub(super) sasl: Option<Sasl>,
}

impl ConnectionManagerBuilder {
    pub(super) fn new(servers: &str) -> Self {
        Self {
            servers: servers.to_owned(),
            session_timeout: Duration::from_secs(20),
            connect_deadline: Duration::from_secs(15),
            needs_chroot: false,
            operation_timeout: None,
            retry: RetryPolicy::default(),
            tick: Duration::from_secs(3),
            token_generation: 0,
            lease_keep_alive: Duration::from_secs(60),
            tcp_nodelay: true,
            lease_renewal: LeaseRenewal::Quorum,
            node_bytes_max: NODE_BYTES_MAX,
            acl: Acl::open(),
            credentials: Vec::new(),
            node_data: None,
            tls: None,
            sasl: None,
        }
    }

    /// How long the server keeps a session without a sign of life. Default 20 s: twice the usual
    /// `syncLimit × tickTime`, so that a short partition of one server costs no session.
    ///
    /// All servers must grant the same timeout: a manager does not see a different one on a reconnect. A
    /// crashed holder's lock is free after at most this timeout and a tick. The server limits it, by default
    /// to 2 to 20 ticks.
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

    /// Refuses to connect if the chroot does not exist, by
    /// [`ConnectError::NoChroot`](crate::ConnectError::NoChroot). Default: the first use of a lock creates
    /// the chroot, and a warning is logged.
    ///
    /// Processes with different chroots share no lock. So a misspelt chroot lets two processes hold a lock
    /// that should exclude them.
    #[must_use]
    pub fn existing_chroot(mut self) -> Self {
        self.needs_chroot = true;
        self
    }

    /// The time limit of a call that does not wait for other contenders, for its connection and its answers
    /// together: `try_acquire`, `release`, [`Znodes`](crate::Znodes), transactions and inspections. Default:
    /// the session timeout.
    ///
    /// It does not shorten the single requests of calls that wait for other contenders, such as `acquire`.
    /// Each of these requests gets at least the session timeout, so a short value never makes a waiter repeat
    /// its requests.
    #[must_use]
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = Some(timeout);
        self
    }

    /// The pauses between attempts to open a new session, and between attempts to delete nodes in the
    /// background. Default: 50 ms doubling up to 5 s.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// The ensemble's `tickTime`. Default 3 s, which servers have without a `tickTime` in their
    /// configuration. ZooKeeper's sample configuration sets 2 s.
    ///
    /// Set it to at least the servers' value: a sign of life may wait for half a tick in a follower, and the
    /// lease clock takes this into account. With observers behind observer masters, set twice the tick time.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The [generation](crate::FencingToken::generation) of the fencing tokens. Default: 0.
    ///
    /// Raise it by one, in every process that uses the servers, when the servers' data was restored from a
    /// backup, set up anew, or lost: the transaction ids start again then, and each token of a later
    /// generation is greater than all tokens before. Processes of different generations still exclude each
    /// other. A resource refuses the tokens of a process that keeps the former generation.
    #[must_use]
    pub fn token_generation(mut self, generation: u32) -> Self {
        self.token_generation = generation;
        self
    }

    /// How long the session is still confirmed after its last use. Default 60 s.
    ///
    /// During this time an acquire costs one round trip. The first acquire after it also waits until the
    /// session is confirmed again: about half a tick. The confirmations cost one small write every sixth of
    /// the session timeout.
    #[must_use]
    pub fn lease_keep_alive(mut self, span: Duration) -> Self {
        self.lease_keep_alive = span;
        self
    }

    /// Whether `TCP_NODELAY` is set on this manager's connection. Default: yes.
    ///
    /// Without it, two requests that are sent together may cost two round trips. The client crate gives no
    /// access to its socket, so after each connect the socket is searched among the descriptors of the
    /// process, which takes some microseconds for each descriptor (on Linux; other systems have no such
    /// search). Turn it off if the process has very many descriptors, or no `/proc`.
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

    /// The budget for the ephemeral nodes of one session: the sum of the sizes of their paths, with the
    /// chroot, and four bytes for each. Default: [`NODE_BYTES_MAX`](crate::NODE_BYTES_MAX), 512 KiB.
    ///
    /// Every node counts that belongs to the session or may: of locks that are held or waited for, permits,
    /// members, registrations, elections. A mutex needs some 66 bytes beside the path of the lock. A create
    /// beyond the budget is not sent, and fails by [`Refusal::SessionFull`](crate::Refusal::SessionFull).
    /// There is room again once a node is deleted. A [`ConnectionPool`](crate::ConnectionPool) has a budget
    /// for each of its sessions.
    ///
    /// The budget protects the ensemble. When a session ends, the servers write one record of the paths of
    /// all of its nodes, and **a record above their `jute.maxbuffer` takes every server down, also after a
    /// restart** (ZOOKEEPER-4306). The default is half of the smallest `jute.maxbuffer` in use, 1 MiB. Raise
    /// it only if all servers have a larger one.
    #[must_use]
    pub fn node_bytes_max(mut self, bytes: usize) -> Self {
        self.node_bytes_max = bytes;
        self
    }

    /// The access list of every node that the manager creates. Default: [`Acl::open`].
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

    /// Authenticates with any scheme that the server supports. Default: no authentication.
    #[must_use]
    pub fn auth(mut self, scheme: &str, secret: Vec<u8>) -> Self {
        self.credentials.push(Credentials { scheme: scheme.to_owned(), secret });
        self
    }

    /// The data of contenders' nodes, which identifies holders and waiters to people. Default: host and
    /// process id, as `host=… pid=…`. No grant depends on it. Data in another form is shown as a note, and
    /// its [`Identity`](crate::Identity) has neither host nor process id.
    #[must_use]
    pub fn node_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.node_data = Some(data.into());
        self
    }

    /// How `tcp+tls://` endpoints are secured: every server has to be one. Default: the certificate
    /// authorities of the system are trusted.
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

    /// Authenticates through SASL GSSAPI (Kerberos), as the environment configures it. Default: none.
    #[cfg(feature = "sasl-gssapi")]
    #[must_use]
    pub fn sasl_gssapi(mut self) -> Self {
        self.sasl = Some(Sasl::Gssapi);
        self
    }
}
