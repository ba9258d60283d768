//! The directories of the items: when one is closed, what is put late, and when one is deleted.

use std::time::Duration;

use lockkeeper::error::WorkQueueError;
use lockkeeper::inspect::{Survey, WorkQueueInspection};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{ITEMS, Layout, Queue, client, drain, put, queue, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, children};

const SECOND: &str = "/locks/lock/items-0000000001";

/// A queue whose directories take two items each.
fn small(manager: &ConnectionManager) -> Queue {
    queue(manager).with_shard_size(2)
}

/// The directories of items, and how many each has.
fn shards(machine: &Machine) -> Vec<(String, usize)> {
    let names = children(machine, LOCK).into_iter().filter(|name| name.starts_with("items"));
    let mut shards: Vec<_> =
        names.map(|name| (name.clone(), children(machine, &format!("{LOCK}/{name}")).len())).collect();
    shards.sort();
    shards
}

fn named(shards: &[(&str, usize)]) -> Vec<(String, usize)> {
    shards.iter().map(|(name, items)| ((*name).to_owned(), *items)).collect()
}

async fn shards_become(server_fixture: &ServerFixture, expected: &[(&str, usize)]) {
    let expected = named(expected);
    let reached = server_fixture.server.wait_until(|machine| shards(machine) == expected);
    if within("the directories", reached).await.is_err() {
        panic!("{:?}", server_fixture.server.inspect(shards));
    }
}

async fn taken(queue: &Queue) -> Vec<String> {
    let mut values = Vec::new();
    while let Some(item) = within("a try", queue.try_take()).await.unwrap().unwrap() {
        values.push(item.value().clone());
        item.done().await.unwrap();
    }
    values
}

#[tokio::test]
async fn a_put_without_room_opens_the_next_directory_and_the_order_goes_on() {
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    put(&here, &["a", "b", "c"]).await;
    put(&there, &["d", "e"]).await;
    let expected = [("items", 2), ("items-0000000001", 2), ("items-0000000002", 1)];
    assert_eq!(server_fixture.server.inspect(shards), named(&expected));
    here.put_with(&"urgent".to_owned(), 0).await.unwrap();
    here.put_all(&["f".to_owned(), "g".to_owned(), "h".to_owned()]).await.unwrap();
    put(&there, &["i"]).await;
    assert_eq!(
        server_fixture.server.inspect(shards)[2..],
        named(&[
            ("items-0000000002", 2),
            // All items of one call are in one directory.
            ("items-0000000003", 3),
            ("items-0000000004", 1),
        ])
    );
    assert_eq!(taken(&there).await, ["urgent", "a", "b", "c", "d", "e", "f", "g", "h", "i"]);
}

#[tokio::test]
async fn a_directory_that_is_used_up_is_deleted_and_the_first_and_the_last_stay() {
    let server_fixture = server().await;
    let queue = small(&client(&server_fixture).await);
    put(&queue, &["a", "b", "c", "d", "e", "f", "g"]).await;
    // An item that is claimed keeps its directory.
    let items = [take(&queue).await, take(&queue).await, take(&queue).await];
    for _ in 0..4 {
        take(&queue).await.done().await.unwrap();
    }
    assert!(queue.try_take().await.unwrap().is_none());
    shards_become(&server_fixture, &[("items", 2), (&SECOND[12..], 1), ("items-0000000003", 0)]).await;
    for item in items {
        write(item).await.unwrap();
    }
    assert!(queue.try_take().await.unwrap().is_none());
    shards_become(&server_fixture, &[("items", 0), ("items-0000000003", 0)]).await;
    assert_eq!(written(&server_fixture), ["a", "b", "c"]);
    put(&small(&server_fixture.rival), &["h"]).await;
    assert_eq!(take(&queue).await.value(), "h");
    shards_become(&server_fixture, &[("items", 0), ("items-0000000003", 1)]).await;
}

#[tokio::test]
async fn a_put_that_is_applied_late_is_not_in_a_directory_that_was_closed_or_deleted() {
    for is_deleted in [false, true] {
        let server_fixture = server().await;
        let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
        put(&there, &["a", "b", "c"]).await;
        put(&here, &["d"]).await;
        put(&there, &["e"]).await;
        // The last directory is the third one now. It has one item.
        let third = "/locks/lock/items-0000000002";
        let session = server_fixture.sessions_of_actor()[0];
        let when = When::op(Op::Multi).path(&format!("{third}/*")).session(session);
        let late = server_fixture.server.fault(when, Fault::HoldRequest);
        let putting = tokio::spawn(async move { here.put(&"late".to_owned()).await });
        within("the put", late.hit()).await.unwrap();
        put(&there, &["f", "g"]).await;
        if is_deleted {
            assert_eq!(taken(&there).await, ["a", "b", "c", "d", "e", "f", "g"]);
            shards_become(&server_fixture, &[("items", 0), ("items-0000000003", 0)]).await;
        }
        late.release();
        within("the put", putting).await.unwrap().unwrap().unwrap();
        let shards = server_fixture.server.inspect(shards);
        assert!(shards.contains(&("items-0000000003".to_owned(), 2 - usize::from(is_deleted))), "{shards:?}");
        assert_eq!(taken(&there).await.last().unwrap(), "late");
    }
}

#[tokio::test]
async fn two_clients_that_close_one_directory_open_one() {
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    put(&there, &["a", "b"]).await;
    let closes = server_fixture.server.fault(When::op(Op::Multi).path(SECOND).times(2), Fault::HoldRequest);
    let putting = [("c", here.clone()), ("d", there.clone())]
        .map(|(value, queue)| tokio::spawn(async move { queue.put(&value.to_owned()).await }));
    within("both transactions", closes.hit_times(2)).await.unwrap();
    closes.release();
    for putting in putting {
        within("the put", putting).await.unwrap().unwrap().unwrap();
    }
    assert_eq!(server_fixture.server.inspect(shards), named(&[("items", 2), (&SECOND[12..], 2)]));
    let taken = taken(&here).await;
    assert_eq!((taken.len(), &taken[..2]), (4, &["a".to_owned(), "b".to_owned()][..]));
}

#[tokio::test]
async fn a_close_whose_answer_is_lost_or_that_is_applied_late_opens_one_directory() {
    for fault in [Fault::DropConnectionBefore, Fault::DropConnectionAfter] {
        let server_fixture = server().await;
        let queue = small(&client(&server_fixture).await);
        put(&queue, &["a", "b"]).await;
        let lost = server_fixture.server.fault(When::op(Op::Multi).path(SECOND), fault);
        put(&queue, &["c"]).await;
        assert_eq!(lost.hits(), 1);
        assert_eq!(server_fixture.server.inspect(shards), named(&[("items", 2), (&SECOND[12..], 1)]));
    }
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    put(&here, &["a", "b"]).await;
    let late = server_fixture.server.fault(When::op(Op::Multi).path(SECOND), Fault::HoldRequest);
    let session = server_fixture.sessions_of_actor()[0];
    let putting = tokio::spawn(async move { here.put(&"late".to_owned()).await });
    within("the close", late.hit()).await.unwrap();
    // The other client puts before this one is back.
    let away = When::connect().session(session).always();
    let away = server_fixture.server.fault(away, Fault::DropConnectionBefore);
    server_fixture.server.drop_connections();
    put(&there, &["c", "d", "e"]).await;
    late.release();
    drop(away);
    within("the put", putting).await.unwrap().unwrap().unwrap();
    let expected = [("items", 2), ("items-0000000001", 2), ("items-0000000002", 2)];
    assert_eq!(server_fixture.server.inspect(shards), named(&expected));
    assert_eq!(taken(&there).await.len(), 6);
}

#[tokio::test]
async fn children_of_strangers_stop_no_put_and_no_take() {
    let server_fixture = server().await;
    let queue = small(&client(&server_fixture).await);
    let create = async |name: &str| {
        let path = format!("{LOCK}/{name}");
        server_fixture.rival.znodes().create(path, b"", CreateMode::Persistent).await.unwrap();
    };
    for name in ["items-x", "items-1", "items-0000000000", "items-00000000001"] {
        create(name).await;
    }
    put(&queue, &["a", "b", "c"]).await;
    // The directory that is to be made, and one far behind.
    for name in ["items-0000000002", "items-0000000007"] {
        create(name).await;
        put(&queue, &["d", "e", "f"]).await;
    }
    assert_eq!(taken(&small(&server_fixture.rival)).await.len(), 9);
    assert_eq!(taken(&queue).await, Vec::<String>::new());
    // Nothing but the version says that a directory is closed.
    for name in ["items-0000000007", "items-0000000008", "items-0000000009"] {
        let path = format!("{LOCK}/{name}");
        let _ = server_fixture.rival.znodes().write(&path, b"mine", lockkeeper::znodes::Version::Any).await;
    }
    put(&queue, &["g", "h", "i"]).await;
    assert_eq!(taken(&small(&server_fixture.rival)).await, ["g", "h", "i"]);
}

#[tokio::test]
async fn a_queue_that_is_deleted_under_its_clients_begins_again() {
    let server_fixture = server().await;
    let queue = small(&client(&server_fixture).await);
    put(&queue, &["a", "b", "c", "d", "e"]).await;
    take(&queue).await.done().await.unwrap();
    server_fixture.rival.znodes().delete_all(LOCK, 1_000).await.unwrap();
    put(&queue, &["f", "g", "h"]).await;
    assert_eq!(server_fixture.server.inspect(shards), named(&[("items", 2), (&SECOND[12..], 1)]));
    assert_eq!(taken(&queue).await, ["f", "g", "h"]);
}

#[tokio::test]
async fn the_bound_counts_the_items_of_all_directories() {
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    let (here, there) = (here.with_capacity(5).unwrap(), there.with_capacity(5).unwrap());
    put(&here, &["a", "b", "c"]).await;
    put(&there, &["d", "e"]).await;
    for queue in [&here, &there] {
        let full = queue.put(&"f".to_owned()).await.unwrap_err();
        let Some(WorkQueueError::Full { items: 5, capacity: 5, .. }) = full.recipe() else {
            panic!("{full}")
        };
    }
    // Of a directory that this process has counted before.
    take(&here).await.done().await.unwrap();
    put(&there, &["f"]).await;
    assert!(here.put(&"g".to_owned()).await.is_err());
    // A queue that is full opens no directory.
    assert_eq!(server_fixture.server.inspect(shards).len(), 3);
}

#[tokio::test]
async fn a_look_lists_no_closed_directory_again() {
    let server_fixture = server().await;
    let queue = queue(&client(&server_fixture).await).with_shard_size(40);
    let values: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    queue.put_all(&values).await.unwrap();
    put(&queue, &["last"]).await;
    let lists = |path: &str| {
        let when = When::ops([Op::GetChildren, Op::GetChildren2]).path(path).always();
        server_fixture.server.fault(when, Fault::DelayReply(Duration::ZERO))
    };
    let (first, last) = (lists(ITEMS), lists(SECOND));
    let item = take(&queue).await;
    let seen = last.hits();
    // Each time an item is given up, the takers of this process look again.
    drop(item);
    for _ in 0..3 {
        let item = take(&queue).await;
        assert_eq!(item.value(), "00");
        item.release().await.unwrap();
    }
    assert_eq!((first.hits(), last.hits() > seen + 2), (1, true));
}

#[tokio::test]
async fn a_waiting_taker_takes_what_is_put_into_a_directory_that_is_new() {
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    put(&there, &["a", "b"]).await;
    let items = [take(&there).await, take(&there).await];
    let waiting = tokio::spawn(async move { take(&here).await.value().clone() });
    server_fixture.queue_length_becomes(3).await.unwrap();
    put(&there, &["c"]).await;
    assert_eq!(within("the item", waiting).await.unwrap().unwrap(), "c");
    drop(items);
}

#[tokio::test]
async fn failed_items_of_several_directories_have_names_of_their_own_and_go_back_to_the_last() {
    let server_fixture = server().await;
    let queue = small(&client(&server_fixture).await).with_max_attempts(1).unwrap();
    put(&queue, &["a", "b", "c"]).await;
    for value in ["a", "b", "c"] {
        let item = take(&queue).await;
        assert_eq!(item.value(), value);
        assert!(item.fail("no disk").await.unwrap());
    }
    let seen = queue.inspect().await.unwrap();
    assert_eq!((seen.item_count, seen.failed_count), (0, 3));
    for failed in &seen.failed {
        assert!(queue.requeue(&failed.path).await.unwrap(), "{seen}");
    }
    let seen = queue.inspect().await.unwrap();
    assert_eq!((seen.item_count, seen.failed_count), (3, 0));
    assert_eq!(taken(&queue).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failed_item_is_put_back_into_a_directory_that_is_open() {
    let server_fixture = server().await;
    let (here, there) = (small(&client(&server_fixture).await), small(&server_fixture.rival));
    let here = here.with_max_attempts(1).unwrap();
    put(&here, &["a"]).await;
    assert!(take(&here).await.fail("no disk").await.unwrap());
    let failed = here.inspect().await.unwrap().failed.remove(0).path;
    let session = server_fixture.sessions_of_actor()[0];
    let when = When::op(Op::Multi).path(&format!("{ITEMS}/*")).session(session);
    let late = server_fixture.server.fault(when, Fault::HoldRequest);
    let requeued = tokio::spawn(async move { here.requeue(&failed).await });
    within("the transaction", late.hit()).await.unwrap();
    put(&there, &["b", "c", "d"]).await;
    late.release();
    assert!(within("the answer", requeued).await.unwrap().unwrap().unwrap());
    assert_eq!(server_fixture.server.inspect(shards), named(&[("items", 2), (&SECOND[12..], 2)]));
    assert_eq!(taken(&there).await, ["b", "c", "d", "a"]);
}

#[tokio::test]
async fn every_directory_is_seen_by_an_inspection_and_by_a_survey() {
    let server_fixture = server().await;
    let queue = small(&client(&server_fixture).await);
    put(&queue, &["a", "b", "c", "d", "e"]).await;
    queue.put_with(&"urgent".to_owned(), 0).await.unwrap();
    let check = async |names: &[&str]| {
        let seen = queue.inspect().await.unwrap();
        let seen_names: Vec<&str> = seen.items.iter().map(|item| item.name()).collect();
        assert_eq!(seen_names, names, "{seen}");
        assert_eq!(usize::try_from(seen.item_count).unwrap(), names.len());
        assert_eq!(WorkQueueInspection::of_path(&server_fixture.rival, LOCK).await.unwrap(), Some(seen));
        let survey = Survey::below(&server_fixture.rival, "/locks").await.unwrap();
        let counts: Vec<_> = survey.queues().iter().map(|queue| queue.item_count()).collect();
        assert_eq!(counts, [u32::try_from(names.len()).unwrap()]);
        assert!(survey.locks().is_empty() && survey.groups().is_empty(), "{survey:?}");
    };
    check(&[
        "items-0000000002/000-0000000001",
        "100-0000000000",
        "100-0000000001",
        "items-0000000001/100-0000000000",
        "items-0000000001/100-0000000001",
        "items-0000000002/100-0000000000",
    ])
    .await;
    for _ in 0..4 {
        take(&queue).await.done().await.unwrap();
    }
    check(&["items-0000000001/100-0000000001", "items-0000000002/100-0000000000"]).await;
}

#[tokio::test]
async fn no_item_is_put_whose_number_would_end_or_repeat() {
    for layout in [Layout::Own, Layout::Kazoo] {
        let server_fixture = server().await;
        let queue = layout.queue(&client(&server_fixture).await);
        put(&queue, &["a"]).await;
        for next in [i32::MAX - 1, i32::MAX] {
            let directory = if layout == Layout::Own { ITEMS } else { layout.items() };
            assert!(server_fixture.server.set_sequence(directory, next), "the directory of the items");
            // A process that has not read the numbers before.
            let another = layout.queue(&client(&server_fixture).await);
            let put = another.put(&"b".to_owned()).await;
            match layout {
                // In the next directory.
                Layout::Own => put.unwrap(),
                _ => assert!(matches!(put, Err(Error::SequenceExhausted { .. })), "{put:?}"),
            }
        }
        if layout == Layout::Own {
            assert_eq!(server_fixture.server.inspect(shards), named(&[("items", 1), (&SECOND[12..], 2)]));
        }
        drain(&queue).await;
        let expected: &[&str] = if layout == Layout::Own { &["a", "b", "b"] } else { &["a"] };
        assert_eq!(written(&server_fixture), expected);
    }
}
