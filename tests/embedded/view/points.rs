//! Waits for a transaction that this process knows.

use futures::poll;
use lockkeeper::NodeView;
use lockkeeper::view::ViewState;
use lockkeeper::znodes::Version;
use lockkeeper_testserver::{Fault, When};

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
