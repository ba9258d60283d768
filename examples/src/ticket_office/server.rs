use std::time::Duration;

use lockkeeper_testserver::{StartError, TestServer};
use thiserror::Error;

use super::connection::Connection;

/// The embedded ZooKeeper for one run of the example: nothing has to be installed. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server(TestServer);

/// There is no server to sell on.
#[derive(Debug, Error)]
#[error("{0}\nor name an ensemble that runs already: --connect host:port")]
pub(crate) struct ServerError(StartError);

/// Short, so that a seller that dies is soon found out.
const TICK: Duration = Duration::from_millis(500);
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

impl Server {
    pub(crate) async fn start() -> Result<Self, ServerError> {
        TestServer::builder().tick(TICK).start().await.map(Self).map_err(ServerError)
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection {
            servers: self.0.connect_string().to_owned(),
            session_timeout: Some(SESSION_TIMEOUT),
            tick: Some(TICK),
        }
    }
}
