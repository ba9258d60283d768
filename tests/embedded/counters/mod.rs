//! Counters, shared values and ids, under the faults of the embedded server.

mod answers;
mod cost;
mod creation;
mod fates;
mod histories;
mod ids;
mod next_session;
mod refusals;
mod sessions;
mod values;
mod versions;

use std::time::Duration;

use lockkeeper::{ConnectionManager, Counter, Error};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Op, When};

use crate::server_fixture::{SESSION, ServerFixture, builder, children};

/// The counter of a test.
const COUNTER: &str = "/counters/visits";

/// A client whose session outlasts the faults.
async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let builder = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 20);
    builder.connect().await.unwrap().with_operation_timeout(Duration::from_secs(60)).unwrap()
}

fn counter(manager: &ConnectionManager) -> Counter {
    Counter::new(manager, COUNTER).unwrap()
}

/// The transactions that change the counter.
fn change() -> When {
    When::op(Op::Multi).path(COUNTER)
}

/// The number in the node, as the server has it.
fn number_on(server_fixture: &ServerFixture) -> Option<i64> {
    server_fixture.server.inspect(|machine| {
        let data = machine.tree().node(COUNTER)?.data.clone()?;
        Some(i64::from_be_bytes(data.as_ref().try_into().unwrap()))
    })
}

/// The writer nodes of the counter.
fn writers(machine: &Machine) -> Vec<String> {
    children(machine, COUNTER)
}

/// Adds one `count` times, and returns the sums.
async fn add_ones(counter: &Counter, count: usize) -> Result<Vec<i64>, Error> {
    let mut sums = Vec::new();
    for _ in 0..count {
        sums.push(counter.increment().await?);
    }
    Ok(sums)
}
