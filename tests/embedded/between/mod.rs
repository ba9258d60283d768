//! What happens between two steps of a recipe, where no fault at one request can put it. Each of these interleavings
//! takes away what one rule is there for.

mod authors;
mod confirmation;
mod directory;
mod handed;
mod in_flight;
mod line;
mod own;
mod permits;
mod reconnect;
mod released;
mod several;
mod shares;
mod starts;

use std::time::Duration;

use lockkeeper::{ConnectionManager, State};
use lockkeeper_testserver::{Fault, When};

use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// What the server sends meanwhile, the clients of this test see all at once: they are tasks of its only thread.
#[expect(clippy::disallowed_methods, reason = "it is this thread that is to stand still")]
fn hold_the_clients_up() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Breaks the link of `client`, and has no other one made until the answer is dropped.
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
