//! Helpers of the integration tests.

use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper_tests::{Ensemble, HarnessError, LentEnsemble, Proxies, Timing, eventually};

/// The tick of the servers that the tests start.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// The longest session that the servers grant: a busy machine does not end it, and reactions after fractions
/// of it differ from immediate ones.
pub(crate) const LONG: Duration = Duration::from_secs(10);

/// A builder for servers with short ticks. A busy machine ends neither such a session nor its link.
pub(crate) fn builder(connect_string: &str) -> ConnectionManagerBuilder {
    ConnectionManager::builder(connect_string)
        .session_timeout(Duration::from_secs(30))
        .tick_time(TICK)
        .connect_deadline(Duration::from_secs(30))
}

pub(crate) async fn connect(connect_string: &str) -> ConnectionManager {
    builder(connect_string).connect().await.expect("a connection")
}

/// A builder with a short session, for a test that waits for its end.
pub(crate) fn brief_builder(connect_string: &str) -> ConnectionManagerBuilder {
    builder(connect_string).session_timeout(Duration::from_secs(4))
}

pub(crate) async fn connect_briefly(connect_string: &str) -> ConnectionManager {
    brief_builder(connect_string).connect().await.expect("a connection")
}

/// One server with a proxy in front, and a client through it.
pub(crate) async fn behind_proxy() -> (LentEnsemble, Proxies, ConnectionManager) {
    behind_proxy_by(builder).await
}

/// The same with a short session, for a test that waits for its end.
pub(crate) async fn briefly_behind_proxy() -> (LentEnsemble, Proxies, ConnectionManager) {
    behind_proxy_by(brief_builder).await
}

async fn behind_proxy_by(
    builder: fn(&str) -> ConnectionManagerBuilder,
) -> (LentEnsemble, Proxies, ConnectionManager) {
    let ensemble = Ensemble::lend().await.expect("a server");
    let proxies = Proxies::start(&ensemble).await.expect("a proxy");
    let manager = builder(&proxies.connect_string()).connect().await.expect("a connection");
    (ensemble, proxies, manager)
}

/// The children of a directory, read without the library; none when there is no directory.
pub(crate) async fn children(ensemble: &Ensemble, path: &str) -> Vec<String> {
    listed(ensemble, path).await.expect("the children")
}

async fn listed(ensemble: &Ensemble, path: &str) -> Result<Vec<String>, HarnessError> {
    let mut oracle = ensemble.raw().await?;
    oracle.sync("/").await?;
    match oracle.children(path).await {
        Err(error) if error.is_no_node() => Ok(Vec::new()),
        children => children,
    }
}

/// Waits until the directory has no children.
pub(crate) async fn no_node_is_left(ensemble: &Ensemble, path: &str) {
    nodes_become(ensemble, path, 0).await;
}

/// Waits until the queue has `count` contenders.
pub(crate) async fn nodes_become(ensemble: &Ensemble, path: &str, count: usize) {
    let seen = eventually(format!("{count} nodes at {path}"), Timing::settle(), || async {
        // A server on a busy machine may answer late.
        (listed(ensemble, path).await.ok()?.len() == count).then_some(())
    });
    seen.await.expect("the queue to settle");
}
