use std::time::Duration;

use lockkeeper::{ConnectError, ConnectionManager};
use serde::{Deserialize, Serialize};

/// How to reach the ensemble; the same for all processes of an example.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// The connect string.
    pub servers: String,
    /// `None`: lockkeeper's default.
    pub session_timeout: Option<Duration>,
    /// `None`: lockkeeper's default, which is ZooKeeper's own.
    pub tick: Option<Duration>,
}

impl Connection {
    /// To an ensemble that runs already, with lockkeeper's own settings.
    #[must_use]
    pub fn to(servers: &str) -> Self {
        Self { servers: servers.to_owned(), session_timeout: None, tick: None }
    }

    /// Opens a session of its own for `who`, which is what people see in the nodes of its locks.
    ///
    /// # Errors
    ///
    /// As [`lockkeeper::ConnectionManagerBuilder::connect`].
    pub async fn open(&self, who: &str) -> Result<ConnectionManager, ConnectError> {
        let mut builder = ConnectionManager::builder(&self.servers).node_data(who);
        if let Some(timeout) = self.session_timeout {
            builder = builder.session_timeout(timeout);
        }
        if let Some(tick) = self.tick {
            builder = builder.tick_time(tick);
        }
        builder.connect().await
    }
}
