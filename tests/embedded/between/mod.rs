//! Faults between two steps of a recipe, where no fault at a single request can strike. Each of these
//! interleavings needs one rule of the library.

mod authors;
mod confirmation;
mod directory;
mod handed;
mod in_flight;
mod own;
mod permits;
mod queue;
mod reconnect;
mod released;
mod several;
mod shares;
mod starts;
mod taking;

use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::manager::State;
use lockkeeper_testserver::{Fault, When};

use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// Blocks the thread of the clients of this test. They receive all messages that the server sends meanwhile
/// at once.
///
/// The test cannot wait for a state instead: the server sees when it writes to a socket, not when the bytes
/// have arrived at the other end. A pause that is too short lets the test pass without its interleaving, not
/// fail.
#[expect(clippy::disallowed_methods, reason = "blocking this thread is the purpose")]
fn block_the_clients() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Breaks the link of `client`, and prevents another connection until the returned fault is dropped.
async fn cut_off(
    server_fixture: &ServerFixture,
    client: &ConnectionManager,
) -> lockkeeper_testserver::ArmedFault {
    let session = server_fixture.sessions_of_actor()[0];
    let away =
        server_fixture.server.fault(When::connect().session(session).always(), Fault::DropConnectionBefore);
    let mut transitions = client.transitions();
    server_fixture.server.drop_connections();
    let broken = async {
        while matches!(client.state(), State::Connected(_)) {
            transitions.next().await;
        }
    };
    within("the break of the link", broken).await.unwrap();
    away
}
