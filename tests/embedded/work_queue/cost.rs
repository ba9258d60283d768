//! How many requests an item costs.

use std::time::Duration;

use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{OPS, client, drain, put, queue, server, take, written};
use crate::server_fixture::{LOCK, children};

/// The directories of items.
fn directories(machine: &Machine) -> usize {
    children(machine, LOCK).into_iter().filter(|name| name.starts_with("items")).count()
}

#[tokio::test]
async fn an_item_is_put_by_two_requests_and_taken_by_three_at_most_whatever_the_number_of_directories() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await).with_shard_size(50);
    let values: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    for _ in 0..3 {
        queue.put_all(&values).await.unwrap();
    }
    take(&queue).await.done().await.unwrap();
    assert_eq!(server_fixture.server.inspect(directories), 3);
    let count = || {
        server_fixture.server.fault(
            When::ops(OPS).session(server_fixture.sessions_of_actor()[0]).always(),
            Fault::DelayReply(Duration::ZERO),
        )
    };
    let requests = count();
    for value in &values[..5] {
        queue.put(value).await.unwrap();
    }
    assert_eq!(requests.hits(), 10);
    requests.disarm();
    let requests = count();
    for _ in 0..5 {
        take(&queue).await.done().await.unwrap();
    }
    // Two each, and the reads: two, if the machine is fast.
    assert!((12..=15).contains(&requests.hits()), "{} requests", requests.hits());
}

#[tokio::test]
async fn a_put_is_one_request_where_there_is_room() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    queue.put(&String::new()).await.unwrap();
    let requests = server_fixture.server.fault(
        When::ops(OPS).session(server_fixture.sessions_of_actor()[0]).always(),
        Fault::DelayReply(Duration::ZERO),
    );
    for _ in 0..130 {
        queue.put(&String::new()).await.unwrap();
    }
    // Some reads of the number of items, and perhaps another worker.
    assert!((131..=145).contains(&requests.hits()), "{} requests", requests.hits());
}

#[tokio::test]
async fn a_put_that_meets_a_closed_directory_tries_once_more() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    // One read for many puts.
    put(&here, &["a", "b"]).await;
    put(&there.with_shard_size(1), &["c"]).await;
    assert_eq!(server_fixture.server.inspect(directories), 2);
    let puts = server_fixture.server.fault(
        When::op(Op::Multi).session(server_fixture.sessions_of_actor()[0]).always(),
        Fault::DelayReply(Duration::ZERO),
    );
    put(&here, &["d"]).await;
    assert_eq!(puts.hits(), 2);
    drain(&here).await;
    assert_eq!(written(&server_fixture), ["a", "b", "c", "d"]);
}
