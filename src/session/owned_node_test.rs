//! The watch on a node of a session.

use std::future::{pending, ready};
use std::sync::Arc;

use futures::FutureExt;
use lockkeeper_testserver::TestServer;

use super::Origin;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::wire::WatchEvent;

#[tokio::test]
async fn a_watch_that_has_fired_with_its_event_unread_is_no_watch() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let session = manager.session(Deadline::never(), "/node").await.unwrap();
    let node = session.register("/node".into(), Arc::default(), Origin::FOUND);
    let room = || session.watch_budget().reserve("/node").unwrap();

    node.set_watch(pending().boxed(), room());
    assert!(node.has_watch());
    node.set_watch(ready(WatchEvent::Changed).boxed(), room());
    assert!(!node.has_watch(), "the next deletion of the node would not be noticed");
    session.unregister(&node);
}
