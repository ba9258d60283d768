//! What moves when members join, leave and die, and when items are added and removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper_test_recipes::partition::Board;

use super::{Worker, expected, items, nothing_is_left, partition, session_of, settled};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[tokio::test]
async fn a_member_that_joins_or_leaves_moves_its_share_and_no_other_item() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(32), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let a = Worker::start(&server_fixture, "a", &board).await;
    settled(&board, &items, &["a"]).await;
    let b = Worker::start(&server_fixture, "b", &board).await;
    settled(&board, &items, &["a", "b"]).await;
    let share_of_b = share(&board, "b");
    assert_eq!(board.grants(), 32 + share_of_b);

    let tokens = board.tokens();
    let c = Worker::start(&server_fixture, "c", &board).await;
    settled(&board, &items, &["a", "b", "c"]).await;
    let share_of_c = share(&board, "c");
    assert_eq!(board.grants(), 32 + share_of_b + share_of_c, "only the share of c moves");
    only_moved(&board, &tokens, "c");

    let (tokens, owners) = (board.tokens(), board.owners());
    c.leave().await;
    settled(&board, &items, &["a", "b"]).await;
    assert_eq!(board.grants(), 32 + share_of_b + 2 * share_of_c, "only the share of c moves back");
    for (item, token) in board.tokens() {
        assert_eq!(token == tokens[&item], owners[&item] != "c", "{item}");
    }
    a.leave().await;
    b.leave().await;
    nothing_is_left(&server_fixture).await;
}

fn share(board: &Board, member: &str) -> usize {
    board.owners().values().filter(|owner| *owner == member).count()
}

/// The holds of all items but those of this member are the same as before.
fn only_moved(board: &Board, before: &BTreeMap<String, u64>, member: &str) {
    for (item, owner) in board.owners() {
        assert!(owner == member || board.tokens()[&item] == before[&item], "{item} has not moved");
    }
}

#[tokio::test]
async fn the_items_of_a_member_that_ends_move_and_those_of_the_others_stay() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(16), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let mut workers = Vec::new();
    for id in ["a", "b", "c"] {
        workers.push(Worker::start(&server_fixture, id, &board).await);
    }
    settled(&board, &items, &["a", "b", "c"]).await;
    let (tokens, owners) = (board.tokens(), board.owners());
    // All its nodes are deleted at once, as those of a process that was killed.
    workers.remove(1).manager.shutdown().await.unwrap();
    settled(&board, &items, &["a", "c"]).await;
    for (item, owner) in owners.iter().filter(|(_, owner)| *owner != "b") {
        assert_eq!((board.tokens()[item], &board.owners()[item]), (tokens[item], owner));
    }
}

#[tokio::test]
async fn items_that_are_added_are_taken_and_removed_ones_are_given_up() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (all, board) = (items(12), Arc::new(Board::default()));
    let admin = partition(&server_fixture.rival);
    let one = Worker::start(&server_fixture, "a", &board).await;
    let other = Worker::start(&server_fixture, "b", &board).await;
    admin.add(&all[..6]).await.unwrap();
    settled(&board, &all[..6], &["a", "b"]).await;
    admin.add(&all).await.unwrap();
    settled(&board, &all, &["a", "b"]).await;
    assert_eq!(admin.items().await.unwrap(), all);
    let tokens = board.tokens();
    admin.remove(&all[6..]).await.unwrap();
    settled(&board, &all[..6], &["a", "b"]).await;
    assert!(board.tokens().iter().all(|(item, token)| tokens[item] == *token), "no other item moves");
    one.leave().await;
    other.leave().await;
    nothing_is_left(&server_fixture).await;
}

#[tokio::test]
async fn a_member_whose_session_ends_gets_its_share_back() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(16), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let one = Worker::start(&server_fixture, "a", &board).await;
    settled(&board, &items, &["a"]).await;
    let other = Worker::start(&server_fixture, "b", &board).await;
    settled(&board, &items, &["a", "b"]).await;
    let tokens = board.tokens();
    let session = session_of(&server_fixture, "b");
    board.suspend();
    assert!(server_fixture.server.expire(session));
    // All holds of the session are lost, so each of its items gets another one.
    let has_moved = |board: &Board| {
        board
            .tokens()
            .iter()
            .all(|(item, token)| (tokens[item] == *token) != (expected(&items, &["a", "b"])[item] == "b"))
    };
    within("the loss of the items", board.until(has_moved)).await.unwrap();
    settled(&board, &items, &["a", "b"]).await;
    only_moved(&board, &tokens, "b");
    one.leave().await;
    other.leave().await;
    nothing_is_left(&server_fixture).await;
}

#[tokio::test]
async fn a_mere_reconnect_moves_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (items, board) = (items(8), Arc::new(Board::default()));
    partition(&server_fixture.rival).add(&items).await.unwrap();
    let one = Worker::start(&server_fixture, "a", &board).await;
    let other = Worker::start(&server_fixture, "b", &board).await;
    settled(&board, &items, &["a", "b"]).await;
    let (tokens, grants) = (board.tokens(), board.grants());
    for _ in 0..3 {
        server_fixture.server.drop_connections();
        server_fixture.round_trip_of_rival().await.unwrap();
    }
    // The next change is seen, and moves its share alone.
    let third = Worker::start(&server_fixture, "c", &board).await;
    settled(&board, &items, &["a", "b", "c"]).await;
    assert_eq!(board.grants() - grants, share(&board, "c"));
    only_moved(&board, &tokens, "c");
    for worker in [one, other, third] {
        worker.leave().await;
    }
    nothing_is_left(&server_fixture).await;
}
