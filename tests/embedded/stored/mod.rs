//! Stored values under the faults of the embedded server: plain transactions, single nodes, tables,
//! latches and migrations.

mod latch;
mod migrations;
mod table;
mod txn;
mod znodes;

use lockkeeper::ConnectionManager;
use lockkeeper_testserver::machine::Machine;

use crate::server_fixture::ServerFixture;

/// The data of a node, as the server has it.
fn data(machine: &Machine, path: &str) -> Option<Vec<u8>> {
    Some(machine.tree().node(path)?.data.clone()?.to_vec())
}

async fn started() -> (ServerFixture, ConnectionManager) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = server_fixture.actor().await.unwrap();
    (server_fixture, manager)
}
