use super::{Builder, StartError, TestServer};
use crate::fault::{ArmedFault, Fault, When};

/// Several servers with one tree behind them, so that clients can be tested on fail-over.
///
/// It behaves like an ensemble, but no server votes: a write is committed as soon as any connected server
/// gets it, and every connected server has it at once. [`Builder::quorum`] makes it serve only while a
/// majority runs. [`TestServer::cut_off`] and [`TestServer::heal`] make a server lag, or part it from the
/// others.
#[derive(Debug)]
pub struct TestEnsemble {
    servers: Vec<TestServer>,
}

impl TestEnsemble {
    pub(super) fn new(servers: Vec<TestServer>) -> Self {
        Self { servers }
    }

    /// Starts that many servers on free ports, with default options.
    ///
    /// # Errors
    ///
    /// As [`Builder::start_ensemble`].
    pub async fn start(servers: usize) -> Result<Self, StartError> {
        Builder::new().start_ensemble(servers).await
    }

    /// All servers, as clients take it.
    pub fn connect_string(&self) -> String {
        self.servers.iter().map(TestServer::connect_string).collect::<Vec<_>>().join(",")
    }

    /// The servers. Without [`Builder::quorum`] the first is called leader.
    pub fn servers(&self) -> &[TestServer] {
        &self.servers
    }

    /// One server, counted from 0.
    pub fn server(&self, index: usize) -> Option<&TestServer> {
        self.servers.get(index)
    }

    /// Arms a fault at all servers; [`When::server`] narrows it to one.
    pub fn fault(&self, when: When, fault: Fault) -> Option<ArmedFault> {
        self.servers.first().map(|server| server.fault(when, fault))
    }
}
