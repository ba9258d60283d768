//! Ephemeral nodes with chosen names, which transactions of a hold create.

use lockkeeper::ConnectionManager;
use lockkeeper::znodes::CreateMode;
use lockkeeper_core::{Deadline, Hold, HoldExt, Label, LockQueue, NamedNode, Rule, ZnodePath};
use tokio::sync::oneshot;

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, queue_nodes};

const PATH: &str = "/claims/a";

async fn hold(manager: &ConnectionManager) -> Hold {
    manager.znodes().ensure("/claims").await.unwrap();
    LockQueue::new(manager, LOCK, Label::LOCK, Rule::MUTEX).unwrap().acquire(Deadline::never()).await.unwrap()
}

/// A named node, and what resolves when no node of its session is at the path.
fn named(held: &Hold) -> (NamedNode, oneshot::Receiver<()>) {
    let (said, gone) = oneshot::channel();
    let path: ZnodePath = PATH.parse().unwrap();
    let say = move || {
        let _ = said.send(());
    };
    (held.named_node(&path, say).unwrap(), gone)
}

async fn create(held: &Hold) {
    held.txn().create_with(PATH, b"", CreateMode::Ephemeral).commit().await.unwrap();
}

async fn exists(server_fixture: &ServerFixture) -> bool {
    server_fixture.rival.znodes().read(PATH).await.unwrap().is_some()
}

#[tokio::test]
async fn a_named_node_in_doubt_is_searched_for_behind_the_end_of_its_hold() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = hold(&server_fixture.actor().await.unwrap()).await;
    let (mut node, gone) = named(&held);
    node.set_in_doubt(true);
    create(&held).await;
    drop(node);
    within("the delete", gone).await.unwrap().unwrap();
    assert!(!exists(&server_fixture).await);
    assert_eq!(server_fixture.server.inspect(queue_nodes), Vec::<String>::new(), "a late create is applied");
}

#[tokio::test]
async fn a_named_node_that_exists_is_deleted_and_its_hold_stays() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = hold(&server_fixture.actor().await.unwrap()).await;
    let (node, gone) = named(&held);
    create(&held).await;
    drop(node);
    within("the delete", gone).await.unwrap().unwrap();
    assert!(!exists(&server_fixture).await && held.is_valid());
}

#[tokio::test]
async fn a_named_node_of_another_session_stays() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = hold(&server_fixture.actor().await.unwrap()).await;
    let (node, gone) = named(&held);
    server_fixture.rival.znodes().create(PATH, b"", CreateMode::Ephemeral).await.unwrap();
    drop(node);
    within("the search", gone).await.unwrap().unwrap();
    assert!(exists(&server_fixture).await);
}

#[tokio::test]
async fn a_named_node_that_is_forgotten_is_not_deleted() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let held = hold(&server_fixture.actor().await.unwrap()).await;
    let (node, gone) = named(&held);
    create(&held).await;
    node.forget();
    assert!(within("the end", gone).await.unwrap().is_err(), "a search");
    assert!(exists(&server_fixture).await);
}
