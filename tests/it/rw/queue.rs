//! The queue of a read/write lock, and which waiters a release wakes.

use futures::future::join_all;
use lockkeeper::RwLock;
use lockkeeper_tests::OpCode;
use tokio::sync::mpsc;

use super::{PATH, events, lock, processes, reading, sent, watches_become, writing};
use crate::support::{behind_proxy, connect, nodes_become};

#[tokio::test]
async fn readers_and_writers_are_granted_in_the_order_of_their_acquires() {
    let (ensemble, [one, two]) = processes().await;
    let held = one.write().await.unwrap();
    let (sender, mut served) = mpsc::unbounded_channel();
    // Two readers, a writer, a reader, two writers.
    for (place, reads) in [true, true, false, true, false, false].into_iter().enumerate() {
        let (lock, sender) = ([&one, &two][place % 2].clone(), sender.clone());
        tokio::spawn(async move {
            if reads {
                let guard = lock.read().await.unwrap();
                sender.send((place, guard.fencing_token())).unwrap();
                guard.release().await.unwrap();
            } else {
                let guard = lock.write().await.unwrap();
                sender.send((place, guard.fencing_token())).unwrap();
                guard.release().await.unwrap();
            }
        });
        nodes_become(&ensemble, PATH, place + 2).await;
    }
    let mut newest = held.fencing_token();
    held.release().await.unwrap();
    let mut order = Vec::new();
    let mut tokens = Vec::new();
    for _ in 0..6 {
        let (place, token) = served.recv().await.unwrap();
        order.push(place);
        tokens.push(token);
    }
    // Adjacent readers are granted in any order.
    order[..2].sort_unstable();
    tokens[..2].sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    for token in tokens {
        assert!(token > newest);
        newest = token;
    }
}

#[tokio::test]
async fn the_release_of_a_writer_wakes_only_the_waiters_that_it_blocked() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let (waiting, other) = (lock(&manager), lock(&connect(&ensemble.connect_string()).await));
    let [third, fourth, fifth]: [RwLock; 3] =
        join_all([(); 3].map(async |()| lock(&connect(&proxies.connect_string()).await)))
            .await
            .try_into()
            .unwrap();
    let held = other.write().await.unwrap();
    let (one, two) = (reading(&waiting), reading(&third));
    nodes_become(&ensemble, PATH, 3).await;
    let writer = writing(&fourth);
    nodes_become(&ensemble, PATH, 4).await;
    let late = reading(&fifth);
    // Each waiter watches its predecessor and its own node.
    watches_become(&proxies, 8).await;
    proxies.clear_log();
    held.release().await.unwrap();
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert_eq!(events(&proxies), 2, "the two readers, each by one event");
    assert_eq!(sent(&proxies), [], "no waiter sent a read");
    assert!(!writer.is_finished() && !late.is_finished());
    one.release().await.unwrap();
    two.release().await.unwrap();
    let writer = writer.await.unwrap();
    assert!(!late.is_finished());
    writer.release().await.unwrap();
    late.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn an_uncontended_acquire_of_either_side_is_one_round_trip() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let lock = lock(&manager);
    // From then on the client grants by sequence numbers, and watches the directory.
    for _ in 0..4 {
        lock.read().await.unwrap().release().await.unwrap();
    }
    proxies.clear_log();
    lock.read().await.unwrap().release().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Create2, OpCode::Delete]);
    proxies.clear_log();
    lock.write().await.unwrap().release().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Create2, OpCode::GetChildren, OpCode::Delete]);
    let log = proxies.log();
    let list = log.requests().find(|request| request.op == OpCode::GetChildren).unwrap();
    assert!(list.in_flight >= 1, "the list waited for the answer to the create");
}

#[tokio::test]
async fn a_dropped_reader_ahead_of_a_writer_grants_nothing() {
    let (ensemble, [one, two]) = processes().await;
    let held = one.read().await.unwrap();
    let writer = writing(&two);
    nodes_become(&ensemble, PATH, 2).await;
    let late = reading(&one);
    nodes_become(&ensemble, PATH, 3).await;
    late.abort();
    nodes_become(&ensemble, PATH, 2).await;
    assert!(held.is_valid() && !writer.is_finished());
    held.release().await.unwrap();
    writer.await.unwrap().release().await.unwrap();
}
