use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::clock::millis;
use super::running::Running;
use super::shared::Shared;
#[cfg(feature = "tls")]
use super::tls::Identity;
use super::{StartError, TestEnsemble, TestServer};
use crate::machine::Settings;
use crate::protocol::Op;

/// Options of a server to be started.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Builder {
    settings: Settings,
    port: u16,
    #[cfg(feature = "tls")]
    tls: bool,
}

impl Builder {
    /// All defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The port to listen on. Default 0: any free one from 10,000 to 25,999, in turn, so that no other server
    /// of this process soon gets the port of one that was stopped. Servers of an ensemble after the first
    /// take the next ports.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The length of a tick; sessions end at multiples of it, and may last from 2 to 20 of them. Default 100
    /// ms, and sessions from 200 ms to 40 s.
    pub fn tick(mut self, tick: Duration) -> Self {
        let tick = i32::try_from(millis(tick)).unwrap_or(i32::MAX).max(1);
        self.settings.tick = i64::from(tick);
        self.settings.min_timeout = tick.saturating_mul(2);
        self.settings.max_timeout = tick.saturating_mul(20);
        self
    }

    /// The shortest and the longest session timeout a client can get. Default 200 ms and 40 s.
    pub fn session_timeouts(mut self, shortest: Duration, longest: Duration) -> Self {
        self.settings.min_timeout = i32::try_from(millis(shortest)).unwrap_or(i32::MAX);
        self.settings.max_timeout = i32::try_from(millis(longest)).unwrap_or(i32::MAX);
        self
    }

    /// Whether nodes with a time to live are allowed. Default no, as in the real server.
    pub fn ttl_nodes(mut self, allowed: bool) -> Self {
        self.settings.ttl_nodes = allowed;
        self
    }

    /// Whether `create2` in a transaction answers with metadata. Default no, as in 3.8.0 (ZOOKEEPER-4026).
    pub fn stat_in_multi(mut self, answered: bool) -> Self {
        self.settings.stat_in_multi = answered;
        self
    }

    /// Whether an event says which transaction caused it, as from 3.9 on (ZOOKEEPER-4655). Default no.
    pub fn event_zxids(mut self, sent: bool) -> Self {
        self.settings.event_zxids = sent;
        self
    }

    /// The time between two searches for containers to remove. Default 60 s.
    pub fn container_interval(mut self, interval: Duration) -> Self {
        self.settings.container_interval = millis(interval).max(1);
        self
    }

    /// How long a container that never had children is kept. Default for ever (zero).
    pub fn container_max_never_used(mut self, age: Duration) -> Self {
        self.settings.container_max_never_used = millis(age);
        self
    }

    /// The number of the first sequential child of every node made. Default 0.
    pub fn first_sequence(mut self, first: i32) -> Self {
        self.settings.first_sequence = first;
        self
    }

    /// The longest record of the end of a session, in bytes: the paths of its nodes, and four for each. A
    /// longer one stops every server, and none can be started again (ZOOKEEPER-4306). Default: no limit.
    pub fn close_record_max(mut self, bytes: usize) -> Self {
        self.settings.close_record_max = Some(bytes);
        self
    }

    /// Whether an ensemble serves only while more than half of its servers run. When a leader stops, another
    /// one takes over, and all connections close. Default no: an ensemble serves while any of its servers
    /// runs.
    pub fn quorum(mut self, needed: bool) -> Self {
        self.settings.quorum = needed;
        self
    }

    /// Whether servers after the first report the live sessions to it only every half tick, as followers do.
    /// Default no.
    pub fn relay_touches(mut self, relay: bool) -> Self {
        self.settings.relay_touches = relay;
        self
    }

    /// The longest request that a server reads, in bytes: its `jute.maxbuffer`. It closes the connection on a
    /// longer one. Default 1 MiB, less one byte, as in the real server.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.settings.max_request = bytes;
        self
    }

    /// Requests that the servers do not know: they close the connection without an answer, as ClickHouse
    /// Keeper does. Default none.
    pub fn unknown(mut self, ops: impl IntoIterator<Item = Op>) -> Self {
        self.settings.unknown = ops.into_iter().collect();
        self
    }

    /// Servers that differ from ZooKeeper's as those of ClickHouse Keeper do. They close the connection on
    /// `getEphemerals`, `getAllChildrenNumber` and `whoAmI`, which they do not know. They give a new session
    /// at each connect, name the watched node in the events of a recursive watch, and count a parent's
    /// `cversion` and `pzxid` in their own way. A session that only reads at a server which is not the leader
    /// expires. [`Builder::unknown`], called later, names other requests.
    pub fn like_clickhouse(mut self) -> Self {
        self.settings.like_clickhouse = true;
        self.unknown([Op::GetEphemerals, Op::GetAllChildrenNumber, Op::WhoAmI])
    }

    /// Takes connections over TLS alone, with a certificate for `127.0.0.1` and `localhost` by an authority
    /// of these servers' own: [`TestServer::tls_authority`]. Clients need no certificate. Default no.
    ///
    /// With lockkeeper the address is `tcp+tls://` and [`TestServer::connect_string`]. Connections that are
    /// dropped on order end in order, and never by a reset.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, secured: bool) -> Self {
        self.tls = secured;
        self
    }

    /// Starts one server.
    ///
    /// # Errors
    ///
    /// [`StartError`] when the port is taken or the process is out of files or threads.
    pub async fn start(self) -> Result<TestServer, StartError> {
        TestServer::listen(self.running(1)?, 0, self.port)
    }

    /// Starts several servers with one tree behind them.
    ///
    /// # Errors
    ///
    /// [`StartError`] when a port is taken or the process is out of files or threads.
    pub async fn start_ensemble(self, servers: usize) -> Result<TestEnsemble, StartError> {
        let count = servers.max(1);
        let running = self.running(count)?;
        let port = |index: usize| match self.port {
            0 => 0,
            first => first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX)),
        };
        let servers = (0..count).map(|index| TestServer::listen(running.clone(), index, port(index)));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if count > 1 {
            let addresses: Vec<_> = servers.iter().map(TestServer::address).collect();
            running.shared.command(|machine, now| {
                machine.set_members(&addresses, now);
                Vec::new()
            });
        }
        Ok(TestEnsemble::new(servers))
    }

    /// Sessions differ from server to server, so that a client of one cannot attach to a session of another
    /// that has taken its port.
    fn running(&self, servers: usize) -> Result<Arc<Running>, StartError> {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The highest byte is the number of a server and stays 0; five bytes of time follow.
        let first_session = (millis(since_epoch) & ((1 << 40) - 1)) << 16;
        let settings = Settings { servers, first_session, secret: rand::random(), ..self.settings.clone() };
        #[cfg(not(feature = "tls"))]
        let shared = Shared::new(settings);
        #[cfg(feature = "tls")]
        let shared = {
            let mut shared = Shared::new(settings);
            shared.identity = self.tls.then(Identity::generate).transpose()?;
            shared
        };
        Running::start(shared)
    }
}
