//! Faults between the grant in one queue and the grant in another.

use lockkeeper::{MultiLock, Mutex};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const FIRST: &str = "/several/a";
const SECOND: &str = "/several/b";

#[tokio::test]
async fn a_member_whose_node_was_deleted_during_the_wait_for_another_is_not_held() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (first, second) = (
        Mutex::new(&server_fixture.rival, FIRST).unwrap(),
        Mutex::new(&server_fixture.rival, SECOND).unwrap(),
    );
    let held = first.acquire().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let both = MultiLock::builder()
        .lock(&Mutex::new(&actor, FIRST).unwrap())
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .atomic()
        .build()
        .unwrap();
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    let queues = |one: usize, two: usize| {
        server_fixture.server.wait_until(move |machine| {
            (children(machine, FIRST).len(), children(machine, SECOND).len()) == (one, two)
        })
    };
    within("a node in both queues", queues(2, 1)).await.unwrap();
    // The waiter watches its predecessor and its own node.
    within("its watches", server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2))
        .await
        .unwrap();
    let mine = server_fixture.server.inspect(|machine| format!("{SECOND}/{}", children(machine, SECOND)[0]));
    assert!(server_fixture.server.delete_node(&mine));
    let taken = second.acquire().await.unwrap();
    held.release().await.unwrap();
    within("a node in both queues again", queues(1, 2)).await.unwrap();
    assert!(!taking.is_finished() && taken.is_valid());
    taken.release().await.unwrap();
    within("both", taking).await.unwrap().unwrap().release().await.unwrap();
}
