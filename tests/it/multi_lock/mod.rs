//! Several locks at once, on a real server.

mod faults;
mod members;
mod refused;
mod requests;
mod waiting;

use lockkeeper::{ConnectionManager, MultiLock, Mutex};
use lockkeeper_tests::{Ensemble, LentEnsemble, OpCode, Proxies};

use crate::support::connect;

fn mutex(manager: &ConnectionManager, name: &str) -> Mutex {
    Mutex::new(manager, format!("/multi/{name}").as_str()).unwrap()
}

fn mutexes(manager: &ConnectionManager, names: &[&str]) -> Vec<Mutex> {
    names.iter().map(|name| mutex(manager, name)).collect()
}

fn all_of(locks: &[Mutex]) -> MultiLock {
    locks.iter().fold(MultiLock::builder(), |builder, lock| builder.lock(lock)).build().unwrap()
}

fn all_atomic(locks: &[Mutex]) -> MultiLock {
    locks.iter().fold(MultiLock::builder(), |builder, lock| builder.lock(lock)).atomic().build().unwrap()
}

/// The requests that were sent, without the confirmations of the session, which are transactions of checks
/// only.
fn asked(proxies: &Proxies) -> Vec<OpCode> {
    let log = proxies.log();
    let changes = |parts: &[(OpCode, String)]| parts.iter().any(|(op, _)| *op != OpCode::Check);
    log.requests()
        .filter(|request| request.op != OpCode::Multi || changes(&request.parts))
        .map(|request| request.op)
        .collect()
}

async fn start() -> (LentEnsemble, ConnectionManager, ConnectionManager) {
    let ensemble = Ensemble::lend().await.unwrap();
    let one = connect(&ensemble.connect_string()).await;
    let other = connect(&ensemble.connect_string()).await;
    (ensemble, one, other)
}
