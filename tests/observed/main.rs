#![doc = "Metrics and spans, as docs/observability.md describes them."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod deadlocked;
mod documented;
mod ended;
mod held_here;
mod kept;
mod levels;
mod measured;
mod recorded;
mod seen;
mod starting;
mod traced;
mod whole_paths;
mod wiped;

use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper_testserver::TestServer;

/// The session timeout of these tests: no link breaks if the machine pauses for a second.
pub(crate) const SESSION: Duration = Duration::from_secs(5);

/// The tick of the servers of these tests.
const TICK: Duration = Duration::from_millis(50);

pub(crate) async fn server() -> TestServer {
    TestServer::builder().tick(TICK).session_timeouts(TICK * 2, SESSION).start().await.unwrap()
}

pub(crate) fn builder(server: &TestServer) -> ConnectionManagerBuilder {
    ConnectionManager::builder(&server.connect_string()).session_timeout(SESSION).tick_time(TICK)
}

pub(crate) async fn connected() -> (TestServer, ConnectionManager) {
    let server = server().await;
    let manager = builder(&server).connect().await.unwrap();
    (server, manager)
}
