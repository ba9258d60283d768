//! Views that may not grow, and views that may not read.

use lockkeeper::{
    ANY_VERSION, ConnectionManager, Error, Exceeded, NodeView, Refusal, TreeView, ViewBounds, ViewError,
    ViewState,
};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::witness::{Witness, copy_of, tree_of};
use super::{ROOT, client, put, soon};
use crate::server_fixture::{SESSION, ServerFixture, builder};

/// A client that looks again soon, as its session is short. Its calls wait for longer.
async fn impatient(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).operation_timeout(SESSION * 20);
    client.connect().await.unwrap()
}

#[tokio::test]
async fn a_tree_above_a_bound_is_a_state_and_not_an_end() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // The view tries again after a session timeout.
    let manager = impatient(&server_fixture).await;
    let bounds = ViewBounds::default().nodes(3);
    put(&server_fixture.rival, &format!("{ROOT}/1"), "").await;
    let view = TreeView::with_bounds(&manager, ROOT, bounds).unwrap();
    let small = soon("the first load", view.ready()).await;
    let mut witness = Witness::new(view.changes());
    for name in ["2", "3"] {
        put(&server_fixture.rival, &format!("{ROOT}/{name}"), "").await;
    }
    witness.state_is(ViewState::TooLarge(Exceeded::Nodes)).await;
    assert!(view.snapshot().len() <= 3 && view.snapshot().get("1").is_some());
    assert!(small.len() == 2);
    for error in [view.ready().await.unwrap_err(), view.sync().await.unwrap_err()] {
        assert!(
            matches!(error.recipe(), Some(ViewError::TooLarge { exceeded: Exceeded::Nodes, .. })),
            "{error}"
        );
    }
    assert!(server_fixture.rival.znodes().delete(format!("{ROOT}/2")).await.unwrap());
    witness.state_is(ViewState::Live).await;
    soon("a sync", view.sync()).await;
    witness.read();
    server_fixture.server.inspect(|machine| assert_eq!(witness.copy(), &tree_of(machine, ROOT, 9)));
}

#[tokio::test]
async fn a_root_that_may_not_be_read_is_a_state_and_not_an_end() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = impatient(&server_fixture).await;
    put(&server_fixture.rival, ROOT, "secret").await;
    let refused = When::op(Op::GetData).path(ROOT).times(2);
    let fault = server_fixture.server.fault(refused, Fault::Refuse(ErrorCode::NoAuth));
    let view = NodeView::new(&manager, ROOT).unwrap();
    let error = view.ready().await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    assert!(matches!(view.state(), ViewState::Refused(Refusal::NoAuth)));
    let mut witness = Witness::new(view.changes());
    witness.state_is(ViewState::Live).await;
    assert_eq!(view.node().unwrap().data(), b"secret");
    drop(fault);
}

#[tokio::test]
async fn a_child_that_may_not_be_read_is_left_out() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    put(&server_fixture.rival, &format!("{ROOT}/open"), "").await;
    let view = TreeView::new(&manager, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let secret = format!("{ROOT}/secret");
    let refused = When::op(Op::GetData).path(&secret).always();
    let fault = server_fixture.server.fault(refused, Fault::Refuse(ErrorCode::NoAuth));
    put(&server_fixture.rival, &secret, "").await;
    let snapshot = soon("a sync", view.sync()).await;
    assert_eq!((snapshot.len(), snapshot.state()), (2, ViewState::Live));
    drop(fault);
    put(&server_fixture.rival, &secret, "open").await;
    assert_eq!(soon("a sync", view.sync()).await.len(), 3);
}

#[tokio::test]
async fn a_view_without_room_for_a_watch_compares_from_time_to_time() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = impatient(&server_fixture).await;
    // The paths of some thirty such nodes are all that one session may watch.
    let path = |number: usize| format!("/{number:04}{}", "x".repeat(3900));
    let views: Vec<NodeView> = (0..32).map(|number| NodeView::new(&manager, path(number)).unwrap()).collect();
    for view in &views {
        soon("the first load", view.ready()).await;
    }
    let watches = server_fixture.server.inspect(|machine| machine.watch_count(0));
    assert!(watches < 2 * views.len(), "all {watches} watches fit");
    for (number, view) in views.iter().enumerate() {
        let mut witness = Witness::new(view.changes());
        put(&server_fixture.rival, &path(number), "new").await;
        assert_eq!(witness.changed().await.snapshot().root().unwrap().data(), b"new");
        server_fixture.rival.znodes().write(path(number), "newer", ANY_VERSION).await.unwrap();
        let synced = soon("a sync", view.sync()).await;
        assert_eq!(synced.root().unwrap().data(), b"newer");
    }
}

#[tokio::test]
async fn more_events_than_the_bound_cause_a_comparison_and_lose_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    put(&server_fixture.rival, ROOT, "").await;
    let view =
        TreeView::with_decoder(&manager, ROOT, ViewBounds::default().events(2), |_, _| Ok::<(), Error>(()))
            .unwrap();
    soon("the first load", view.ready()).await;
    let mut witness = Witness::new(view.changes());
    // The reads wait, so the events pile up.
    let held = server_fixture.server.fault(When::ops([Op::GetData, Op::MultiRead]), Fault::HoldReply);
    let paths: Vec<String> = (0..20).map(|number| format!("{ROOT}/{number}")).collect();
    for path in &paths {
        put(&server_fixture.rival, path, "").await;
    }
    held.release();
    let snapshot = soon("a sync", view.sync()).await;
    server_fixture.server.inspect(|machine| assert_eq!(copy_of(&snapshot), tree_of(machine, ROOT, 9)));
    witness.read();
    assert_eq!(witness.copy(), &copy_of(&snapshot));
}
