//! A registration through the ends of its sessions.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::error::ErrorKind;
use lockkeeper::presence::PresenceState;
use lockkeeper::view::ViewChange;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, NodeView};
use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::tree::EventKind;
use lockkeeper_testserver::{Fault, Op, When};

use super::{PATH, client, newest_session, node, register, registered, state_is};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder, servers};

#[tokio::test]
async fn the_node_and_its_latest_data_are_back_in_the_next_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let registration = register(&manager, "one");
    let first = registered(&registration).await;
    registration.set_data("two").await.unwrap();
    let mut watch = registration.watch();
    let transcript = server_fixture.server.transcript();
    assert!(server_fixture.server.expire(newest_session(&server_fixture)));
    state_is(&mut watch, |state| matches!(state, PresenceState::Registered { czxid } if czxid > first)).await;
    let session = newest_session(&server_fixture);
    assert_eq!(server_fixture.server.inspect(node), Some((session, "two".to_owned())));
    // Within one round trip: no request about the node is before its create.
    let passed = transcript.passed();
    let is_request =
        |passed: &&Passed| passed.session == session && passed.paths.iter().any(|path| path == PATH);
    let request = passed.iter().find(is_request).unwrap();
    assert_eq!(
        (request.subject, &request.paths[..]),
        (Subject::Request(Op::Create2), &[PATH.to_owned()][..])
    );
}

#[tokio::test]
async fn a_registration_is_missing_since_the_end_of_its_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let registration = register(&manager, "here");
    registered(&registration).await;
    let mut watch = registration.watch();
    let next = server_fixture.server.fault(When::connect(), Fault::HoldRequest);
    let create = server_fixture.server.fault(When::op(Op::Create2).path(PATH), Fault::HoldRequest);
    assert!(server_fixture.server.expire(newest_session(&server_fixture)));
    within("the next session", next.hit()).await.unwrap();
    state_is(&mut watch, |state| matches!(state, PresenceState::Missing { .. })).await;
    let missing = watch.state();
    next.release();
    within("the create", create.hit()).await.unwrap();
    assert_eq!(registration.state(), missing, "the next session is no other begin");
    create.release();
    state_is(&mut watch, PresenceState::is_registered).await;
}

#[tokio::test]
async fn a_mere_reconnect_writes_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let registration = register(&manager, "here");
    let czxid = registered(&registration).await;
    // The confirmations of the lease are transactions that write nothing.
    let writes = [Op::Create, Op::Create2, Op::SetData, Op::Delete];
    let when = When::ops(writes).session(session).always();
    let writes = server_fixture.server.fault(when, Fault::DropConnectionBefore);
    let when = When::op(Op::GetData).path(PATH).session(session).always();
    let reads = server_fixture.server.fault(when, Fault::DelayReply(Duration::ZERO));
    for round in 1..=3 {
        server_fixture.server.drop_connections();
        within("the read after a reconnect", reads.hit_times(round)).await.unwrap();
    }
    server_fixture.round_trip_of_rival().await.unwrap();
    assert_eq!(writes.hits(), 0);
    assert_eq!(registration.state(), PresenceState::Registered { czxid });
    writes.disarm();
    // The watch of the last connection works.
    let mut watch = registration.watch();
    assert!(server_fixture.server.delete_node(PATH));
    state_is(&mut watch, |state| matches!(state, PresenceState::Registered { czxid: now } if now > czxid))
        .await;
}

#[tokio::test]
async fn a_node_of_the_session_that_replaced_ours_is_no_conflict_and_ends_ours() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let earlier = register(&manager, "for the parents");
    registered(&earlier).await;
    earlier.release().await.unwrap();
    let swapped = server_fixture.server.fault(When::connect().session(session), Fault::SwapSession);
    server_fixture.server.drop_connections();
    within("the swap", swapped.hit()).await.unwrap();
    // So the node belongs to the other session, which the next connection carries as well.
    let lost = server_fixture.server.fault(When::op(Op::Create2).path(PATH), Fault::DropConnectionAfter);
    let registration = register(&manager, "here");
    registered(&registration).await;
    assert_eq!(lost.hits(), 1);
    let (owner, _) = server_fixture.server.inspect(node).unwrap();
    assert!(owner != session && owner == newest_session(&server_fixture));
}

/// Reconnects, and meets the node of another process over a connection that nothing has verified: the client
/// has no node that it would be verified by. Its session stays.
async fn conflict_over_a_new_connection(server_fixture: &ServerFixture, here: &ConnectionManager) {
    let server = &server_fixture.server;
    let sessions = server.sessions();
    server.drop_connections();
    let list = When::op(Op::GetEphemerals).session(newest_session(server_fixture));
    let list = server.fault(list, Fault::DelayReply(Duration::ZERO));
    let registration = register(here, "here");
    let mut watch = registration.watch();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    within("the list", list.hit()).await.unwrap();
    for _ in 0..3 {
        // Behind the read of the node.
        here.znodes().read("/").await.unwrap();
    }
    assert_eq!(server.sessions(), sessions);
    assert!(matches!(watch.state(), PresenceState::Conflict { .. }));
}

#[tokio::test]
async fn the_node_of_another_process_does_not_end_the_session_of_a_connection_that_is_not_verified() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = client(&server_fixture).await;
    let theirs = register(&server_fixture.rival, "theirs");
    registered(&theirs).await;
    conflict_over_a_new_connection(&server_fixture, &here).await;
}

/// The list of the session's nodes has those whose path begins as that of the node.
#[tokio::test]
async fn a_node_with_a_longer_name_does_not_show_that_the_session_was_replaced() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = client(&server_fixture).await;
    let theirs = register(&server_fixture.rival, "theirs");
    registered(&theirs).await;
    here.txn().create_with(format!("{PATH}-2"), "ours", CreateMode::Ephemeral).commit().await.unwrap();
    conflict_over_a_new_connection(&server_fixture, &here).await;
}

/// The node that the list shows is ours, and both the one that was read before and the one that is read
/// behind the list are of another process.
#[tokio::test]
async fn a_node_that_was_ours_for_a_moment_does_not_show_that_the_session_was_replaced() {
    // So the answer to the transaction does not show that the session owns the node.
    let server = servers().stat_in_multi(false).start().await.unwrap();
    let rival = builder(&server.connect_string()).connect().await.unwrap();
    let theirs = register(&rival, "theirs");
    registered(&theirs).await;
    let others = server.sessions();
    let here = builder(&server.connect_string()).connect().await.unwrap();
    let sessions = server.sessions();
    let session = *sessions.iter().find(|session| !others.contains(session)).unwrap();
    server.drop_connections();
    let of_here = |op| When::op(op).path(PATH).session(session);
    let seen = server.fault(of_here(Op::GetData), Fault::HoldReply);
    let event = When::event_kind(EventKind::Deleted).path(PATH).session(session);
    let event = server.fault(event, Fault::HoldReply);
    let list = server.fault(of_here(Op::GetEphemerals), Fault::DelayReply(Duration::ZERO));
    let behind = server.fault(of_here(Op::Exists), Fault::HoldRequest);
    let registration = register(&here, "here");
    within("the read before", seen.hit()).await.unwrap();
    theirs.release().await.unwrap();
    let owner_is = |owner: i64| move |machine: &Machine| node(machine).is_some_and(|(of, _)| of == owner);
    let ours = here.txn().create_with(PATH, "ours", CreateMode::Ephemeral);
    let ours = tokio::spawn(async move { ours.commit().await });
    within("our node", server.wait_until(owner_is(session))).await.unwrap();
    // The client hears of the change behind the list.
    seen.release();
    within("the list", list.hit()).await.unwrap();
    event.release();
    within("the read behind the list", behind.hit()).await.unwrap();
    ours.await.unwrap().unwrap();
    assert!(server.delete_node(PATH));
    let theirs = register(&rival, "theirs");
    registered(&theirs).await;
    behind.release();
    let mut watch = registration.watch();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    here.znodes().read("/").await.unwrap();
    assert_eq!(server.sessions(), sessions);
}

#[tokio::test]
async fn a_node_of_an_earlier_session_is_replaced_without_a_gap() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let old = newest_session(&server_fixture);
    let registration = register(&manager, "here");
    let first = registered(&registration).await;
    let view = NodeView::new(&server_fixture.rival, PATH).unwrap();
    within("the view", view.ready()).await.unwrap().unwrap();
    let mut changes = view.changes();

    // The server gives the client another session, and the old one continues with its node.
    let swapped = server_fixture.server.fault(When::connect().session(old), Fault::SwapSession);
    let mut watch = registration.watch();
    server_fixture.server.drop_connections();
    within("the other session", swapped.hit()).await.unwrap();
    state_is(&mut watch, |state| matches!(state, PresenceState::Registered { czxid } if czxid > first)).await;
    assert!(server_fixture.server.sessions().contains(&old), "the old session exists");
    let (owner, data) = server_fixture.server.inspect(node).unwrap();
    assert!(owner != old && data == "here");

    within("the view", view.sync()).await.unwrap().unwrap();
    let seen = async {
        loop {
            let difference = changes.next().await.unwrap();
            if let Some(change) = difference.changes().first() {
                assert!(matches!(change, ViewChange::Recreated { .. }), "a gap: {change:?}");
                return;
            }
        }
    };
    within("the change", seen).await.unwrap();
    // The end of the old session deletes nothing any more.
    assert!(server_fixture.server.expire(old));
    server_fixture.round_trip_of_rival().await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), Some((owner, data)));
}

#[tokio::test]
async fn a_release_is_not_done_while_the_node_of_an_earlier_session_exists() {
    for is_ended in [false, true] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let manager = client(&server_fixture).await;
        let old = newest_session(&server_fixture);
        let registration = register(&manager, "here");
        registered(&registration).await;
        let server = &server_fixture.server;
        let swapped = server.fault(When::connect().session(old), Fault::SwapSession);
        let created = server.fault(When::op(Op::Create2).path(PATH), Fault::HoldReply);
        server.drop_connections();
        within("the other session", swapped.hit()).await.unwrap();
        within("its create", created.hit()).await.unwrap();
        let mut release = std::pin::pin!(registration.release());
        assert!(release.as_mut().now_or_never().is_none());
        // The first look finds no node of the current session, and the second one that of the old session: so
        // there is a third one.
        let looked = server.fault(When::op(Op::Exists).path(PATH).nth(3), Fault::DelayReply(Duration::ZERO));
        created.release();
        tokio::select! {
            biased;
            released = &mut release => panic!("the node exists, and the release ends: {released:?}"),
            looked = within("the third look", looked.hit()) => looked.unwrap(),
        }
        assert_eq!(server.inspect(node), Some((old, "here".to_owned())));
        if is_ended {
            // Nothing looks any more.
            assert!(server.expire(newest_session(&server_fixture)));
            let unknown = within("the release", release).await.unwrap().unwrap_err();
            assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
            continue;
        }
        assert!(server.expire(old));
        within("the release", release).await.unwrap().unwrap();
        assert_eq!(server.inspect(node), None);
    }
}

/// The client has had an earlier session, and the node is not of that one.
#[tokio::test]
async fn a_release_does_not_wait_for_the_node_of_another_process() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let registration = register(&manager, "here");
    registered(&registration).await;
    let next = server_fixture.server.fault(When::connect(), Fault::HoldRequest);
    assert!(server_fixture.server.expire(newest_session(&server_fixture)));
    within("the next session", next.hit()).await.unwrap();
    let theirs = register(&server_fixture.rival, "theirs");
    registered(&theirs).await;
    let mut watch = registration.watch();
    next.release();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    within("the release", registration.release()).await.unwrap().unwrap();
    assert!(server_fixture.server.inspect(node).is_some_and(|(_, data)| data == "theirs"));
}

#[tokio::test]
async fn a_process_that_starts_again_waits_for_the_session_of_its_predecessor() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let old = newest_session(&server_fixture);
    let registration = register(&manager, "before");
    let first = registered(&registration).await;
    let successor = client(&server_fixture).await;
    let again = register(&successor, "after");
    let mut watch = again.watch();
    state_is(&mut watch, |state| state == PresenceState::Conflict { owner_session: old }).await;
    // The old process hangs: its session ends, and its client does not know.
    let when = When::connect().session(old).always();
    let _armed = server_fixture.server.fault(when, Fault::DropConnectionBefore);
    assert!(server_fixture.server.expire(old));
    assert!(registered(&again).await > first);
    let (owner, data) = server_fixture.server.inspect(node).unwrap();
    assert_eq!(data, "after");
    assert!(owner != old);
}

#[tokio::test]
async fn a_shutdown_ends_the_registration() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let registration = register(&manager, "here");
    registered(&registration).await;
    let mut watch = registration.watch();
    manager.shutdown().await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), None);
    state_is(&mut watch, |state| state == PresenceState::Closed).await;
    assert!(registration.registered().await.unwrap_err().is_closed());
}
