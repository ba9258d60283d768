//! Takes whose items an earlier request has read.

use std::time::Duration;

use lockkeeper::config::{Acl, Permissions};
use lockkeeper::znodes::Version;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};
use tokio::time::Instant;

use super::{ITEMS, Layout, Queue, client, drain, put, queue, server, take, write, written};
use crate::limit::within;
use crate::server_fixture::builder;

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

#[tokio::test]
async fn an_item_that_is_gone_leaves_the_others_that_were_read_with_it() {
    let server_fixture = server().await;
    let here = queue(&client(&server_fixture).await);
    put(&queue(&server_fixture.rival), &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]).await;
    let reads = When::op(Op::MultiRead).path(&format!("{ITEMS}/*")).always();
    let reads = server_fixture.server.fault(reads, Fault::DelayReply(Duration::ZERO));
    let began = Instant::now();
    for item in ["a", "b", "c", "d", "e"] {
        let taken = take(&here).await;
        assert_eq!(taken.value(), item);
        taken.done().await.unwrap();
    }
    // The next look shows an item that is gone when it is read.
    let look = When::ops([Op::GetChildren, Op::GetChildren2]).path(ITEMS);
    let look = server_fixture.server.fault(look, Fault::HoldReply);
    let deleting = async {
        within("a look", look.hit()).await.unwrap();
        assert!(server_fixture.server.delete_node(&format!("{ITEMS}/100-0000000005")));
        look.release();
    };
    tokio::join!(drain(&here), deleting);
    assert_eq!(written(&server_fixture).concat(), "ghij");
    // Two at first, then three, then all five. On a slow machine they are read again after a second.
    assert!(reads.hits() == 3 || began.elapsed() > Duration::from_secs(1), "{}", reads.hits());
}

#[tokio::test]
async fn the_time_of_a_take_ends_while_its_read_has_no_answer() {
    let server_fixture = server().await;
    // A request alone, and a connection without answers, end later than the test waits.
    let hour = Duration::from_secs(3600);
    let here = builder(&server_fixture.server.connect_string()).operation_timeout(hour).session_timeout(hour);
    let here = queue(&here.connect().await.unwrap());
    put(&queue(&server_fixture.rival), &["a", "b", "c", "d"]).await;
    write(take(&here).await).await.unwrap();
    write(take(&here).await).await.unwrap();
    let reads = When::op(Op::MultiRead).path(&format!("{ITEMS}/*")).always();
    let held = server_fixture.server.fault(reads, Fault::HoldReply);
    let taking = async {
        // On a busy machine the first ones may end before they read.
        loop {
            let error = here.take_timeout(Duration::from_millis(200)).await.unwrap_err();
            assert!(error.is_timeout(), "{error}");
            if held.hits() > 0 {
                break;
            }
        }
    };
    within("the end of a call whose read is sent", taking).await.unwrap();
    held.disarm();
    held.release();
    drain(&here).await;
    assert_eq!(written(&server_fixture), ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn servers_that_do_not_read_several_nodes_at_once_serve_each_item_by_itself() {
    for (fault, hits) in [(Fault::Refuse(ErrorCode::Unimplemented), 1), (Fault::DropConnectionBefore, 3)] {
        let server_fixture = server().await;
        let here = queue(&client(&server_fixture).await);
        put(&queue(&server_fixture.rival), &["a", "b", "c", "d", "e", "f"]).await;
        let several = server_fixture.server.fault(When::op(Op::MultiRead).always(), fault);
        drain(&here).await;
        assert_eq!(written(&server_fixture), ["a", "b", "c", "d", "e", "f"], "{fault:?}");
        assert_eq!(several.hits(), hits, "{fault:?}");
    }
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
