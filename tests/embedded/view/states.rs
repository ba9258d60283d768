//! The states of a view, and what it asks the servers for in each.

use lockkeeper::error::Refusal;
use lockkeeper::view::{ViewBounds, ViewState};
use lockkeeper::{Error, NodeView, TreeView};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::witness::Witness;
use super::{ROOT, client, newest_session, put, soon};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

/// `THROTTLEDOP`.
const THROTTLED: ErrorCode = ErrorCode::Other(-127);

/// What a view reads by.
const READS: [Op; 4] = [Op::GetData, Op::MultiRead, Op::GetChildren2, Op::Exists];

#[tokio::test]
async fn a_view_is_loading_until_its_first_reads_are_answered() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "").await;
    let first = server_fixture.server.fault(When::ops(READS).path(ROOT), Fault::HoldReply);
    let view = NodeView::new(&client(&server_fixture).await, ROOT).unwrap();
    within("the first read", first.hit()).await.unwrap();
    assert_eq!(view.state(), ViewState::Loading);
    first.release();
    soon("the first load", view.ready()).await;
    assert_eq!(view.state(), ViewState::Live);
}

#[tokio::test]
async fn a_view_with_more_events_than_its_bound_is_stale_until_all_nodes_are_compared() {
    let server_fixture = ServerFixture::start().await.unwrap();
    for name in ["1", "2", "3"] {
        put(&server_fixture.rival, &format!("{ROOT}/{name}"), "").await;
    }
    let bounds = ViewBounds::default().events(1);
    let manager = builder(&server_fixture.server.connect_string());
    let manager =
        manager.session_timeout(SESSION * 60).operation_timeout(SESSION * 60).connect().await.unwrap();
    let view = TreeView::new_bounded(&manager, ROOT, bounds).unwrap();
    soon("the first load", view.ready()).await;
    let mut witness = Witness::new(view.changes());
    let reads = When::ops(READS).session(newest_session(&server_fixture));
    let first = server_fixture.server.fault(reads, Fault::HoldRequest);
    let watches = When::ops([Op::AddWatch, Op::Multi]).session(newest_session(&server_fixture)).always();
    let watches = server_fixture.server.fault(watches, Fault::DelayReply(Default::default()));
    for name in ["1", "2", "3"] {
        put(&server_fixture.rival, &format!("{ROOT}/{name}"), "changed").await;
    }
    witness.state_is(ViewState::Stale).await;
    first.release();
    witness.state_is(ViewState::Live).await;
    assert_eq!(view.snapshot().get("3").unwrap().data(), b"changed");
    // A view whose watch ends is stale for that.
    assert_eq!(watches.hits(), 0, "of a watch that was set again");
}

/// A watch tells what happens: nothing is compared from time to time.
#[tokio::test]
async fn a_view_with_a_watch_reads_nothing_while_nothing_happens() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "").await;
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 10);
    let view = NodeView::new(&manager.connect().await.unwrap(), ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let session = newest_session(&server_fixture);
    let reads = server_fixture
        .server
        .fault(When::ops(READS).session(session).always(), Fault::DelayReply(Default::default()));
    // A view without a watch would read several times before it.
    let ping = server_fixture
        .server
        .fault(When::op(Op::Ping).session(session).always(), Fault::DelayReply(Default::default()));
    within("a ping", ping.hit()).await.unwrap();
    assert_eq!(reads.hits(), 0);
}

/// Otherwise it could show less than an earlier connection has shown.
#[tokio::test]
async fn a_view_reads_nothing_before_the_quorum_has_answered() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "").await;
    let manager = client(&server_fixture).await;
    soon("the session of the views", NodeView::new(&manager, "/other").unwrap().ready()).await;
    let session = newest_session(&server_fixture);
    let refused = When::op(Op::Multi).session(session).times(3);
    let refused = server_fixture.server.fault(refused, Fault::Refuse(THROTTLED));
    let view = NodeView::new(&manager, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    assert_eq!(refused.hits(), 3);
}

#[tokio::test]
async fn a_root_that_may_not_be_watched_is_a_state() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let refused = When::op(Op::AddWatch).path(ROOT).always();
    let _refused = server_fixture.server.fault(refused, Fault::Refuse(ErrorCode::NoAuth));
    let view = NodeView::new(&client(&server_fixture).await, ROOT).unwrap();
    let error = within("the state", view.ready()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
}

/// The view looks again after a session timeout: its callers do not wait for that.
#[tokio::test]
async fn a_sync_of_a_view_whose_root_may_not_be_read_is_refused_at_once() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "").await;
    let reads = When::ops(READS).path(ROOT).always();
    let reads = server_fixture.server.fault(reads, Fault::Refuse(ErrorCode::NoAuth));
    let manager = builder(&server_fixture.server.connect_string());
    let manager =
        manager.session_timeout(SESSION * 60).operation_timeout(SESSION * 60).connect().await.unwrap();
    let view = NodeView::new(&manager, ROOT).unwrap();
    within("the state", view.ready()).await.unwrap().unwrap_err();
    let asked = reads.hits();
    let error = within("an answer", view.sync()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    assert_eq!(reads.hits(), asked, "it was read again");
}
