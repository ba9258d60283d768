//! A revoker acts on the nodes that were shown.

use lockkeeper::inspect::Role;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Mutex, Revoker};

use crate::server_fixture::servers;

#[tokio::test]
async fn a_later_node_of_the_same_name_is_neither_asked_nor_deleted() {
    let server = servers().start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let shown = mutex.inspect().await.unwrap().holders().next().unwrap().clone();
    let path = guard.path().to_owned();
    guard.release().await.unwrap();
    manager.znodes().create(&path, "later", CreateMode::Ephemeral).await.unwrap();

    let revoker = Revoker::new(&manager);
    assert_eq!(revoker.ask([&shown]).await.unwrap(), []);
    assert_eq!(revoker.force_release([&shown]).await.unwrap(), []);
    let (data, _) = manager.znodes().read(&path).await.unwrap().unwrap();
    assert_eq!(data, b"later");
}

#[tokio::test]
async fn a_node_whose_data_was_written_since_is_still_the_node_that_was_shown() {
    let server = servers().start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    let guard = mutex.acquire().await.unwrap();
    let shown = mutex.inspect().await.unwrap().holders().next().unwrap().clone();
    let revoker = Revoker::new(&manager);
    assert_eq!(revoker.ask([&shown]).await.unwrap().len(), 1);
    guard.revoke_requested().await.unwrap();
    assert_eq!(revoker.force_release([&shown]).await.unwrap()[0].role(), Role::Holder);
    guard.lost().await;
}
