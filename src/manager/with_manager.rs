//! A manager for a part of a program, shut down on every way out.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use tracing::warn;

use super::builder::ConnectionManagerBuilder;
use super::connection_manager::ConnectionManager;
use crate::error::ConnectError;

/// Begins the shutdown when `work` is dropped before its end.
struct BegunOnDrop(ConnectionManager);

impl Drop for BegunOnDrop {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

/// Connects, runs `work` with the manager, and [shuts the manager down](ConnectionManager::shutdown) on every
/// way out of `work`: its value, its error, a panic, and the drop of this future.
///
/// `servers` is a connect string, or a [builder](ConnectionManager::builder) with settings. The shutdown
/// begins when `work` is over: it ends every wait of another task with
/// [`Error::Closed`](crate::Error::Closed), and every guard that is still held is lost. So await the tasks
/// that `work` has begun inside `work`. A signal ends no future: wait for it inside `work`, too.
///
/// # Panics
///
/// A panic of `work` is passed on after the shutdown. A program that aborts on a panic shuts nothing down.
///
/// # Errors
///
/// [`ConnectError`] if there is no connection; then `work` does not run. Otherwise the error of `work`. A
/// shutdown that no server confirms changes no result: it is logged at `warn`, and the nodes are deleted with
/// their session, at the latest a session timeout and a tick from then.
///
/// # Cancel safety
///
/// A drop of the future drops `work`, and begins the shutdown. It goes on in the background as long as the
/// runtime runs, also if `work` has given clones of the manager to other tasks. If the runtime ends with it,
/// as at the end of `main`, the nodes are deleted with their session.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let servers = server.connect_string();
/// use std::time::Duration;
/// use lockkeeper_core::{ConnectionManager, Error, with_manager};
///
/// # type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
/// let found: Result<_> = with_manager(servers.as_str(), async |manager| {
///     Ok(manager.znodes().read("/config").await?) // every `?` in here shuts the manager down
/// })
/// .await;
/// assert!(found?.is_none());
///
/// let settings = ConnectionManager::builder(&servers).session_timeout(Duration::from_secs(10));
/// let ended: Result<()> = with_manager(settings, async |manager| {
///     manager.znodes().ensure("/config").await?;
///     Err(Error::Closed)? // an error of the program's own
/// })
/// .await;
/// assert!(ended.is_err());
/// # Ok(())
/// # }
/// ```
pub async fn with_manager<T, E: From<ConnectError>>(
    servers: impl Into<ConnectionManagerBuilder>,
    work: impl AsyncFnOnce(ConnectionManager) -> Result<T, E>,
) -> Result<T, E> {
    let manager = servers.into().connect().await?;
    let begun = BegunOnDrop(manager.clone());
    // What a closure does before its async block may panic as well.
    let work = async move { work(manager).await };
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    if let Err(error) = begun.0.shutdown().await {
        warn!(%error, "a shutdown is not confirmed: the session ends by its timeout");
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}
