//! More registrations than a session has room for watches.

use lockkeeper::Registration;

use super::registered;
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

const COUNT: usize = 40;

/// The paths of some thirty such nodes are all that one session may watch.
fn path(number: usize) -> String {
    format!("/{number:04}{}", "x".repeat(3900))
}

#[tokio::test]
async fn registrations_without_room_for_a_watch_read_their_nodes_from_time_to_time() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let manager = builder(&server.connect_string()).session_timeout(SESSION * 30).connect().await.unwrap();
    let mut registrations = Vec::new();
    for number in 0..COUNT {
        let registration = Registration::register(&manager, path(number), "here").unwrap();
        registered(&registration).await;
        registrations.push(registration);
    }
    let watches = server.inspect(|machine| machine.watch_count(0));
    assert!(watches < COUNT, "all {watches} watches fit");
    assert!((0..COUNT).all(|number| server.delete_node(&path(number))));
    let is_back = server.wait_until(|machine| {
        let node = |number| machine.tree().node(&path(number));
        (0..COUNT).all(|number| node(number).is_some())
    });
    within("all nodes", is_back).await.unwrap();
}
