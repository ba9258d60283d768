//! Between the turn in one line and the turn in another.

use lockkeeper::{MultiLock, Mutex};

use crate::limit::within;
use crate::world::{World, children};

const FIRST: &str = "/several/a";
const SECOND: &str = "/several/b";

#[tokio::test]
async fn a_place_that_went_while_another_was_waited_for_is_not_held() {
    let world = World::start().await.unwrap();
    let (first, second) =
        (Mutex::new(&world.rival, FIRST).unwrap(), Mutex::new(&world.rival, SECOND).unwrap());
    let held = first.acquire_owned().await.unwrap();
    let actor = world.actor().await.unwrap();
    let both = MultiLock::builder()
        .lock(&Mutex::new(&actor, FIRST).unwrap())
        .lock(&Mutex::new(&actor, SECOND).unwrap())
        .atomic()
        .build()
        .unwrap();
    let taking = tokio::spawn(async move { both.acquire().await.unwrap() });
    let in_lines = |one: usize, two: usize| {
        world.server.wait_until(move |machine| {
            (children(machine, FIRST).len(), children(machine, SECOND).len()) == (one, two)
        })
    };
    within("both in line", in_lines(2, 1)).await.unwrap();
    // Its watches: on who is in front, and on its own node.
    within("its watches", world.server.wait_until(|machine| machine.watch_count(0) == 2)).await.unwrap();
    let mine = world.server.inspect(|machine| format!("{SECOND}/{}", children(machine, SECOND)[0]));
    assert!(world.server.delete_node(&mine));
    let taken = second.acquire_owned().await.unwrap();
    held.release().await.unwrap();
    within("in line again, in both", in_lines(1, 2)).await.unwrap();
    assert!(!taking.is_finished() && taken.is_valid());
    taken.release().await.unwrap();
    within("both", taking).await.unwrap().unwrap().release().await.unwrap();
}
