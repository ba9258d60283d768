//! A server that opens another session for a client that reconnects, without an error.

use lockkeeper_testserver::{Fault, When};

use super::test_fixture::held_lock;
use crate::error::LossReason;

#[tokio::test]
async fn a_hold_ends_when_the_present_connection_does_not_have_its_node() {
    let (server, _queue, held) = held_lock().await;
    let swapped = server.fault(When::connect(), Fault::SwapSession);
    server.drop_connections();
    swapped.hit().await;

    // The earlier session and its node exist until a session timeout has passed. No client keeps them alive.
    assert_eq!(held.lost().await.reason, LossReason::SessionReplaced);
    let path = held.path().to_owned();
    assert!(server.inspect(|machine| machine.tree().node(&path).is_some()), "another contender may hold");
}
