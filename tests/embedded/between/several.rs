//! Between the turn in one line and the turn in another.

use lockkeeper::{MultiLock, Mutex};

use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const FIRST: &str = "/several/a";
const SECOND: &str = "/several/b";

#[tokio::test]
async fn a_place_that_went_while_another_was_waited_for_is_not_held() {
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
    let in_lines = |one: usize, two: usize| {
        server_fixture.server.wait_until(move |machine| {
            (children(machine, FIRST).len(), children(machine, SECOND).len()) == (one, two)
        })
    };
    within("both in line", in_lines(2, 1)).await.unwrap();
    // Its watches: on who is in front, and on its own node.
    within("its watches", server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2))
        .await
        .unwrap();
    let mine = server_fixture.server.inspect(|machine| format!("{SECOND}/{}", children(machine, SECOND)[0]));
    assert!(server_fixture.server.delete_node(&mine));
    let taken = second.acquire().await.unwrap();
    held.release().await.unwrap();
    within("in line again, in both", in_lines(1, 2)).await.unwrap();
    assert!(!taking.is_finished() && taken.is_valid());
    taken.release().await.unwrap();
    within("both", taking).await.unwrap().unwrap().release().await.unwrap();
}
