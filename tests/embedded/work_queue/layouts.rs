//! Queues with the nodes of Curator and kazoo: names, bytes, claims, and what others do on the same paths.

use std::time::{Duration, SystemTime};

use lockkeeper::error::WorkQueueError;
use lockkeeper::work_queue::ItemState;
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ConnectionManager, Error, WorkQueue};
use lockkeeper_testserver::{Fault, Op, When};

use super::{Layout, Queue, client, drain, put, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children, queue_nodes};

/// What Curator's serializer writes for one item.
fn curators(values: &[&str]) -> Vec<u8> {
    let mut data = vec![0, 1, 0, 1];
    for value in values {
        data.push(1);
        data.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        data.extend(value.as_bytes());
    }
    data.push(2);
    data
}

fn data_of(layout: Layout, value: &str) -> Vec<u8> {
    if layout == Layout::Kazoo { value.as_bytes().to_vec() } else { curators(&[value]) }
}

/// Creates a node of another client.
async fn create(by: &ConnectionManager, path: &str, data: &[u8], mode: CreateMode) -> String {
    by.znodes().create(path, data, mode).await.unwrap().to_string()
}

/// Puts an item as another client does.
async fn put_by_peer(server_fixture: &ServerFixture, layout: Layout, name: &str, data: &[u8]) -> String {
    let path = format!("{}/{name}", layout.items());
    create(&server_fixture.rival, &path, data, CreateMode::PersistentSequential).await
}

fn names(server_fixture: &ServerFixture, directory: &str) -> Vec<String> {
    server_fixture.server.inspect(|machine| children(machine, directory))
}

#[tokio::test]
async fn an_item_is_the_node_that_the_other_client_would_create() {
    let expected = [
        (Layout::Curator, "queue-0000000000"),
        (Layout::Priority, "queue-1000000070000000000"),
        (Layout::Delay, "queue-|0000000A|0000000000"),
        (Layout::Id, "queue-|a_b|0000000000"),
        (Layout::Kazoo, "entry-007-0000000000"),
    ];
    for (layout, name) in expected {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let value = "é".to_owned();
        match layout {
            Layout::Priority | Layout::Kazoo => queue.put_with(&value, 7).await.unwrap(),
            Layout::Delay => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_millis(10);
                queue.put_at(&value, time).await.unwrap();
            }
            Layout::Id => assert!(queue.put_once(&value, "a|b").await.unwrap()),
            _ => queue.put(&value).await.unwrap(),
        }
        let path = format!("{}/{name}", layout.items());
        let (data, stat) = server_fixture.rival.znodes().read(&path).await.unwrap().unwrap();
        assert_eq!((data, stat.ephemeral_owner), (data_of(layout, "é"), 0), "{layout:?}");
    }
}

#[tokio::test]
async fn a_claim_is_the_ephemeral_node_that_the_other_client_would_create() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let item = put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let taken = take(&queue).await;
        assert_eq!((taken.value().as_str(), taken.path().as_str(), taken.attempts()), ("a", &*item, 1));
        let claim = format!("{}/{}", layout.claims(), taken.path().name());
        let (_, stat) = server_fixture.rival.znodes().read(&claim).await.unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner, server_fixture.sessions_of_actor()[0]);
        let seen = queue.inspect().await.unwrap();
        assert!(matches!(seen.items[0].state, ItemState::Claimed { .. }), "{seen}");
        assert_eq!(seen.items[0].attempts, 1);
        write(taken).await.unwrap();
        assert_eq!(written(&server_fixture), ["a"]);
        assert!(names(&server_fixture, layout.items()).iter().all(|name| !item.ends_with(name)));
        assert!(names(&server_fixture, layout.claims()).iter().all(|name| !item.ends_with(name)));
    }
}

#[tokio::test]
async fn an_item_with_the_claim_of_another_client_is_taken_once_that_has_gone() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let item = put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let claim = format!("{}/{}", layout.claims(), item.rsplit('/').next().unwrap());
        create(&server_fixture.rival, &claim, b"", CreateMode::Ephemeral).await;
        assert!(queue.try_take().await.unwrap().is_none());
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.take().await.unwrap() }
        });
        assert!(server_fixture.rival.znodes().delete(&claim).await.unwrap());
        write(within("the item", waiting).await.unwrap().unwrap()).await.unwrap();
        assert_eq!(written(&server_fixture), ["a"]);
    }
}

#[tokio::test]
async fn a_claim_that_another_client_creates_after_the_list_counts() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let item = put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let session = server_fixture.sessions_of_actor()[0];
        let when = When::op(Op::Multi).path(&format!("{}/*", layout.claims())).session(session);
        let held = server_fixture.server.fault(when, Fault::HoldRequest);
        let taking = tokio::spawn({
            let queue = queue.clone();
            async move { queue.try_take().await.unwrap() }
        });
        within("the claim", held.hit()).await.unwrap();
        let claim = format!("{}/{}", layout.claims(), item.rsplit('/').next().unwrap());
        create(&server_fixture.rival, &claim, b"", CreateMode::Ephemeral).await;
        held.release();
        assert!(within("the try", taking).await.unwrap().unwrap().is_none(), "two have one item");
        assert!(server_fixture.rival.znodes().read(&claim).await.unwrap().is_some());
        assert_eq!(server_fixture.rival.znodes().read(&item).await.unwrap().unwrap().1.version, 0);
    }
}

#[tokio::test]
async fn an_item_that_is_dropped_or_released_is_free_at_its_old_place() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let (here, there) =
            (layout.queue(&client(&server_fixture).await), layout.queue(&server_fixture.rival));
        for value in ["a", "b"] {
            put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, value)).await;
        }
        let item = take(&here).await;
        let token = item.fencing_token();
        drop(item);
        // By this process too, once its claim has gone.
        let item = take(&here).await;
        assert_eq!((item.value().as_str(), item.attempts()), ("a", 2));
        assert!(item.fencing_token() > token);
        item.release().await.unwrap();
        let item = take(&there).await;
        assert_eq!((item.value().as_str(), item.attempts()), ("a", 3));
        assert!(!item.fail("no disk").await.unwrap());
        write(take(&here).await).await.unwrap();
        drain(&there).await;
        assert_eq!(written(&server_fixture), ["a", "b"]);
    }
}

#[tokio::test]
async fn an_item_whose_session_ends_is_done_by_another_and_by_no_other_client() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let (here, there) =
            (layout.queue(&client(&server_fixture).await), layout.queue(&server_fixture.rival));
        put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let item = take(&here).await;
        assert!(server_fixture.server.expire(server_fixture.sessions_of_actor()[0]));
        let again = take(&there).await;
        assert_eq!(again.attempts(), 2);
        let refused = write(item).await.unwrap_err();
        assert!(refused.is_lost(), "{refused}");
        // The end of the lost item has deleted no claim of another session.
        write(again).await.unwrap();
        assert_eq!(written(&server_fixture), ["a"]);
    }
}

#[tokio::test]
async fn an_item_that_another_client_ends_is_not_done_again() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let item = put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let taken = take(&queue).await;
        assert!(server_fixture.rival.znodes().delete(&item).await.unwrap());
        let deleted = write(taken).await.unwrap_err();
        assert!(matches!(deleted.recipe(), Some(WorkQueueError::Deleted { .. })), "{deleted}");
        assert_eq!(written(&server_fixture), Vec::<String>::new());
        let free = server_fixture.server.wait_until(|machine| {
            children(machine, layout.claims()).iter().all(|name| !item.ends_with(name))
        });
        within("no claim", free).await.unwrap();
    }
}

#[tokio::test]
async fn an_item_whose_claim_another_client_deletes_and_takes_is_not_done() {
    for (layout, is_taken) in
        Layout::OF_PEERS.into_iter().flat_map(|layout| [(layout, true), (layout, false)])
    {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let item = put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let taken = take(&queue).await;
        let claim = format!("{}/{}", layout.claims(), taken.path().name());
        assert!(server_fixture.rival.znodes().delete(&claim).await.unwrap());
        if is_taken {
            create(&server_fixture.rival, &claim, b"", CreateMode::Ephemeral).await;
        }
        let deleted = write(taken).await.unwrap_err();
        assert!(matches!(deleted.recipe(), Some(WorkQueueError::ClaimDeleted { .. })), "{deleted}");
        assert_eq!(written(&server_fixture), Vec::<String>::new());
        assert!(server_fixture.rival.znodes().read(&item).await.unwrap().is_some());
        assert_eq!(server_fixture.rival.znodes().read(&claim).await.unwrap().is_some(), is_taken);
    }
}

#[tokio::test]
async fn an_item_whose_claim_is_deleted_and_that_another_process_takes_is_done_by_that() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let (here, there) =
            (layout.queue(&client(&server_fixture).await), layout.queue(&server_fixture.rival));
        put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        let first = take(&here).await;
        let claim = format!("{}/{}", layout.claims(), first.path().name());
        assert!(server_fixture.server.delete_node(&claim));
        let second = take(&there).await;
        let deleted = write(first).await.unwrap_err();
        assert!(matches!(deleted.recipe(), Some(WorkQueueError::ClaimDeleted { .. })), "{deleted}");
        write(second).await.unwrap();
        assert_eq!(written(&server_fixture), ["a"]);
    }
}

#[tokio::test]
async fn nodes_of_strangers_stay_and_are_no_items() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let strangers = [format!("{}/note", layout.items()), format!("{}/note", layout.claims())];
        for path in &strangers {
            create(&server_fixture.rival, path, b"x", CreateMode::Persistent).await;
        }
        put_by_peer(&server_fixture, layout, layout.name(), &data_of(layout, "a")).await;
        drain(&queue).await;
        assert_eq!(written(&server_fixture), ["a"]);
        for path in &strangers {
            assert!(server_fixture.rival.znodes().read(path).await.unwrap().is_some(), "{path}");
        }
    }
}

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
        // A write tells this process the time of the servers.
        manager.txn().create_sequential("/tick-", b"").commit().await.unwrap();
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
