//! Barriers, under the faults of the embedded server.

mod cost;
mod double;
mod faults;
mod measured;
mod single;

use lockkeeper::{ConnectionManager, DoubleBarrier};
use lockkeeper_testserver::machine::Machine;

use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder, children};

/// The double barrier of a test.
const BARRIER: &str = "/barriers/step";

/// A client whose session outlasts the faults.
async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let servers = server_fixture.server.connect_string();
    builder(&servers).session_timeout(SESSION * 20).connect().await.unwrap()
}

fn member(manager: &ConnectionManager, count: u32, id: &str) -> DoubleBarrier {
    DoubleBarrier::new(manager, BARRIER, count).unwrap().with_id(id).unwrap()
}

/// The members' nodes.
fn members(machine: &Machine) -> Vec<String> {
    children(machine, BARRIER).into_iter().filter(|name| name != "ready").collect()
}

fn is_open(machine: &Machine) -> bool {
    children(machine, BARRIER).iter().any(|name| name == "ready")
}

async fn members_become(server_fixture: &ServerFixture, count: usize) {
    let reached = server_fixture.server.wait_until(|machine| members(machine).len() == count);
    within(&format!("{count} members"), reached).await.unwrap();
}
