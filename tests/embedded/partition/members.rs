//! Members that do not give up, that have one id, that leave, and that are inspected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::ConfigError;
use lockkeeper::partition::{AssignedItem, PartitionMember, PartitionShare, ReleaseReason};
use lockkeeper::presence::PresenceState;
use lockkeeper::{ConnectionManager, Error, FencingToken, Mutex, Partition, Revoker, Watch};
use lockkeeper_test_recipes::partition::Board;
use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::{Fault, Op, When};

use super::{PATH, Worker, expected, items, nodes, nothing_is_left, partition, session_of, settled};
use crate::limit::{becomes, within};
use crate::presence::{client, newest_session};
use crate::server_fixture::ServerFixture;

async fn join(server_fixture: &ServerFixture, id: &str) -> (ConnectionManager, PartitionMember) {
    let manager = client(server_fixture).await;
    let member = partition(&manager).join(id).unwrap();
    (manager, member)
}

/// Waits for a share of a member.
async fn share_becomes(share: &mut Watch<PartitionShare>, is_it: impl Fn(&PartitionShare) -> bool) {
    while !is_it(&share.state()) {
        share.changed().await.unwrap();
    }
}

#[tokio::test]
async fn an_item_that_a_member_does_not_give_up_stays_with_it_and_is_shown() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let partition = partition(&server_fixture.rival);
    let items = items(8);
    partition.add(&items).await.unwrap();
    let (_manager, mut stubborn) = join(&server_fixture, "a").await;
    let mut guards = Vec::new();
    for _ in &items {
        guards.push(within("an item", stubborn.next()).await.unwrap().unwrap());
    }
    let board = Arc::new(Board::default());
    let other = Worker::start(&server_fixture, "b", &board).await;
    let moves = expected(&items, &["a", "b"]);
    guards.retain(|guard| moves[guard.item()] == "b");
    for guard in &guards {
        let reason = within("the request", guard.release_requested()).await.unwrap();
        assert_eq!(reason, ReleaseReason::Moved);
        assert!(guard.is_valid(), "it is a request");
    }
    let kept: Vec<&str> = guards.iter().map(AssignedItem::item).collect();
    // A list shows who waits, and may come before the request is written.
    let requested = async {
        loop {
            let inspection = partition.inspect().await.unwrap();
            let mut items = inspection.items().iter().filter(|item| kept.contains(&item.name()));
            if items.all(|item| item.holder().unwrap().is_revoked()) {
                return inspection;
            }
        }
    };
    let inspection = within("the requests", requested).await.unwrap();
    assert_eq!(inspection.members(), ["a", "b"]);
    let misplaced: Vec<&str> = inspection.misplaced().map(lockkeeper::inspect::PartitionItem::name).collect();
    for item in inspection.items().iter().filter(|item| kept.contains(&item.name())) {
        assert_eq!(item.owner(), Some("b"));
        assert_eq!(item.contenders().len(), 2);
    }
    assert!(kept.iter().all(|item| misplaced.contains(item)), "{inspection}");
    drop(guards);
    within(
        "the moved items",
        board.until(|board| board.owners().len() == moves.values().filter(|of| *of == "b").count()),
    )
    .await
    .unwrap();
    other.leave().await;
}

#[tokio::test]
async fn an_item_that_was_never_taken_moves_at_once_and_its_member_does_not_get_it_later() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(8), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let (_manager, mut slow) = join(&server_fixture, "a").await;
    let mut share = slow.assigned();
    within("the grants", share_becomes(&mut share, |share| share.held().count() == items.len()))
        .await
        .unwrap();
    let other = Worker::start(&server_fixture, "b", &board).await;
    let (kept, moved): (BTreeMap<_, _>, BTreeMap<_, _>) =
        expected(&items, &["a", "b"]).into_iter().partition(|(_, owner)| owner == "a");
    within("the moved items", board.owners_become(&moved)).await.unwrap();
    let mut taken = Vec::new();
    for _ in &kept {
        taken.push(within("an item", slow.next()).await.unwrap().unwrap());
    }
    assert!(taken.iter().all(AssignedItem::is_valid));
    let names: BTreeSet<&str> = taken.iter().map(AssignedItem::item).collect();
    assert!(names.into_iter().eq(kept.keys()), "{taken:?}");
    other.leave().await;
}

#[tokio::test]
async fn an_item_that_was_never_taken_is_acquired_again_when_its_hold_is_lost() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let items = items(4);
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let (_manager, mut slow) = join(&server_fixture, "a").await;
    let mut share = slow.assigned();
    within("the grants", share_becomes(&mut share, |share| share.held().count() == items.len()))
        .await
        .unwrap();
    let lost: BTreeMap<String, FencingToken> =
        share.state().held().map(|(item, token)| (item.to_owned(), token)).collect();
    assert!(server_fixture.server.expire(session_of(&server_fixture, "a")));
    let is_held_again =
        |share: &PartitionShare| lost.iter().all(|(item, lost)| share.fencing_token(item) > Some(*lost));
    within("the next grants", share_becomes(&mut share, is_held_again)).await.unwrap();
    let mut taken = Vec::new();
    for _ in &items {
        taken.push(within("an item", slow.next()).await.unwrap().unwrap());
    }
    assert!(taken.iter().all(AssignedItem::is_valid), "{taken:?}");
    assert!(slow.next().now_or_never().is_none(), "each item is returned once");
}

#[tokio::test]
async fn of_two_members_with_one_id_the_second_gets_nothing_until_the_first_has_left() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(4), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let first = Worker::start(&server_fixture, "a", &board).await;
    settled(&board, &items, &["a"]).await;
    let (manager, second) = join(&server_fixture, "a").await;
    let share = second.assigned();
    let is_conflict = || matches!(second.state(), PresenceState::Conflict { .. });
    becomes("the conflict", is_conflict).await.unwrap();
    assert_eq!(share.state().mine().count(), 0);
    let grants = board.grants();
    first.leave().await;
    let second = Worker::of(manager, second, &board);
    settled(&board, &items, &["a"]).await;
    assert_eq!(board.grants(), grants + items.len());
    second.leave().await;
}

#[tokio::test]
async fn a_request_for_an_item_that_does_not_move_changes_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let partition = partition(&server_fixture.rival);
    partition.add(["x"]).await.unwrap();
    let (_manager, mut member) = join(&server_fixture, "a").await;
    let item = within("the item", member.next()).await.unwrap().unwrap();
    // What a view reads behind its sync.
    let look = When::op(Op::Exists).path(&format!("{PATH}/members"));
    let looked = server_fixture.server.fault(look, Fault::DelayReply(Duration::ZERO));
    let revoker = Revoker::new(&server_fixture.rival);
    assert!(revoker.ask_node(item.path()).await.unwrap());
    within("the request", item.revoke_requested()).await.unwrap().unwrap();
    // The member looks who the members are once more, instead of giving up the item.
    within("the look", looked.hit()).await.unwrap();
    assert_eq!(item.release_requested().now_or_never(), None);
    let settled = within("the share", member.settled(Duration::from_secs(10))).await.unwrap().unwrap();
    assert_eq!(settled.fencing_token("x"), Some(item.fencing_token()));
    // It moves later all the same, although the request is still in the node.
    let other =
        ["b", "c", "d", "e"].into_iter().find(|id| Partition::owner_among("x", ["a", id]) == Some(*id));
    let (_other_manager, mut other) = join(&server_fixture, other.unwrap()).await;
    assert_eq!(within("the request", item.release_requested()).await.unwrap(), ReleaseReason::Moved);
    let token = item.fencing_token();
    item.release().await.unwrap();
    let moved = within("the item", other.next()).await.unwrap().unwrap();
    assert!(moved.fencing_token() > token && moved.is_valid());
}

#[tokio::test]
async fn a_member_looks_again_for_each_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    partition(&server_fixture.rival).add(["x", "y"]).await.unwrap();
    let (_manager, mut member) = join(&server_fixture, "a").await;
    let revoker = Revoker::new(&server_fixture.rival);
    let mut kept = Vec::new();
    for _ in 0..2 {
        let item = within("the item", member.next()).await.unwrap().unwrap();
        let look = When::op(Op::Exists).path(&format!("{PATH}/members"));
        let looked = server_fixture.server.fault(look, Fault::DelayReply(Duration::ZERO));
        assert!(revoker.ask_node(item.path()).await.unwrap());
        within("the look", looked.hit()).await.unwrap();
        kept.push(item);
    }
    assert!(kept.iter().all(|item| item.release_requested().now_or_never().is_none()));
}

#[tokio::test]
async fn an_item_that_a_plain_mutex_holds_is_asked_for_and_waited_for() {
    let server_fixture = ServerFixture::start().await.unwrap();
    partition(&server_fixture.rival).add(["x"]).await.unwrap();
    let mutex = Mutex::new(&server_fixture.rival, format!("{PATH}/locks/x")).unwrap();
    let guard = mutex.acquire().await.unwrap();
    let (_manager, mut member) = join(&server_fixture, "a").await;
    within("the request", guard.revoke_requested()).await.unwrap().unwrap();
    guard.release().await.unwrap();
    let item = within("the item", member.next()).await.unwrap().unwrap();
    item.txn().set(format!("{PATH}/items/x"), "by a", -1).commit().await.unwrap();
}

#[tokio::test]
async fn an_item_whose_guard_is_dropped_or_lost_comes_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    partition(&server_fixture.rival).add(["x"]).await.unwrap();
    let (_manager, mut member) = join(&server_fixture, "a").await;
    let first = within("the item", member.next()).await.unwrap().unwrap();
    let token = first.fencing_token();
    drop(first);
    let second = within("the item", member.next()).await.unwrap().unwrap();
    assert!(second.fencing_token() > token);
    assert!(server_fixture.server.delete_node(second.path()));
    // A hold this young learns of the deletion by its next confirmation.
    assert_eq!(within("the loss", second.release_requested()).await.unwrap(), ReleaseReason::Lost);
    drop(second);
    assert!(within("the item", member.next()).await.unwrap().unwrap().is_valid());
}

#[tokio::test]
async fn a_member_that_leaves_keeps_each_item_until_its_next_member_waits() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(6), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let (_manager, mut leaving) = join(&server_fixture, "a").await;
    let mut guards = Vec::new();
    for _ in &items {
        guards.push(within("an item", leaving.next()).await.unwrap().unwrap());
    }
    let (old, transcript) = (session_of(&server_fixture, "a"), server_fixture.server.transcript());
    let manager = client(&server_fixture).await;
    let creates = When::ops([Op::Create2, Op::Multi]).path(&format!("{PATH}/locks/**"));
    let creates = creates.session(newest_session(&server_fixture)).always();
    let held_up = server_fixture.server.fault(creates, Fault::HoldRequest);
    let member = partition(&manager).join("b").unwrap();
    let other = Worker::of(manager, member, &board);
    let mut share = leaving.assigned();
    within("the other", share_becomes(&mut share, |share| share.members() == 2)).await.unwrap();
    let leave = tokio::spawn(leaving.leave());
    // The member that leaves watches the queue of each item, and the other member is in none of them.
    let watched = async {
        while queues_listed(&transcript.passed(), old).len() < items.len() {
            server_fixture.round_trip_of_rival().await.unwrap();
        }
    };
    within("the watches", watched).await.unwrap();
    within("the creates", held_up.hit()).await.unwrap();
    for guard in &guards {
        assert_eq!(guard.release_requested().now_or_never(), None, "{guard:?}");
    }
    held_up.release();
    for guard in &guards {
        assert_eq!(within("the request", guard.release_requested()).await.unwrap(), ReleaseReason::Left);
        assert!(guard.is_valid());
    }
    drop(guards);
    within("the end of the member", leave).await.unwrap().unwrap().unwrap();
    settled(&board, &items, &["b"]).await;
    other.leave().await;
    nothing_is_left(&server_fixture).await;
}

/// The queues of items that a session has listed.
fn queues_listed(passed: &[Passed], session: i64) -> BTreeSet<String> {
    let is_list = |passed: &&Passed| {
        let is_list = matches!(passed.subject, Subject::Request(Op::GetChildren | Op::GetChildren2));
        is_list && passed.session == session
    };
    let paths = passed.iter().filter(is_list).flat_map(|passed| passed.paths.clone());
    paths.filter(|path| path.starts_with(&format!("{PATH}/locks/"))).collect()
}

#[tokio::test]
async fn the_last_member_gives_up_all_items_when_it_leaves() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let items = items(6);
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let (_manager, mut leaving) = join(&server_fixture, "a").await;
    let mut guards = Vec::new();
    for _ in &items {
        guards.push(within("an item", leaving.next()).await.unwrap().unwrap());
    }
    let leave = tokio::spawn(leaving.leave());
    // It is alone, so all are given up at once.
    for guard in &guards {
        assert_eq!(within("the request", guard.release_requested()).await.unwrap(), ReleaseReason::Left);
        assert!(guard.is_valid());
    }
    drop(guards);
    within("the end of the member", leave).await.unwrap().unwrap().unwrap();
    nothing_is_left(&server_fixture).await;
}

#[tokio::test]
async fn a_shutdown_that_leaves_holders_time_ends_the_member() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(6), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let (manager, mut member) = join(&server_fixture, "a").await;
    let item = within("an item", member.next()).await.unwrap().unwrap();
    let shutdown = tokio::spawn(async move { manager.shutdown_within(Duration::from_secs(60)).await });
    assert_eq!(within("the request", item.release_requested()).await.unwrap(), ReleaseReason::Left);
    assert!(item.is_valid());
    drop(item);
    while within("the end of the member", member.next()).await.unwrap().is_some() {}
    within("the shutdown", shutdown).await.unwrap().unwrap().unwrap();
    let other = Worker::start(&server_fixture, "b", &board).await;
    settled(&board, &items, &["b"]).await;
    other.leave().await;
}

#[tokio::test]
async fn a_drop_of_the_member_and_its_guards_leaves_no_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(6), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let worker = Worker::start(&server_fixture, "a", &board).await;
    settled(&board, &items, &["a"]).await;
    worker.abort().await;
    board.drop_guards_of("a");
    nothing_is_left(&server_fixture).await;
}

#[tokio::test]
async fn bad_names_are_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let partition = partition(&server_fixture.rival);
    for bad in ["", "a/b", "..", "a\0"] {
        assert!(matches!(partition.join(bad), Err(Error::Config(_))), "{bad:?}");
        assert!(matches!(partition.add(["good", bad]).await, Err(Error::Config(_))), "{bad:?}");
        assert!(matches!(partition.remove([bad]).await, Err(Error::Config(_))), "{bad:?}");
    }
    for bad in [&"x".repeat(1025), "__REVOKE__", "__REVOKE__ a"] {
        let refused = partition.join(bad).unwrap_err();
        assert!(matches!(refused, Error::Config(ConfigError::Setting { name: "id", .. })), "{refused}");
    }
    assert!(Partition::new(&server_fixture.rival, "/").is_err());
    assert_eq!(server_fixture.server.inspect(nodes), Vec::<String>::new());
    assert!(partition.items().await.unwrap().is_empty());
}
