//! Work queues on a real server.

use lockkeeper::WorkQueue;
use lockkeeper_tests::Ensemble;

use crate::support::{children, connect, no_node_is_left};

const PATH: &str = "/queue";

#[tokio::test]
async fn a_fleet_does_each_item_once_although_takers_give_up() {
    let ensemble = Ensemble::lend().await.unwrap();
    let servers = ensemble.connect_string();
    let producer = connect(&servers).await;
    let queue = WorkQueue::<String>::new(&producer, PATH).unwrap();
    let values: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    queue.put_all(&values).await.unwrap();
    let mut takers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let queue = WorkQueue::<String>::new(&connect(&servers).await, PATH).unwrap();
        takers.spawn(async move {
            while let Some(item) = queue.try_take().await.unwrap() {
                if item.attempts() == 1 && item.value().ends_with('7') {
                    drop(item);
                    continue;
                }
                let path = format!("/done-{}-", item.value());
                item.done_with(|txn| txn.create_sequential(path, b"".to_vec())).await.unwrap();
            }
        });
    }
    takers.join_all().await;
    // An item that was given up last may have been free after the last look.
    while let Some(item) = queue.try_take().await.unwrap() {
        let path = format!("/done-{}-", item.value());
        item.done_with(|txn| txn.create_sequential(path, b"".to_vec())).await.unwrap();
    }
    let names = children(&ensemble, "/").await;
    let mut done: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("done-")?.get(..2)).collect();
    done.sort_unstable();
    assert_eq!(done, values);
    assert!(children(&ensemble, &format!("{PATH}/items")).await.is_empty());
    drop(queue);
    no_node_is_left(&ensemble, &format!("{PATH}/workers")).await;
}
