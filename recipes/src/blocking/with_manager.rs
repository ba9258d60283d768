//! A manager for a part of a program, shut down on every way out.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use lockkeeper_core::{ConnectionManagerBuilder, Error};
use tracing::warn;

use super::manager::ConnectionManager;

/// Connects, runs `work` with the manager, and [shuts the manager down](ConnectionManager::shutdown) on every
/// way out of `work`: its value, its error and a panic.
///
/// `servers` is a connect string, or a [builder](ConnectionManager::builder) with settings. The shutdown
/// begins when `work` is over: it ends every wait of another thread with [`Error::Closed`], and every guard
/// that is still held is lost. So join the threads that `work` has begun inside `work`. A signal ends no
/// function: see [Ctrl-C](super#ctrl-c).
///
/// # Panics
///
/// A panic of `work` is passed on after the shutdown. A program that aborts on a panic shuts nothing down.
///
/// # Errors
///
/// As [`ConnectionManager::connect_with`]; then `work` does not run. Otherwise the error of `work`. A
/// shutdown that no server confirms changes no result: it is logged at `warn`, and the nodes are deleted with
/// their session, at the latest a session timeout and a tick from then.
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let servers = server.connect_string();
/// use lockkeeper::blocking::{Mutex, with_manager};
///
/// # type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
/// let reported: Result<_> = with_manager(servers.as_str(), |manager| {
///     // Every `?` in here shuts the manager down.
///     let guard = Mutex::new(&manager, "/locks/report")?.acquire()?;
///     Ok(guard.release()?)
/// });
/// reported?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub fn with_manager<T, E: From<Error>>(
    servers: impl Into<ConnectionManagerBuilder>,
    work: impl FnOnce(ConnectionManager) -> Result<T, E>,
) -> Result<T, E> {
    let manager = ConnectionManager::connect_with(servers.into())?;
    let given = manager.clone();
    let ended = catch_unwind(AssertUnwindSafe(|| work(given)));
    if let Err(error) = manager.shutdown() {
        warn!(%error, "a shutdown is not confirmed: the session ends by its timeout");
    }
    ended.unwrap_or_else(|panic| resume_unwind(panic))
}
