//! Deadlocks, seen from outside: made ones are found, and contention alone is none.

mod contention;
mod made;

use std::time::Duration;

use lockkeeper::inspect::{Deadlocks, Survey};
use lockkeeper::{ConnectionManager, Inspection};
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;

use crate::server_fixture::servers;

/// A server, and clients whose sessions outlast the test.
pub(crate) struct Fixture {
    // Stops when it is dropped.
    _server: TestServer,
    pub(crate) managers: Vec<ConnectionManager>,
    pub(crate) observer: ConnectionManager,
}

impl Fixture {
    pub(crate) async fn start(clients: usize) -> Self {
        let server = servers().start().await.unwrap();
        let servers = server.connect_string();
        let mut managers = Vec::new();
        for _ in 0..clients {
            managers.push(ConnectionManager::connect(&servers).await.unwrap());
        }
        let observer = ConnectionManager::connect(&servers).await.unwrap();
        Self { _server: server, managers, observer }
    }

    /// Waits until so many contenders wait below `/locks`.
    pub(crate) async fn waiting(&self, count: usize) -> Vec<Inspection> {
        let survey = async || {
            let survey = Survey::below(&self.observer, "/locks").await.ok()?;
            let waiting: usize = survey.locks().iter().map(|lock| lock.waiters().count()).sum();
            (waiting == count).then(|| survey.locks().to_vec())
        };
        eventually(&format!("{count} contenders wait"), Timing::settle(), survey).await.unwrap()
    }

    pub(crate) async fn deadlocks(&self, locks: &[Inspection]) -> Deadlocks {
        Deadlocks::among(&self.observer, locks, Duration::ZERO).await.unwrap()
    }
}
