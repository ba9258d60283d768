//! What the integration tests share.

use std::time::Duration;

use lockkeeper::{ConnectionManager, ConnectionManagerBuilder};
use lockkeeper_tests::{Ensemble, Proxies};

/// The tick of the servers the tests start.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// A builder with a short session, for servers with short ticks.
pub(crate) fn builder(connect_string: &str) -> ConnectionManagerBuilder {
    ConnectionManager::builder(connect_string)
        .session_timeout(Duration::from_secs(4))
        .tick_time(TICK)
        .connect_deadline(Duration::from_secs(30))
}

pub(crate) async fn connect(connect_string: &str) -> ConnectionManager {
    builder(connect_string).connect().await.expect("a connection")
}

/// One server with a proxy in front, and a client through it.
pub(crate) async fn behind_proxy() -> (Ensemble, Proxies, ConnectionManager) {
    let ensemble = Ensemble::start(1).await.expect("a server");
    let proxies = Proxies::start(&ensemble).await.expect("a proxy");
    let manager = connect(&proxies.connect_string()).await;
    (ensemble, proxies, manager)
}
