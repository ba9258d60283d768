//! Views that may not grow, and views that may not read.

use lockkeeper::error::{Exceeded, Refusal, ViewError};
use lockkeeper::view::{ViewBounds, ViewState};
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ChildrenView, ConnectionManager, Error, Mutex, NodeView, TreeView};
use lockkeeper_testserver::fault::{Passed, Subject, Transcript};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::witness::{Witness, copy_of, tree_of};
use super::{ROOT, client, newest_session, put, soon};
use crate::limit::within;
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
    let view = TreeView::new_bounded(&manager, ROOT, bounds).unwrap();
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
    // Room is not looked for at each comparison.
    let again = When::ops([Op::AddWatch, Op::Multi]).session(newest_session(&server_fixture)).always();
    let again = server_fixture.server.fault(again, Fault::DelayReply(Default::default()));
    let read = When::op(Op::GetData).path(&path(31)).always();
    let read = server_fixture.server.fault(read, Fault::DelayReply(Default::default()));
    within("comparisons", read.hit_times(3)).await.unwrap();
    assert_eq!(again.hits(), 0);
    drop((again, read));
    for (number, view) in views.iter().enumerate() {
        let mut witness = Witness::new(view.changes());
        put(&server_fixture.rival, &path(number), "new").await;
        assert_eq!(witness.changed().await.snapshot().root().unwrap().data(), b"new");
        server_fixture.rival.znodes().write(path(number), "newer", Version::Any).await.unwrap();
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
        TreeView::new_decoded(&manager, ROOT, ViewBounds::default().events(2), |_, _| Ok::<(), Error>(()))
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

/// The nodes below the root whose data was asked for.
fn asked(transcript: &Transcript) -> usize {
    let is_read = |passed: &Passed| matches!(passed.subject, Subject::Request(Op::GetData | Op::MultiRead));
    let passed = transcript.passed();
    let paths = passed.iter().filter(|passed| is_read(passed)).flat_map(|passed| &passed.paths);
    paths.filter(|path| path.starts_with("/large-")).filter(|path| path.matches('/').count() == 2).count()
}

#[tokio::test]
async fn a_view_of_large_nodes_reads_few_at_a_time() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let large = "x".repeat(900_000);
    for number in 0..30 {
        put(&server_fixture.rival, &format!("/large-0/{number}"), &large).await;
    }
    let manager = client(&server_fixture).await;
    let transcript = server_fixture.server.transcript();
    // The first 16 nodes are read two at a time, and show their size.
    let third = When::op(Op::GetData).path("/large-0/*").nth(3);
    let held = server_fixture.server.fault(third, Fault::HoldReply);
    let view = ChildrenView::new(&manager, "/large-0").unwrap();
    within("a read of one node", held.hit()).await.unwrap();
    server_fixture.round_trip_of_rival().await.unwrap();
    // The one that waits, and one more.
    assert!(asked(&transcript) <= 16 + 4, "{} reads", asked(&transcript));
    held.release();
    assert_eq!(soon("the load", view.ready()).await.len(), 31);
    assert_eq!(asked(&transcript), 30, "a node was read twice");
}

/// An inspection, and reads of many nodes at the same time.
#[tokio::test]
async fn an_inspection_of_large_nodes_reads_few_at_a_time() {
    let server_fixture = ServerFixture::start().await.unwrap();
    for number in 0..40 {
        let name = format!("/large-0/_c_{number:08}-0000-4000-8000-000000000000-lock-{number:010}");
        server_fixture.rival.znodes().create(name, b"x", CreateMode::Ephemeral).await.unwrap();
    }
    let manager = client(&server_fixture).await;
    let transcript = server_fixture.server.transcript();
    let held = server_fixture.server.fault(When::op(Op::GetData).path("/large-0/*"), Fault::HoldReply);
    let inspection = tokio::spawn({
        let mutex = Mutex::new(&manager, "/large-0").unwrap();
        async move { mutex.inspect().await.unwrap().contenders().len() }
    });
    let first = server_fixture.server.wait_until(|_| asked(&transcript) >= 16);
    within("the first reads", first).await.unwrap();
    let read = tokio::spawn(async move { manager.znodes().read("/large-0/another").await.unwrap() });
    server_fixture.round_trip_of_rival().await.unwrap();
    assert_eq!(asked(&transcript), 16, "before any answer");
    held.release();
    assert_eq!(within("the inspection", inspection).await.unwrap().unwrap(), 40);
    assert!(within("the read", read).await.unwrap().unwrap().is_none());
    assert_eq!(asked(&transcript), 41);
}
