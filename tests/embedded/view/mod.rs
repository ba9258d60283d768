//! Views: what they show, through every fault, and beside locks.

mod bounds;
mod faults;
mod following;
mod histories;
mod locks;
mod points;
mod scopes;
mod states;
mod witness;

use std::time::Duration;

use lockkeeper::error::Refusal;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, Error};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

pub(super) const ROOT: &str = "/tree";

pub(super) async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

/// The session that the views of a client have: the newest of the server.
pub(super) fn newest_session(server_fixture: &ServerFixture) -> i64 {
    server_fixture.server.sessions().last().copied().unwrap()
}

/// Creates the node or writes it, until that is confirmed.
pub(super) async fn put(manager: &ConnectionManager, path: &str, data: &str) {
    let znodes = manager.znodes();
    loop {
        let put = match znodes.create(path, data, CreateMode::Persistent).await {
            Err(Error::Refused { refusal: Refusal::NodeExists, .. }) => {
                znodes.write(path, data, Version::Any).await.map(|_| ())
            }
            created => created.map(|_| ()),
        };
        match put {
            // A fault may have broken this link, too.
            Err(error) if error.outcome_unknown() || error.is_transient() => {}
            put => return put.unwrap(),
        }
    }
}

/// Deletes the node, until that is confirmed.
pub(super) async fn remove(manager: &ConnectionManager, path: &str) {
    loop {
        match manager.znodes().delete(path).await {
            Err(error) if error.outcome_unknown() || error.is_transient() => {}
            removed => {
                removed.unwrap();
                return;
            }
        }
    }
}

/// Until a wait that may take several attempts is over.
pub(super) async fn soon<T>(what: &str, work: impl Future<Output = Result<T, Error>>) -> T {
    within(what, work).await.unwrap().unwrap()
}
