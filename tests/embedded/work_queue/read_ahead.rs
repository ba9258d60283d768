//! Takes whose items an earlier request has read.

use lockkeeper::config::{Acl, Permissions};
use lockkeeper::znodes::Version;
use lockkeeper_testserver::{Fault, Op, When};

use super::{ITEMS, Layout, Queue, client, drain, put, queue, server, take, write, written};
use crate::limit::within;

#[tokio::test]
async fn what_another_process_did_with_an_item_since_it_was_read_ahead_is_seen() {
    let server_fixture = server().await;
    let (here, there) = (queue(&client(&server_fixture).await), queue(&server_fixture.rival));
    put(&there, &["a", "b", "c", "d"]).await;
    // Reads a and b.
    write(take(&here).await).await.unwrap();
    let other = take(&there).await;
    assert_eq!(other.value(), "b");
    let first = take(&here).await;
    other.retry_at(std::time::SystemTime::UNIX_EPOCH).await.unwrap();
    let items = [first, take(&here).await, take(&here).await];
    let mut attempts: Vec<(String, u32)> =
        items.iter().map(|item| (item.value().clone(), item.attempts())).collect();
    attempts.sort();
    assert_eq!(attempts, [("b".to_owned(), 2), ("c".to_owned(), 1), ("d".to_owned(), 1)]);
    for item in items {
        write(item).await.unwrap();
    }
    assert_eq!(written(&server_fixture), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_take_that_is_dropped_while_it_reads_for_others_leaves_them_their_items() {
    let server_fixture = server().await;
    let here = queue(&client(&server_fixture).await);
    put(&queue(&server_fixture.rival), &["a", "b"]).await;
    let reads = When::op(Op::MultiRead).path(&format!("{ITEMS}/*"));
    let held = server_fixture.server.fault(reads, Fault::HoldReply);
    let takes = [(); 2].map(|()| {
        let queue = here.clone();
        tokio::spawn(async move { queue.take().await.unwrap() })
    });
    within("the read of both items", held.hit()).await.unwrap();
    let [first, second] = takes;
    first.abort();
    assert!(within("the drop", first).await.unwrap().is_err_and(|error| error.is_cancelled()));
    held.release();
    write(within("an item", second).await.unwrap().unwrap()).await.unwrap();
    drain(&here).await;
    assert_eq!(written(&server_fixture), ["a", "b"]);
}

#[tokio::test]
async fn a_take_that_nobody_polls_holds_up_no_other_take() {
    let server_fixture = server().await;
    let here = queue(&client(&server_fixture).await);
    put(&queue(&server_fixture.rival), &["a", "b"]).await;
    let reads = When::op(Op::MultiRead).path(&format!("{ITEMS}/*"));
    let held = server_fixture.server.fault(reads, Fault::HoldReply);
    let mut first = Box::pin(here.take());
    let asked = async {
        tokio::select! {
            _ = &mut first => panic!("an item that was not read"),
            () = held.hit() => {}
        }
    };
    within("the read of both items", asked).await.unwrap();
    let second = tokio::spawn({
        let queue = here.clone();
        async move { queue.take().await.unwrap() }
    });
    held.release();
    write(within("an item", second).await.unwrap().unwrap()).await.unwrap();
    write(within("the other item", first).await.unwrap().unwrap()).await.unwrap();
    assert_eq!(written(&server_fixture), ["a", "b"]);
}

/// In Curator's queue of ids each item needs one.
async fn put_in(layout: Layout, queue: &Queue, values: &[&str]) {
    match layout {
        Layout::Id => {
            for value in values {
                assert!(queue.put_once(&(*value).to_owned(), value).await.unwrap());
            }
        }
        _ => put(queue, values).await,
    }
}

/// The directory of the items is not the one of the workers.
#[tokio::test]
async fn items_of_a_peer_that_are_made_anew_are_not_taken_for_the_ones_before() {
    for layout in Layout::OF_PEERS {
        let server_fixture = server().await;
        let here = layout.queue(&client(&server_fixture).await);
        put_in(layout, &here, &["a", "b", "c"]).await;
        take(&here).await.done().await.unwrap();
        server_fixture.rival.znodes().delete_all(layout.items(), 100).await.unwrap();
        put_in(layout, &here, &["d", "e", "f"]).await;
        drain(&here).await;
        assert_eq!(written(&server_fixture), ["d", "e", "f"], "{layout:?}");
    }
}

#[tokio::test]
async fn an_item_that_must_not_be_read_does_not_stop_those_before_it() {
    let server_fixture = server().await;
    let here = queue(&client(&server_fixture).await);
    put(&queue(&server_fixture.rival), &["a", "b"]).await;
    let path = format!("{ITEMS}/{}", server_fixture.server.inspect(super::items)[1]);
    let unread = Acl::new(Permissions::DELETE, "world", "anyone");
    server_fixture.rival.znodes().set_acl(path.as_str(), &unread, Version::Any).await.unwrap();
    write(take(&here).await).await.unwrap();
    let refused = within("a refusal", here.take()).await.unwrap().unwrap_err();
    assert!(refused.to_string().contains(&path), "{refused}");
}
