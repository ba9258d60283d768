//! Waits for a transaction that this process knows.

use futures::poll;
use lockkeeper::view::ViewState;
use lockkeeper::znodes::Version;
use lockkeeper::{NodeView, TreeView};
use lockkeeper_testserver::{Fault, Op, When};

use super::witness::Witness;
use super::{ROOT, client, newest_session, put, soon};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// The view has not received the event of the transaction.
#[tokio::test]
async fn a_view_of_a_node_waits_for_a_transaction_that_it_does_not_show() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "before").await;
    let view = NodeView::new(&client(&server_fixture).await, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let event = When::event().session(newest_session(&server_fixture));
    let event = server_fixture.server.fault(event, Fault::HoldReply);
    let stat = server_fixture.rival.znodes().write(ROOT, "after", Version::Any).await.unwrap();
    within("the event", event.hit()).await.unwrap();
    let mut shown = Box::pin(view.await_until(stat.mzxid));
    assert!(poll!(&mut shown).is_pending(), "it shows {:?}", view.node());
    event.release();
    let shown = soon("the transaction", shown).await;
    assert_eq!(shown.root().unwrap().data(), b"after");
}

#[tokio::test]
async fn a_view_of_a_node_that_shows_a_transaction_sends_no_request_to_wait_for_it() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "1").await;
    let view = NodeView::new(&client(&server_fixture).await, ROOT).unwrap();
    let snapshot = soon("the first load", view.ready()).await;
    assert_eq!(snapshot.state(), ViewState::Live);
    let requests = When::request().session(newest_session(&server_fixture)).always();
    let requests = server_fixture.server.fault(requests, Fault::DropConnectionBefore);
    let shown = view.await_until(snapshot.root().unwrap().stat().mzxid);
    assert_eq!(soon("the transaction", shown).await.revision(), snapshot.revision());
    assert_eq!(requests.hits(), 0);
}

/// The change of the root comes after that of a large child, and is read before it.
#[tokio::test]
async fn a_view_of_a_tree_that_shows_a_transaction_on_its_root_waits_for_the_earlier_ones() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (child, large) = (format!("{ROOT}/large"), "x".repeat(200_000));
    put(&server_fixture.rival, &child, &large).await;
    let view = TreeView::new(&client(&server_fixture).await, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let mut witness = Witness::new(view.changes());
    let read = When::ops([Op::GetData, Op::MultiRead]).path(&child);
    let read = server_fixture.server.fault(read.session(newest_session(&server_fixture)), Fault::HoldRequest);
    put(&server_fixture.rival, &child, "after").await;
    let stat = server_fixture.rival.znodes().write(ROOT, "after", Version::Any).await.unwrap();
    let changed = witness.changed().await;
    assert_eq!(changed.snapshot().root().unwrap().data(), b"after");
    let mut shown = Box::pin(view.await_until(stat.mzxid));
    assert!(poll!(&mut shown).is_pending(), "it shows {:?}", view.snapshot().get("large"));
    within("the read of the child", read.hit()).await.unwrap();
    read.release();
    let shown = soon("the transaction", shown).await;
    assert_eq!(shown.get("large").unwrap().data(), b"after");
}
