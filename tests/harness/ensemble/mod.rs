//! Real ZooKeeper servers: one, or three that elect a leader.

mod archive;
mod between;
mod builder;
mod configuration;
mod counter;
mod install;
mod lent;
mod ports;
mod process;
mod reports;
mod secure;
mod server;
mod watchdog;

use std::net::SocketAddr;

use tempfile::TempDir;
use tokio::sync::OnceCell;

pub use self::between::Between;
pub use self::builder::EnsembleBuilder;
use self::install::Installation;
pub use self::lent::LentEnsemble;
use self::ports::Ports;
pub use self::secure::ServerTls;
pub use self::server::Server;
use crate::error::HarnessError;
use crate::inspect::{self, Dump, Role};
use crate::timing::{Timing, eventually};
use crate::wire::{self, RawClient};

/// A set of servers on loopback that serve one tree. Dropping it ends them and removes their folders.
///
/// It has no part in the runtime of the test that started it, so that it may outlive that test.
#[derive(Debug)]
pub struct Ensemble {
    // In the order of their end: servers, their folder, their ports.
    servers: Vec<Server>,
    between: Option<Between>,
    _folder: TempDir,
    ports: Ports,
}

impl Ensemble {
    /// Starts `servers` servers (one or three) as [`Ensemble::builder`] has them by default.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotInstalled`] without Java and ZooKeeper; otherwise what kept a server from serving.
    pub async fn start(servers: usize) -> Result<Self, HarnessError> {
        Self::builder().servers(servers).start().await
    }

    /// Starts with other settings than the default.
    pub fn builder() -> EnsembleBuilder {
        EnsembleBuilder::default()
    }

    /// One standalone server for all tests of this process, started by the first that asks.
    ///
    /// It is for tests that harm no server: they use a path of their own, and faults only of their own
    /// [`Proxies`](crate::Proxies). The watchdog ends it with the process.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::start`]; the next caller tries again.
    pub async fn shared() -> Result<&'static Self, HarnessError> {
        static SHARED: OnceCell<Ensemble> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(1)).await
    }

    /// Whether this machine can run ZooKeeper.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotInstalled`], which says what to install.
    pub fn available() -> Result<(), HarnessError> {
        Installation::find().map(|_| ())
    }

    /// All servers, as a client takes them: `127.0.0.1:p,127.0.0.1:q,…`.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let addresses: Vec<String> = self.servers.iter().map(|server| server.address().to_string()).collect();
        addresses.join(",")
    }

    /// Where a single server takes clients over TLS, as a client takes it: `tcp+tls://127.0.0.1:p`.
    #[must_use]
    pub fn secure_connect_string(&self) -> String {
        format!("tcp+tls://{}", self.ports.secure())
    }

    /// Every server, up or down.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Server `index`, from 0.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a wrong index is a mistake in a test, which must fail")]
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index]
    }

    /// The relays between the servers, if they were started [apart](EnsembleBuilder::apart).
    #[must_use]
    pub fn between(&self) -> Option<&Between> {
        self.between.as_ref()
    }

    /// The client addresses of all servers, up or down.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Server::address).collect()
    }

    /// Waits until the running servers agree: exactly one leads and the others follow, or the only one is
    /// standalone.
    ///
    /// A leader that has just lost its quorum may not know it yet, and is taken at its word.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`], also when too few servers run for a quorum.
    pub async fn settled(&self) -> Result<(), HarnessError> {
        self.leader().await.map(|_| ())
    }

    /// The leader, once the running servers agree on one; the only server if there is one.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::settled`].
    pub async fn leader(&self) -> Result<&Server, HarnessError> {
        eventually("one server leads and the others follow", Timing::settle(), async || {
            let mut leader = None;
            for server in self.servers.iter().filter(|server| server.is_running()) {
                match server.role().await {
                    Ok(Role::Leader | Role::Standalone) if leader.is_none() => leader = Some(server),
                    Ok(Role::Follower) => {}
                    _ => return None,
                }
            }
            leader
        })
        .await
    }

    /// The running servers that follow, once they agree on a leader; none if there is only one server.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::settled`].
    pub async fn followers(&self) -> Result<Vec<&Server>, HarnessError> {
        let leader = self.leader().await?.index();
        Ok(self.servers.iter().filter(|server| server.is_running() && server.index() != leader).collect())
    }

    /// Expires a session on the servers, as if its client had been silent too long, and waits until they have
    /// forgotten it.
    ///
    /// For a session seen by a proxy, [`Proxies::expire_session`](crate::Proxies::expire_session) needs no
    /// password.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if the session lives on, as with a wrong password.
    pub async fn expire_session(&self, session: i64, password: &[u8]) -> Result<(), HarnessError> {
        wire::expire_session(&self.addresses(), session, password).await
    }

    /// Waits until the servers have forgotten `session`: it expired or was closed, and its ephemeral nodes
    /// are deleted.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if it lives on.
    pub async fn session_gone(&self, session: i64) -> Result<(), HarnessError> {
        inspect::session_gone(&self.addresses(), session).await
    }

    /// All sessions and their ephemeral nodes, as the leader knows them when it has applied everything that
    /// any server has answered before.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::settled`], or that the leader does not answer.
    pub async fn dump(&self) -> Result<Dump, HarnessError> {
        inspect::settled_dump(self.leader().await?.address()).await
    }

    /// A client of the harness's own at the leader. It sees at least what any server has answered before this
    /// call; for what was answered later, [`RawClient::sync`] first: a leader may apply a write after a
    /// follower that has answered it.
    ///
    /// # Errors
    ///
    /// As [`Ensemble::settled`] and [`RawClient::connect`].
    pub async fn raw(&self) -> Result<RawClient, HarnessError> {
        RawClient::connect(self.leader().await?.address()).await
    }
}
