//! Partitions on a real server: a member that is cut off until its session expires, and a server that is
//! killed.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper::{ConnectionManager, Partition};
use lockkeeper_test_recipes::partition::{Board, work};
use lockkeeper_tests::{Timing, left_out};
use tokio::sync::oneshot;

use crate::support::{briefly_behind_proxy, connect};

const PATH: &str = "/shards";
const ITEMS: usize = 16;

fn items() -> Vec<String> {
    (0..ITEMS).map(|number| format!("{number:02}")).collect()
}

async fn settled(board: &Board, members: &[&str]) {
    let owner = |item: String| {
        let owner = Partition::owner_among(&item, members.iter().copied())?.to_owned();
        Some((item, owner))
    };
    let expected: BTreeMap<_, _> = items().into_iter().filter_map(owner).collect();
    let settled = tokio::time::timeout(Timing::settle(), board.owners_become(&expected)).await;
    assert!(settled.is_ok(), "{members:?} have {:?}", board.owners());
    assert_eq!(board.violations(), Vec::<String>::new());
}

/// A member that works until the returned sender is dropped.
fn start(manager: &ConnectionManager, id: &str, board: &Arc<Board>) -> oneshot::Sender<()> {
    let member = Partition::new(manager, PATH).unwrap().join(id).unwrap();
    let (stop, stopped) = oneshot::channel();
    let board = Arc::clone(board);
    tokio::spawn(async move { work(member, &board, async { _ = stopped.await }).await });
    stop
}

#[tokio::test]
async fn items_move_from_a_member_that_is_cut_off_and_back_and_survive_a_killed_server() {
    if left_out() {
        return;
    }
    let (ensemble, proxies, cut) = briefly_behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    Partition::new(&other, PATH).unwrap().add(items()).await.unwrap();
    let board = Arc::new(Board::default());
    let (_cut, _other) = (start(&cut, "cut", &board), start(&other, "other", &board));
    settled(&board, &["cut", "other"]).await;
    let tokens = board.tokens();

    proxies.refuse().await.unwrap();
    settled(&board, &["other"]).await;
    proxies.accept().await.unwrap();
    settled(&board, &["cut", "other"]).await;
    for (item, owner) in board.owners() {
        assert!(
            owner == "cut" || board.tokens()[&item] == tokens[&item],
            "{item} of the other has not moved"
        );
    }

    ensemble.server(0).kill().await.unwrap();
    ensemble.server(0).restart().await.unwrap();
    Partition::new(&other, PATH).unwrap().remove(["00"]).await.unwrap();
    let gone = board.until(|board| !board.tokens().contains_key("00"));
    tokio::time::timeout(Timing::settle(), gone).await.expect("the removed item is given up");
    Partition::new(&other, PATH).unwrap().add(["00"]).await.unwrap();
    settled(&board, &["cut", "other"]).await;
}
