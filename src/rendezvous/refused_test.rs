//! An invalid argument is refused before a request is sent, and the error says what to do.

use lockkeeper_testserver::TestServer;

use super::place::Rendezvous;
use crate::error::{ConfigError, Error};
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;

/// The value that the setting was refused for.
fn refused(error: &Error, setting: &str) -> String {
    match error {
        Error::Config(ConfigError::Setting { name, value, .. }) if *name == setting => value.clone(),
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_rendezvous_of_no_members_is_refused_before_a_node_is_created() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let place = Rendezvous::new(&manager, "/barrier").unwrap();
    let Err(error) = place.enter(0, Deadline::immediate()).await else { panic!("entered") };
    assert_eq!(refused(&error, "count"), "0");
    assert!(server.inspect(|machine| machine.tree().node("/barrier").is_none()));
}

#[tokio::test]
async fn the_root_is_no_place_for_a_rendezvous() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let Err(error) = Rendezvous::new(&manager, "/") else { panic!("made") };
    assert_eq!(refused(&error, "path"), "/");
}
