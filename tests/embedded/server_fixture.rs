//! A server, the client that faults strike, and a rival client.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::config::{ConnectionManagerBuilder, RetryPolicy};
use lockkeeper_test_recipes::Target;
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Builder, TestServer};

use crate::limit::within;
use crate::oracle::Oracle;

/// The tick of the servers here.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The session timeout of the client that faults strike: short, so that its loss is quick.
pub(crate) const SESSION: Duration = Duration::from_millis(1_000);

/// The lock that both clients contend for.
pub(crate) const LOCK: &str = "/locks/lock";

/// The servers of these tests: like ZooKeeper's, or with `LOCKKEEPER_TEST_SERVERS=keeper` like those of
/// ClickHouse Keeper.
pub(crate) fn servers() -> Builder {
    let servers = TestServer::builder();
    match std::env::var("LOCKKEEPER_TEST_SERVERS").as_deref() {
        Err(_) => servers,
        Ok("keeper") => servers.like_clickhouse(),
        Ok(other) => panic!("LOCKKEEPER_TEST_SERVERS is {other}, and can only be `keeper`"),
    }
}

/// The server and the clients of a test.
pub(crate) struct ServerFixture {
    pub(crate) server: TestServer,
    pub(crate) oracle: Arc<Oracle>,
    /// The other client. Its session outlasts the faults.
    pub(crate) rival: ConnectionManager,
}

impl ServerFixture {
    pub(crate) async fn start() -> Result<Self, String> {
        let server = servers()
            .tick(TICK)
            .session_timeouts(TICK * 2, Duration::from_secs(120))
            .start()
            .await
            .map_err(|error| error.to_string())?;
        let rival =
            builder(&server.connect_string()).session_timeout(Duration::from_secs(30)).connect().await;
        let rival = rival.map_err(|error| error.to_string())?;
        Ok(Self { server, oracle: Arc::default(), rival })
    }

    /// A client. So long are its session and its link that a busy machine ends neither.
    pub(crate) async fn actor(&self) -> Result<ConnectionManager, String> {
        self.connected(SESSION * 10).await
    }

    /// A client with a short session, for a test that waits for a fraction of it.
    pub(crate) async fn brief_actor(&self) -> Result<ConnectionManager, String> {
        self.connected(SESSION).await
    }

    /// A client whose session is so long that no confirmation of its lease is among its requests, and the
    /// number of the session. A call waits for its answer for a second.
    pub(crate) async fn quiet_actor(&self) -> (ConnectionManager, i64) {
        let builder = builder(&self.server.connect_string()).session_timeout(SESSION * 120);
        let actor = builder.operation_timeout(SESSION).connect().await.unwrap();
        (actor, self.sessions_of_actor()[0])
    }

    async fn connected(&self, session: Duration) -> Result<ConnectionManager, String> {
        let builder = builder(&self.server.connect_string()).session_timeout(session);
        builder.connect().await.map_err(|error| error.to_string())
    }

    /// The sessions of all clients but the rival, oldest first.
    pub(crate) fn sessions_of_actor(&self) -> Vec<i64> {
        self.server.sessions().into_iter().skip(1).collect()
    }

    /// The rival sends a request and gets its answer.
    pub(crate) async fn round_trip_of_rival(&self) -> Result<(), String> {
        let read = async {
            // A fault may have broken the rival's link, too.
            while self.rival.znodes().read("/zookeeper").await.is_err() {}
        };
        within("an answer to the rival", read).await
    }

    /// Waits until the queue of the lock has `count` nodes.
    pub(crate) async fn queue_length_becomes(&self, count: usize) -> Result<(), String> {
        let queue = self.server.wait_until(|machine| queue_nodes(machine).len() == count);
        within(&format!("{count} nodes in the queue"), queue)
            .await
            .map_err(|error| format!("{error}; there are {:?}", self.server.inspect(queue_nodes)))
    }
}

/// A builder with a short session and short pauses.
pub(crate) fn builder(servers: &str) -> ConnectionManagerBuilder {
    ConnectionManager::builder(servers)
        .session_timeout(SESSION)
        .tick_time(TICK)
        // In a process with thousands of sockets, setting the option would take most of the time.
        .tcp_nodelay(false)
        .retry(RetryPolicy::exponential(Duration::from_millis(5), Duration::from_millis(100)))
        .connect_deadline(Duration::from_secs(30))
}

/// The lock, as this client takes it.
pub(crate) fn target(manager: &ConnectionManager) -> Target {
    Target::new(manager, LOCK)
}

/// The paths of the contenders' nodes.
pub(crate) fn queue_nodes(machine: &Machine) -> Vec<String> {
    let sessions = machine.sessions();
    let ephemerals = sessions.iter().flat_map(|session| machine.tree().ephemerals(*session));
    let contenders =
        ephemerals.filter(|path| path.strip_prefix(LOCK).is_some_and(|rest| rest.starts_with('/')));
    contenders.map(str::to_owned).collect()
}

pub(crate) fn children(machine: &Machine, path: &str) -> Vec<String> {
    machine.tree().node(path).map(|node| node.children.iter().cloned().collect()).unwrap_or_default()
}
