//! Watches of several kinds on one path: what they do to each other within one session, and in two.

use crate::protocol::on_both;
use crate::raw::{Body, Conn, Event, op};

const CREATED: i32 = 1;
const DELETED: i32 = 2;
const DATA_CHANGED: i32 = 3;
const CHILDREN_CHANGED: i32 = 4;

/// A request that leaves a watch on `/d`.
type Watch = (i32, Body);

fn recursive() -> Watch {
    (op::ADD_WATCH, Body::version("/d", 1))
}

fn persistent() -> Watch {
    (op::ADD_WATCH, Body::version("/d", 0))
}

fn data() -> Watch {
    (op::GET_DATA, Body::watch("/d", true))
}

fn children() -> Watch {
    (op::GET_CHILDREN2, Body::watch("/d", true))
}

fn events<const N: usize>(events: [(i32, &str); N]) -> Vec<Event> {
    events.map(|(kind, path)| (kind, path.to_owned())).to_vec()
}

/// Writes `/d` twice, and creates and deletes two children.
async fn history(writer: &mut Conn) {
    for (op, body) in [
        (op::SET_DATA, Body::set("/d", b"1", -1)),
        (op::CREATE, Body::create("/d/x", 0)),
        (op::SET_DATA, Body::set("/d", b"2", -1)),
        (op::DELETE, Body::version("/d/x", -1)),
    ] {
        writer.ok(op, &body).await;
    }
}

#[tokio::test]
async fn the_last_watch_of_a_session_on_a_path_replaces_the_earlier_ones() {
    let all_below =
        events([(DATA_CHANGED, "/d"), (CREATED, "/d/x"), (DATA_CHANGED, "/d"), (DELETED, "/d/x")]);
    let cases = [
        // A view alone.
        (vec![recursive()], all_below.clone()),
        // The watch of a lock on its directory, and then a view: the lock never learns of the children.
        (vec![children(), recursive()], all_below),
        // A view, and then the watch of a lock on the data of its directory: the view misses a create and a
        // write.
        (vec![recursive(), data()], events([(DATA_CHANGED, "/d"), (DELETED, "/d/x")])),
        // A view of a tree, and then a view of its root: the tree has no events any more.
        (
            vec![recursive(), persistent()],
            events([
                (DATA_CHANGED, "/d"),
                (CHILDREN_CHANGED, "/d"),
                (DATA_CHANGED, "/d"),
                (CHILDREN_CHANGED, "/d"),
            ]),
        ),
    ];
    on_both(async |at| {
        for (number, (watches, expected)) in cases.iter().enumerate() {
            let (mut client, mut writer) = (Conn::new(at, 4000).await, Conn::new(at, 4000).await);
            writer.ok(op::CREATE, &Body::create("/d", 0)).await;
            for (op, body) in watches {
                client.ok(*op, body).await;
            }
            history(&mut writer).await;
            assert_eq!(&client.drain().await.unwrap(), expected, "case {number}");
            writer.ok(op::DELETE, &Body::version("/d", -1)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_watches_of_two_sessions_on_one_path_leave_each_other_alone() {
    on_both(async |at| {
        let (mut view, mut lock) = (Conn::new(at, 4000).await, Conn::new(at, 4000).await);
        let mut writer = Conn::new(at, 4000).await;
        writer.ok(op::CREATE, &Body::create("/d", 0)).await;
        let (lists, tree, nodes) = (children(), recursive(), data());
        lock.ok(lists.0, &lists.1).await;
        view.ok(tree.0, &tree.1).await;
        lock.ok(nodes.0, &nodes.1).await;
        history(&mut writer).await;
        let below =
            events([(DATA_CHANGED, "/d"), (CREATED, "/d/x"), (DATA_CHANGED, "/d"), (DELETED, "/d/x")]);
        assert_eq!(view.drain().await.unwrap(), below);
        assert_eq!(lock.drain().await.unwrap(), events([(DATA_CHANGED, "/d"), (CHILDREN_CHANGED, "/d")]));
        writer.ok(op::DELETE, &Body::version("/d", -1)).await;
    })
    .await;
}
