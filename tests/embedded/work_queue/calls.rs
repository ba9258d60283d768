//! What each call does while nothing fails.

use std::time::Duration;

use lockkeeper::error::{ConfigError, WorkQueueError};
use lockkeeper::{Error, WorkQueue};

use super::{ITEMS, client, drain, items, put, queue, server, take, write, written};
use crate::limit::{gives_up, within};
use crate::server_fixture::{LOCK, children};

#[tokio::test]
async fn one_taker_takes_the_items_by_priority_and_then_in_the_order_of_the_puts() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    put(&queue, &["a", "b"]).await;
    queue.put_all(&["c".to_owned(), "d".to_owned()]).await.unwrap();
    queue.put_with(&"urgent".to_owned(), 0).await.unwrap();
    queue.put_with(&"idle".to_owned(), 999).await.unwrap();
    let mut order = Vec::new();
    while let Some(item) = queue.try_take().await.unwrap() {
        assert!(item.is_valid() && item.attempts() == 1);
        order.push(item.value().clone());
        item.done().await.unwrap();
    }
    assert_eq!(order, ["urgent", "a", "b", "c", "d", "idle"]);
    assert_eq!(server_fixture.server.inspect(items), Vec::<String>::new());
}

#[tokio::test]
async fn an_item_that_is_given_up_is_free_at_its_old_place() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    put(&here, &["a", "b"]).await;
    let first = take(&here).await;
    let second = take(&there).await;
    assert_eq!((first.value().as_str(), second.value().as_str()), ("a", "b"));
    assert!(there.try_take().await.unwrap().is_none());
    let token = first.fencing_token();
    drop(first);
    let again = take(&here).await;
    assert_eq!((again.value().as_str(), again.attempts()), ("a", 2));
    assert!(again.fencing_token() > token);
    again.release().await.unwrap();
    let again = take(&there).await;
    assert_eq!((again.value().as_str(), again.attempts()), ("a", 3));
    write(again).await.unwrap();
    write(second).await.unwrap();
    assert_eq!(written(&server_fixture), ["a", "b"]);
}

#[tokio::test]
async fn a_claim_by_a_worker_that_is_newer_than_the_list_counts() {
    let server_fixture = server().await;
    let there = queue(&server_fixture.rival);
    let values: Vec<String> = (0..20).map(|number| format!("{number:02}")).collect();
    there.put_all(&values).await.unwrap();
    // From here on it takes by this list.
    take(&there).await.done().await.unwrap();
    let second = take(&queue(&client(&server_fixture).await)).await;
    assert_eq!(second.value(), "01");
    let third = take(&there).await;
    assert_ne!(third.value(), second.value(), "two have one item");
    assert!(second.is_valid());
}

#[tokio::test]
async fn a_taker_waits_for_a_put_and_for_an_item_that_is_given_up() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    let waiting = tokio::spawn({
        let here = here.clone();
        async move { here.take().await.unwrap() }
    });
    server_fixture.queue_length_becomes(1).await.unwrap();
    put(&there, &["a"]).await;
    let item = within("the item", waiting).await.unwrap().unwrap();
    let waiting = tokio::spawn(async move { there.take().await.unwrap() });
    // The worker that has put, the one that has the item, and the one that waits.
    server_fixture.queue_length_becomes(2).await.unwrap();
    drop(item);
    let item = within("the item", waiting).await.unwrap().unwrap();
    assert_eq!(item.value(), "a");
}

#[tokio::test]
async fn many_takers_of_several_processes_do_each_item_once() {
    let server_fixture = server().await;
    let producer = queue(&server_fixture.rival);
    let values: Vec<String> = (0..60).map(|number| format!("{number:02}")).collect();
    for values in values.chunks(7) {
        producer.put_all(values).await.unwrap();
    }
    let mut takers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let queue = queue(&client(&server_fixture).await);
        for _ in 0..4 {
            let queue = queue.clone();
            takers.spawn(async move {
                let mut count = 0;
                while let Some(item) = queue.try_take().await.unwrap() {
                    write(item).await.unwrap();
                    count += 1;
                }
                count
            });
        }
    }
    let counts = within("the takers", takers.join_all()).await.unwrap();
    assert_eq!(counts.iter().sum::<usize>(), 60);
    assert_eq!(written(&server_fixture), values);
    assert_eq!(server_fixture.server.inspect(items), Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_write_leaves_the_item_in_the_queue() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    put(&queue, &["a"]).await;
    let item = take(&queue).await;
    let refused = item.done_with(|txn| txn.set("/nowhere", b"".to_vec(), -1)).await.unwrap_err();
    let Error::NotCommitted(refused) = refused else { panic!("{refused}") };
    assert!(refused.to_string().contains("write 0, write /nowhere"), "{refused}");
    drain(&queue).await;
    assert_eq!(written(&server_fixture), ["a"]);
    put(&queue, &["b"]).await;
    let item = take(&queue).await;
    assert!(server_fixture.server.delete_node(item.path()));
    let deleted = item.done().await.unwrap_err();
    assert!(matches!(deleted.recipe(), Some(WorkQueueError::Deleted { .. })), "{deleted}");
}

#[tokio::test]
async fn a_full_queue_refuses_and_has_room_again_when_an_item_is_done() {
    let server_fixture = server().await;
    let queue = queue(&server_fixture.rival).with_capacity(2).unwrap();
    put(&queue, &["a", "b"]).await;
    for values in [vec!["c".to_owned()], vec!["c".to_owned(), "d".to_owned()]] {
        let full = queue.put_all(&values).await.unwrap_err();
        let Some(WorkQueueError::Full { items: 2, capacity: 2, .. }) = full.recipe() else {
            panic!("{full}")
        };
        assert!(full.is_transient());
    }
    take(&queue).await.done().await.unwrap();
    put(&queue, &["c"]).await;
}

#[tokio::test]
async fn bad_input_is_refused_before_any_request() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let requests = server_fixture.server.transcript();
    assert!(matches!(WorkQueue::<String>::new(&manager, "/"), Err(Error::Config(_))));
    let queue = queue(&manager);
    for capacity in [0, 1_000_001, u32::MAX] {
        let refused = queue.clone().with_capacity(capacity).unwrap_err();
        let is_named = matches!(&refused, Error::Config(ConfigError::Setting { name: "capacity", .. }));
        assert!(is_named, "{refused}");
    }
    let large = "x".repeat(600 * 1024);
    let half = "x".repeat(400 * 1024);
    for refused in [
        queue.put_with(&"a".to_owned(), 1_000).await,
        queue.put(&large).await,
        queue.put_all(&[half.clone(), half.clone(), half]).await,
    ] {
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    queue.put_all(&[]).await.unwrap();
    let of_queue = |path: &String| path.starts_with(LOCK);
    assert!(!requests.passed().iter().any(|passed| passed.paths.iter().any(of_queue)));
}

#[tokio::test]
async fn data_that_is_no_value_is_an_error_that_names_the_item() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    WorkQueue::<Vec<u8>>::new(&manager, LOCK).unwrap().put(&vec![0xff]).await.unwrap();
    let queue = queue(&manager);
    let unreadable = queue.try_take().await.unwrap_err();
    let Some(WorkQueueError::Unreadable { path, .. }) = unreadable.recipe() else { panic!("{unreadable}") };
    assert!(path.as_str().starts_with(ITEMS), "{path}");
}

#[tokio::test]
async fn a_wait_ends_with_its_time_and_with_a_shutdown() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let queue = queue(&manager);
    let wait = async |timeout| queue.take_timeout(timeout).await.unwrap_err();
    let refused = gives_up("waiting for an item", wait).await;
    assert!(refused.is_timeout(), "{refused}");
    assert!(queue.take_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    let waiting = tokio::spawn(async move { (queue.take().await.err(), queue.put(&"a".to_owned()).await) });
    server_fixture.queue_length_becomes(1).await.unwrap();
    manager.shutdown().await.unwrap();
    let (take, put) = within("the end", waiting).await.unwrap().unwrap();
    assert!(take.is_some_and(|error| error.is_closed()) && put.unwrap_err().is_closed());
    server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_worker_that_is_not_needed_leaves_no_node() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    put(&queue, &["a"]).await;
    drop(queue);
    server_fixture.queue_length_becomes(0).await.unwrap();
    let records = |machine: &lockkeeper_testserver::machine::Machine| {
        children(machine, &format!("{LOCK}/records")).is_empty()
    };
    within("no record", server_fixture.server.wait_until(records)).await.unwrap();
}

#[tokio::test]
async fn a_try_does_not_wait_for_a_call_of_its_process_that_waits() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let patient = manager.with_operation_timeout(Duration::from_secs(600)).unwrap();
    let queue = queue(&patient);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await.unwrap() }
    });
    server_fixture.queue_length_becomes(1).await.unwrap();
    assert!(within("a try", queue.try_take()).await.unwrap().unwrap().is_none());
    put(&queue, &["a"]).await;
    within("the item", waiting).await.unwrap().unwrap().done().await.unwrap();
}
