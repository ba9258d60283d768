//! Queues with the nodes of Curator and kazoo: data that is no item, several in one node, failures, times,
//! and what the nodes have no place for.

use std::time::{Duration, SystemTime};

use lockkeeper::error::WorkQueueError;
use lockkeeper::work_queue::ItemState;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{Error, WorkQueue};
use lockkeeper_testserver::{Fault, Op, When};

use super::layouts::{create, curators, data_of, put_by_peer};
use super::{Layout, Queue, client, drain, put, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::queue_nodes;

#[tokio::test]
async fn an_item_that_cannot_be_read_is_reported_and_stops_no_taker() {
    let server_fixture = server().await;
    let layout = Layout::Curator;
    let queue = layout.queue(&client(&server_fixture).await);
    let bad = put_by_peer(&server_fixture, layout, "queue-", b"no item").await;
    for value in ["a", "b"] {
        put_by_peer(&server_fixture, layout, "queue-", &curators(&[value])).await;
    }
    let unreadable = queue.try_take().await.unwrap_err();
    let Some(WorkQueueError::Unreadable { path, .. }) = unreadable.recipe() else { panic!("{unreadable}") };
    assert_eq!(path.as_str(), bad);
    drain(&queue).await;
    assert_eq!(written(&server_fixture), ["a", "b"]);
    let (data, stat) = server_fixture.rival.znodes().read(&bad).await.unwrap().unwrap();
    assert_eq!((data, stat.version), (b"no item".to_vec(), 0));
    // Once it was put right, it is an item as any other. A minute later this process looks again.
    server_fixture.rival.znodes().write(&bad, curators(&["c"]), Version::Any).await.unwrap();
    drain(&layout.queue(&server_fixture.rival)).await;
    assert_eq!(written(&server_fixture), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_node_with_several_items_becomes_as_many_and_one_with_none_goes() {
    for (layout, name) in
        [(Layout::Curator, "queue-"), (Layout::Priority, "queue-100000001"), (Layout::Id, "queue-|a|")]
    {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await).with_max_attempts(3).unwrap();
        put_by_peer(&server_fixture, layout, name, &curators(&["a", "b", "c"])).await;
        put_by_peer(&server_fixture, layout, name, &curators(&[])).await;
        let mut values = Vec::new();
        while let Some(item) = queue.try_take().await.unwrap() {
            assert!(item.path().name().starts_with(name), "{item:?}");
            values.push(item.value().clone());
            write(item).await.unwrap();
        }
        assert_eq!(values, ["a", "b", "c"]);
        assert_eq!(written(&server_fixture), ["a", "b", "c"]);
    }
}

#[tokio::test]
async fn a_node_with_several_items_that_another_client_has_claimed_stays() {
    let server_fixture = server().await;
    let layout = Layout::Curator;
    let queue = layout.queue(&client(&server_fixture).await);
    let item = put_by_peer(&server_fixture, layout, "queue-", &curators(&["a", "b"])).await;
    let session = server_fixture.sessions_of_actor()[0];
    let when = When::op(Op::Multi).path(&format!("{}/queue-*", layout.claims())).session(session);
    let held = server_fixture.server.fault(when, Fault::HoldRequest);
    let taking = tokio::spawn(async move { queue.try_take().await.unwrap() });
    within("the split", held.hit()).await.unwrap();
    let claim = format!("{}/{}", layout.claims(), item.rsplit('/').next().unwrap());
    create(&server_fixture.rival, &claim, b"", CreateMode::Ephemeral).await;
    held.release();
    assert!(within("the try", taking).await.unwrap().unwrap().is_none());
    assert!(server_fixture.rival.znodes().read(&item).await.unwrap().is_some());
    assert!(server_fixture.rival.znodes().read(&claim).await.unwrap().is_some());
}

#[tokio::test]
async fn an_item_that_fails_too_often_moves_below_the_claims_and_back() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await).with_max_attempts(2).unwrap();
        let data = data_of(layout, "a");
        put_by_peer(&server_fixture, layout, layout.name(), &data).await;
        assert!(!take(&queue).await.fail("no disk").await.unwrap());
        take(&queue).await.release().await.unwrap();
        // Its last taker has ended without a word.
        assert!(within("a try", queue.try_take()).await.unwrap().unwrap().is_none());
        let seen = queue.inspect().await.unwrap();
        assert_eq!((seen.item_count, seen.failed_count), (0, 1), "{seen}");
        assert!(queue.requeue(&seen.failed[0].path).await.unwrap());
        let item = take(&queue).await;
        let (again, _) = server_fixture.rival.znodes().read(item.path()).await.unwrap().unwrap();
        assert_eq!((item.attempts(), again), (1, data));
        assert!(!item.fail("no disk").await.unwrap());
        assert!(take(&queue).await.fail("no disk again").await.unwrap());
        let seen = queue.inspect().await.unwrap();
        assert!(seen.failed[0].failures[0].ends_with("no disk again"), "{seen}");
        assert_eq!(seen.item_count, 0);
    }
}

#[tokio::test]
async fn an_item_of_a_delay_queue_is_not_taken_before_its_time_and_can_be_put_off() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let queue = Layout::Delay.queue(&manager);
    put(&queue, &["now"]).await;
    let item = take(&queue).await;
    let (_, stat) = server_fixture.rival.znodes().read(item.path()).await.unwrap().unwrap();
    let later = Duration::from_secs(20);
    let due = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.mtime).unwrap()) + later;
    item.retry_at(due).await.unwrap();
    queue.put_at(&"later".to_owned(), due + Duration::from_millis(1)).await.unwrap();
    assert!(queue.try_take().await.unwrap().is_none());
    let seen = queue.inspect().await.unwrap();
    assert_eq!(seen.items[0].state, ItemState::Delayed(due), "{seen}");
    server_fixture.server.advance_clock(later + Duration::from_secs(1));
    for value in ["now", "later"] {
        // The answer tells this process the time of the servers.
        manager.znodes().create(&format!("/{value}"), b"", CreateMode::Persistent).await.unwrap();
        let item = within("the item", queue.take()).await.unwrap().unwrap();
        assert_eq!((item.value().as_str(), item.attempts()), (value, 1));
        item.done().await.unwrap();
    }
}

#[tokio::test]
async fn what_the_nodes_have_no_place_for_is_refused_before_any_request() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let value = "a".to_owned();
    let requests = server_fixture.server.transcript();
    let refused = [
        Layout::Curator.queue(&manager).put_with(&value, 1).await,
        Layout::Curator.queue(&manager).put_at(&value, SystemTime::now()).await,
        Layout::Curator.queue(&manager).put_once(&value, "a").await.map(drop),
        Layout::Priority.queue(&manager).put_with(&value, 1_000).await,
        Layout::Id.queue(&manager).put(&value).await,
        Layout::Kazoo.queue(&manager).put_at(&value, SystemTime::now()).await,
        WorkQueue::<String>::in_curator_layout(&manager, "/a", "/a").map(drop),
        WorkQueue::<String>::in_curator_layout(&manager, "/a", "/").map(drop),
        WorkQueue::<String>::in_kazoo_layout(&manager, "/").map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Config(_))), "{refused:?}");
    }
    let of_queue = |path: &String| path.starts_with("/locks") || path.starts_with("/curator-queue");
    assert!(!requests.passed().iter().any(|passed| passed.paths.iter().any(of_queue)), "a request was sent");
    let queue = Layout::Kazoo.queue(&manager);
    put(&queue, &["a"]).await;
    let refused = take(&queue).await.retry_at(SystemTime::now()).await.unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
    drain(&queue).await;
    assert_eq!(written(&server_fixture), ["a"]);
}

#[tokio::test]
async fn the_directory_of_the_claims_is_none_that_the_servers_delete() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue: Queue = layout.queue(&client(&server_fixture).await);
        assert!(queue.try_take().await.unwrap().is_none());
        drop(queue);
        within("no worker", server_fixture.server.wait_until(|machine| queue_nodes(machine).is_empty()))
            .await
            .unwrap();
        server_fixture.server.reap();
        let (_, stat) = server_fixture.rival.znodes().read(layout.claims()).await.unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner, 0, "a container");
    }
}

#[tokio::test]
async fn a_directory_of_the_claims_that_another_client_deletes_is_made_again() {
    let server_fixture = server().await;
    let layout = Layout::Kazoo;
    let queue = layout.queue(&client(&server_fixture).await);
    put(&queue, &["a", "b"]).await;
    write(take(&queue).await).await.unwrap();
    assert!(server_fixture.rival.znodes().delete(layout.claims()).await.unwrap());
    write(take(&queue).await).await.unwrap();
    assert_eq!(written(&server_fixture), ["a", "b"]);
}
