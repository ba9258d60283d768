//! Queues with the nodes of Curator and kazoo: names, claims, and what other clients do on the same paths.

use std::time::{Duration, SystemTime};

use lockkeeper::ConnectionManager;
use lockkeeper::error::WorkQueueError;
use lockkeeper::work_queue::ItemState;
use lockkeeper::znodes::CreateMode;
use lockkeeper_testserver::{Fault, Op, When};

use super::{Layout, client, drain, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

/// What Curator's serializer writes for one item.
pub(super) fn curators(values: &[&str]) -> Vec<u8> {
    let mut data = vec![0, 1, 0, 1];
    for value in values {
        data.push(1);
        data.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        data.extend(value.as_bytes());
    }
    data.push(2);
    data
}

pub(super) fn data_of(layout: Layout, value: &str) -> Vec<u8> {
    if layout == Layout::Kazoo { value.as_bytes().to_vec() } else { curators(&[value]) }
}

/// Creates a node of another client.
pub(super) async fn create(by: &ConnectionManager, path: &str, data: &[u8], mode: CreateMode) -> String {
    by.znodes().create(path, data, mode).await.unwrap().to_string()
}

/// Puts an item as another client does.
pub(super) async fn put_by_peer(
    server_fixture: &ServerFixture,
    layout: Layout,
    name: &str,
    data: &[u8],
) -> String {
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
async fn a_try_at_a_queue_that_does_not_exist_looks_once() {
    for layout in Layout::OF_PEERS.into_iter().chain([Layout::Own]) {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        let when = When::ops([Op::GetChildren, Op::GetChildren2]).path(layout.items()).always();
        let lists = server_fixture.server.fault(when, Fault::DelayReply(Duration::ZERO));
        assert!(queue.try_take().await.unwrap().is_none());
        assert_eq!(lists.hits(), 1, "{layout:?}");
    }
}
