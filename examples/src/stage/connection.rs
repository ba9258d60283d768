use std::time::Duration;

use lockkeeper::{ConnectError, ConnectionManager, ConnectionManagerBuilder};
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

    /// Settings for a session of its own for `who`, which is what people see in the nodes of its locks.
    #[must_use]
    pub fn builder(&self, who: &str) -> ConnectionManagerBuilder {
        let mut builder = ConnectionManager::builder(&self.servers).node_data(who);
        if let Some(timeout) = self.session_timeout {
            builder = builder.session_timeout(timeout);
        }
        if let Some(tick) = self.tick {
            builder = builder.tick_time(tick);
        }
        builder
    }

    /// Opens a session with these settings.
    ///
    /// # Errors
    ///
    /// As [`ConnectionManagerBuilder::connect`].
    pub async fn open(&self, who: &str) -> Result<ConnectionManager, ConnectError> {
        self.builder(who).connect().await
    }
}
