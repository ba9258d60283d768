//! Registrations and groups: at most one node, ours in the current session, through every fault.

mod calls;
mod dropped;
mod faults;
mod group;
mod registration;
mod sessions;
mod unwatched;

use std::time::Duration;

use lockkeeper::presence::PresenceState;
use lockkeeper::znodes::Zxid;
use lockkeeper::{ConnectionManager, Registration, Watch};
use lockkeeper_testserver::machine::Machine;

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

pub(super) const PATH: &str = "/services/web/1";

pub(crate) async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

pub(super) fn register(manager: &ConnectionManager, data: &str) -> Registration {
    Registration::register(manager, PATH, data).unwrap()
}

/// The owner and the data of the node.
pub(super) fn node(machine: &Machine) -> Option<(i64, String)> {
    let node = machine.tree().node(PATH)?;
    let data = node.data.as_ref().map(|data| String::from_utf8_lossy(data).into_owned());
    Some((node.stat().ephemeral_owner, data.unwrap_or_default()))
}

pub(crate) fn newest_session(server_fixture: &ServerFixture) -> i64 {
    server_fixture.server.sessions().last().copied().unwrap()
}

pub(super) async fn registered(registration: &Registration) -> Zxid {
    within("the registration", registration.registered()).await.unwrap().unwrap()
}

pub(super) async fn gone(server_fixture: &ServerFixture) {
    let gone = server_fixture.server.wait_until(|machine| node(machine).is_none());
    within("the end of the node", gone).await.unwrap();
}

/// Waits for a state.
pub(super) async fn state_is(watch: &mut Watch<PresenceState>, wanted: impl Fn(PresenceState) -> bool) {
    let reached = async {
        while !wanted(watch.state()) {
            if watch.changed().await.is_err() {
                break;
            }
        }
    };
    within("the state", reached).await.unwrap();
    assert!(wanted(watch.state()), "the last state is {}", watch.state());
}
