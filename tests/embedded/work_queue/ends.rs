//! Items that fail, that are due later, and that are put by id.

use std::time::{Duration, SystemTime};

use lockkeeper::work_queue::ItemState;
use lockkeeper::{ConnectionManager, Error, WorkQueue};

use super::{Queue, client, put, queue, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children, servers};

const LATER: Duration = Duration::from_secs(20);

const HOUR: Duration = Duration::from_secs(3_600);

const RECORDS: &str = "/locks/lock/records";

/// The servers' clock, by a write.
async fn later(server_fixture: &ServerFixture, queue: &Queue) -> SystemTime {
    put(queue, &["now"]).await;
    let item = take(queue).await;
    let (_, stat) = server_fixture.rival.znodes().read(item.path()).await.unwrap().unwrap();
    item.done().await.unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.mtime).unwrap()) + LATER
}

#[tokio::test]
async fn an_item_that_fails_too_often_moves_to_the_failed_ones_and_back() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    let (here, there) = (here.with_max_attempts(2).unwrap(), there.with_max_attempts(2).unwrap());
    put(&here, &["a", "b"]).await;
    assert!(!take(&here).await.fail("no disk").await.unwrap());
    // At its old place.
    let item = take(&there).await;
    assert_eq!((item.value().as_str(), item.attempts()), ("a", 2));
    assert!(item.fail("no disk\nagain").await.unwrap());
    let seen = here.inspect().await.unwrap();
    assert_eq!((seen.item_count, seen.failed_count), (1, 1));
    let failed = &seen.failed[0];
    assert!(failed.failures[0].ends_with(" no disk"), "{failed:?}");
    assert!(failed.failures[1].ends_with(" no disk again"), "{failed:?}");
    assert!(seen.to_string().contains("failed: "), "{seen}");
    write(take(&here).await).await.unwrap();
    assert!(here.try_take().await.unwrap().is_none());
    assert!(here.requeue(&failed.path).await.unwrap());
    assert!(!here.requeue(&failed.path).await.unwrap());
    let item = take(&there).await;
    assert_eq!((item.value().as_str(), item.attempts()), ("a", 1));
    write(item).await.unwrap();
    assert_eq!(written(&server_fixture), ["a", "b"]);
    assert!(matches!(queue(&server_fixture.rival).with_max_attempts(0), Err(Error::Config(_))));
}

#[tokio::test]
async fn an_item_whose_takers_are_lost_too_often_fails() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await).with_max_attempts(1).unwrap();
    put(&queue, &["a"]).await;
    take(&queue).await.release().await.unwrap();
    assert!(within("a try", queue.try_take()).await.unwrap().unwrap().is_none());
    let seen = queue.inspect().await.unwrap();
    assert_eq!((seen.item_count, seen.failed_count), (0, 1));
    assert!(seen.failed[0].failures[0].ends_with("the last taker was lost"), "{seen}");
}

#[tokio::test]
async fn an_item_is_not_taken_before_its_time() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    let due = later(&server_fixture, &here).await;
    here.put_at(&"later".to_owned(), due).await.unwrap();
    put(&here, &["a"]).await;
    take(&here).await.retry_at(due).await.unwrap();
    for queue in [&here, &there] {
        assert!(queue.try_take().await.unwrap().is_none());
    }
    let seen = here.inspect().await.unwrap();
    assert!(seen.items.iter().all(|item| item.state == ItemState::Delayed(due)), "{seen}");
    server_fixture.server.advance_clock(LATER + Duration::from_secs(1));
    for value in ["later", "a"] {
        // Each put tells this process the time of the servers.
        put(&here, &["z"]).await;
        let item = take(&here).await;
        assert_eq!(item.value(), value);
        write(item).await.unwrap();
    }
}

#[tokio::test]
async fn a_waiting_taker_takes_a_delayed_item_when_it_is_due() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await);
    let soon = later(&server_fixture, &queue).await - LATER + Duration::from_millis(300);
    queue.put_at(&"soon".to_owned(), soon).await.unwrap();
    assert_eq!(take(&queue).await.value(), "soon");
}

#[tokio::test]
async fn an_id_puts_one_item_whoever_puts_it() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    let order = "an order".to_owned();
    assert!(here.put_once(&order, "order-7").await.unwrap());
    assert!(!there.put_once(&order, "order-7").await.unwrap());
    take(&here).await.done().await.unwrap();
    assert!(!there.put_once(&order, "order-7").await.unwrap(), "put again after it was done");
    assert!(there.put_once(&order, "order-8").await.unwrap());
    assert!(here.forget_id("order-7").await.unwrap());
    assert!(here.put_once(&order, "order-7").await.unwrap());
    for bad in ["", "a/b"] {
        assert!(matches!(here.put_once(&order, bad).await, Err(Error::Config(_))), "{bad:?}");
    }
}

#[tokio::test]
async fn a_put_that_waits_goes_on_when_there_is_room() {
    let server_fixture = server().await;
    let queue = queue(&server_fixture.rival).with_capacity(1).unwrap();
    put(&queue, &["a"]).await;
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.put_wait(&"b".to_owned()).await }
    });
    let item = take(&queue).await;
    assert!(!waiting.is_finished());
    item.done().await.unwrap();
    within("the put", waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(take(&queue).await.value(), "b");
}

#[tokio::test]
async fn an_inspection_shows_which_process_has_which_item() {
    let server_fixture = server().await;
    let manager = client(&server_fixture).await;
    let queue = WorkQueue::<String>::new(&manager, "/locks/lock").unwrap().with_node_data("web-1 4711");
    assert_eq!(queue.inspect().await.unwrap().items, []);
    put(&queue, &["a", "b"]).await;
    let item = take(&queue).await;
    let seen = queue.inspect().await.unwrap();
    let ItemState::Claimed { by, .. } = &seen.items[0].state else { panic!("{seen}") };
    assert_eq!((by.as_str(), &seen.items[0].path), ("web-1 4711", item.path()));
    assert_eq!((&seen.items[1].state, seen.item_count), (&ItemState::Free, 2));
    assert!(seen.to_string().contains("taken by web-1 4711 since"), "{seen}");
}

#[tokio::test]
async fn records_of_ended_processes_are_deleted_by_a_later_one() {
    let server = servers().session_timeouts(Duration::from_secs(1), HOUR * 5);
    let server = server.start().await.unwrap();
    let client = async || {
        let client = ConnectionManager::builder(&server.connect_string()).session_timeout(HOUR * 5);
        client.connect().await.unwrap()
    };
    let records = || server.inspect(|machine| children(machine, RECORDS));
    let first = client().await;
    // A queue that is dropped before the shutdown takes its records with it.
    let ended = queue(&first);
    put(&ended, &["a"]).await;
    first.shutdown().await.unwrap();
    let old = records();
    assert_eq!(old.len(), 1, "{old:?}");
    let holder = client().await;
    let item = take(&queue(&holder)).await;
    server.advance_clock(HOUR * 2);
    let second = client().await;
    let ended = queue(&second);
    put(&ended, &["b"]).await;
    second.shutdown().await.unwrap();
    // One is as old, and its worker lives; the other belongs to the process that has just ended.
    let others: Vec<String> = records().into_iter().filter(|name| !old.contains(name)).collect();
    assert_eq!(others.len(), 2, "{others:?}");

    let later = client().await;
    put(&queue(&later), &["c"]).await;
    within("the sweep", server.wait_until(|machine| !children(machine, RECORDS).contains(&old[0])))
        .await
        .unwrap();
    put(&queue(&later), &["d"]).await;
    let left = records();
    assert!(others.iter().all(|name| left.contains(name)), "{others:?} in {left:?}");
    item.done().await.unwrap();
}
