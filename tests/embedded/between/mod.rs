//! What happens between two steps of a recipe, where no fault at one request can put it. Each of these interleavings
//! takes away what one rule is there for.

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
mod starts;

use std::time::Duration;

/// What the server sends meanwhile, the clients of this test see all at once: they are tasks of its only thread.
#[expect(clippy::disallowed_methods, reason = "it is this thread that is to stand still")]
fn hold_the_clients_up() {
    std::thread::sleep(Duration::from_millis(50));
}
