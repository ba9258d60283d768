use std::time::Duration;

use lockkeeper_testserver::{StartError, TestServer};
use thiserror::Error;

use super::connection::Connection;

/// The embedded ZooKeeper for one run of an example: nothing has to be installed. Dropping it ends it.
#[derive(Debug)]
pub struct Server(TestServer);

/// There is no server to run on.
#[derive(Debug, Error)]
#[error("{0}\nor name an ensemble that runs already: --connect host:port")]
pub struct ServerError(StartError);

/// Short, so that a process that dies is soon found out.
const TICK: Duration = Duration::from_millis(250);

impl Server {
    /// Starts one on a free port.
    ///
    /// # Errors
    ///
    /// [`ServerError`] when the process is out of files or threads.
    pub async fn start() -> Result<Self, ServerError> {
        TestServer::builder().tick(TICK).start().await.map(Self).map_err(ServerError)
    }

    /// To this server, with sessions this long: from half a second to five.
    #[must_use]
    pub fn connection(&self, session_timeout: Duration) -> Connection {
        Connection {
            servers: self.0.connect_string().to_owned(),
            session_timeout: Some(session_timeout),
            tick: Some(TICK),
        }
    }
}
