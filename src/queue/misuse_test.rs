//! Arguments that cannot be right are refused, with what to do, before anything is sent.

use lockkeeper_testserver::TestServer;

use super::{LockQueue, MultiQueue, Rule};
use crate::error::{ConfigError, Error};
use crate::manager::ConnectionManager;
use crate::znode::name::Label;

async fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::connect(&server.connect_string()).await.unwrap()
}

fn queue(manager: &ConnectionManager, path: &str) -> LockQueue {
    LockQueue::new(manager, path.parse().unwrap(), Label::LOCK, Rule::MUTEX).unwrap()
}

/// The value that the setting was refused for.
fn refused(error: &Error, setting: &str) -> String {
    match error {
        Error::Config(ConfigError::Setting { name, value, .. }) if *name == setting => value.clone(),
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn queues_of_several_managers_are_not_entered_together() {
    let server = TestServer::start().await.unwrap();
    let (one, other) = (connect(&server).await, connect(&server).await);

    let error = MultiQueue::new(vec![queue(&one, "/a"), queue(&other, "/b")]).unwrap_err();
    assert_eq!(refused(&error, "queues"), "of several managers");
    let error = MultiQueue::new(Vec::new()).unwrap_err();
    assert_eq!(refused(&error, "queues"), "empty");
    assert!(MultiQueue::new(vec![queue(&one, "/a"), queue(&one, "/b")]).is_ok());
}
