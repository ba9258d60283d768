//! Helpers of these tests.

use std::future::Future;
use std::time::Duration;

use lockkeeper::Error;
use lockkeeper::blocking::{CannotBlock, ConnectionManager};
use lockkeeper::config::ConnectionManagerBuilder;
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use lockkeeper_testserver::machine::Machine;

/// Waits for a future in a runtime that does nothing else.
pub(crate) fn aside<F: Future>(work: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub(crate) fn server() -> TestServer {
    aside(TestServer::start()).unwrap()
}

pub(crate) fn builder(server: &TestServer) -> ConnectionManagerBuilder {
    ConnectionManager::builder(&server.connect_string())
        .session_timeout(Duration::from_secs(20))
        .connect_deadline(Timing::event())
}

pub(crate) fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::connect_with(builder(server)).unwrap()
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut check: impl FnMut() -> bool) {
    aside(eventually(what, Timing::event(), || {
        let seen = check();
        async move { seen.then_some(()) }
    }))
    .unwrap();
}

/// The number of contenders of the lock at this path.
pub(crate) fn contenders(server: &TestServer, path: &str) -> usize {
    server.inspect(|machine| children(machine, path))
}

/// The number of children of this node.
pub(crate) fn children(machine: &Machine, path: &str) -> usize {
    machine.tree().node(path).map_or(0, |node| node.children.len())
}

pub(crate) fn is_refused<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(error) if error.recipe::<CannotBlock>().is_some())
}
