use std::time::Duration;

use lockkeeper_tests::{Ensemble, HarnessError};
use thiserror::Error;

use crate::connection::Connection;

/// A ZooKeeper for one run of the example. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server(Ensemble);

/// There is no server to sell on.
#[derive(Debug, Error)]
#[error("{0}\nor name an ensemble that runs already: --connect host:port")]
pub(crate) struct ServerError(HarnessError);

/// Short, so that a seller that dies is soon found out.
const TICK: Duration = Duration::from_millis(500);
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

impl Server {
    pub(crate) async fn start() -> Result<Self, ServerError> {
        Ensemble::builder().tick(TICK).start().await.map(Self).map_err(ServerError)
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection {
            servers: self.0.connect_string(),
            session_timeout: Some(SESSION_TIMEOUT),
            tick: Some(TICK),
        }
    }
}
