//! A lock that is held, for tests of what ends the hold.

use std::time::Duration;

use lockkeeper_testserver::TestServer;

use super::{LockQueue, Rule};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

/// The server, the lock, and a hold of it. The session is so long that no confirmation of the lease, and no
/// end of it, comes before what the test does.
pub(super) async fn held_lock() -> (TestServer, LockQueue, Hold) {
    let server = TestServer::start().await.unwrap();
    let builder = ConnectionManager::builder(&server.connect_string());
    let manager = builder.session_timeout(Duration::from_secs(30)).connect().await.unwrap();
    let queue = LockQueue::new(&manager, "/lock", Label::LOCK, Rule::MUTEX).unwrap();
    let held = queue.acquire(Deadline::never()).await.unwrap();
    (server, queue, held)
}
