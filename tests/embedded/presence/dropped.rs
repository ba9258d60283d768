//! A registration that is dropped at any moment leaves no node.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper::Registration;
use lockkeeper::manager::State;
use lockkeeper::presence::{OnDeletion, PresenceState};
use lockkeeper_testserver::{Fault, Op, When};

use super::{PATH, client, gone, newest_session, node, register, registered, state_is};
use crate::limit::{becomes, within};
use crate::server_fixture::{SESSION, ServerFixture, builder};

/// So long that a busy machine does not end a session, and so short that a test can wait for it: a client
/// that lost the answer to a create gives the path back only when no late create can be under way.
const RARELY_ENDED: Duration = Duration::from_secs(10);

/// Waits until the server has nothing of the client at the path, and the client has nothing to do.
async fn nothing_is_left(
    server_fixture: &ServerFixture,
    manager: &lockkeeper::ConnectionManager,
    case: &str,
) {
    // A later registration of the same manager gets the path when the earlier one is cleaned up.
    let next = register(manager, "next");
    within(case, next.registered()).await.unwrap().unwrap();
    let released = next.release().await;
    assert!(released.is_ok(), "{case}: {released:?}");
    assert_eq!(server_fixture.server.inspect(node), None, "{case}");
    assert_eq!(manager.health().pending_deletes, 0, "{case}");
}

#[tokio::test]
async fn a_drop_while_a_request_is_in_flight_leaves_no_node() {
    for op in [Op::Create2, Op::CreateContainer, Op::GetData, Op::SetData] {
        for is_lost in [false, true] {
            let server_fixture = ServerFixture::start().await.unwrap();
            let server = builder(&server_fixture.server.connect_string());
            let manager = server.session_timeout(RARELY_ENDED).connect().await.unwrap();
            let session = newest_session(&server_fixture);
            let armed = server_fixture.server.fault(When::op(op).session(session), Fault::HoldReply);
            let registration = register(&manager, "here");
            let writing = async { registration.set_data("there").await };
            tokio::select! {
                biased;
                () = armed.hit() => {}
                written = writing => { written.unwrap(); }
            }
            drop(registration);
            if is_lost {
                let mut transitions = manager.transitions();
                server_fixture.server.drop_connections();
                // The next registration is not to create its node before: a create without an answer holds up
                // a release.
                let cut = async {
                    while !matches!(transitions.next().await.unwrap().state, State::Suspended(_)) {}
                };
                within("the cut", cut).await.unwrap();
            }
            armed.release();
            nothing_is_left(&server_fixture, &manager, &format!("{op:?}, its answer lost: {is_lost}")).await;
        }
    }
}

#[tokio::test]
async fn a_node_that_is_not_read_again_before_the_drop_is_deleted() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let read = When::op(Op::GetData).path(PATH).session(newest_session(&server_fixture));
    let watched = server_fixture.server.fault(read.clone(), Fault::DelayReply(Duration::ZERO));
    let registration = register(&manager, "here");
    within("the watch", watched.hit()).await.unwrap();
    // The watch fires, and its read has no answer: the node may be that of another process now.
    let unanswered = server_fixture.server.fault(read, Fault::HoldReply);
    server_fixture.rival.znodes().write(PATH, "theirs", -1).await.unwrap();
    within("the read", unanswered.hit()).await.unwrap();
    drop(registration);
    server_fixture.server.drop_connections();
    // Not by a later registration of the manager, which would take the node for its own.
    let deleted = server_fixture.server.wait_until(|machine| node(machine).is_none());
    within("the delete", deleted).await.unwrap();
    nothing_of(&manager).await;
}

#[tokio::test]
async fn a_create_that_is_applied_late_leaves_no_node_after_the_drop() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // The clean-up takes as long as a session.
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    registered(&register(&manager, "for the parents")).await;
    let of_actor = |op| When::op(op).path(PATH).session(session);
    let late = server_fixture.server.fault(of_actor(Op::Create2), Fault::HoldRequest);
    let looked = server_fixture.server.fault(of_actor(Op::Exists), Fault::HoldReply);
    let registration = register(&manager, "late");
    within("the create", late.hit()).await.unwrap();
    drop(registration);
    server_fixture.server.drop_connections();
    // The create arrives behind the first look for its node.
    within("the look", looked.hit()).await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), None, "made after the drop");
    late.release();
    let applied = server_fixture.server.wait_until(|machine| node(machine).is_some());
    within("the late create", applied).await.unwrap();
    looked.release();
    nothing_of(&manager).await;
    gone(&server_fixture).await;
}

#[tokio::test]
async fn a_delete_whose_answer_is_lost_never_deletes_the_node_of_another_process() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (one, other) = (client(&server_fixture).await, client(&server_fixture).await);
    let session = server_fixture.sessions_of_actor()[0];
    let first = register(&one, "first");
    registered(&first).await;
    let second = register(&other, "second");
    let lost = server_fixture.server.fault(When::op(Op::Delete).session(session), Fault::DropConnectionAfter);
    let (released, czxid) = tokio::join!(first.release(), registered(&second));
    released.unwrap();
    assert_eq!(lost.hits(), 1);
    nothing_of(&one).await;
    assert_eq!(server_fixture.server.inspect(node).unwrap().1, "second");
    assert_eq!(registered(&second).await, czxid);
}

#[tokio::test]
async fn a_process_that_is_cut_off_neither_deletes_nor_writes_the_node_of_another_process() {
    for is_written in [false, true] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (here, there) = (client(&server_fixture).await, client(&server_fixture).await);
        let session = server_fixture.sessions_of_actor()[0];
        let cut_off = register(&here, "first");
        registered(&cut_off).await;
        let other = Registration::register_with(&there, PATH, "second", OnDeletion::End).unwrap();
        let is_conflict = |state| matches!(state, PresenceState::Conflict { .. });
        state_is(&mut other.watch(), is_conflict).await;
        let connect = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        server_fixture.server.drop_connections();
        within("the cut", connect.hit()).await.unwrap();
        // The session lives, an operator deletes its node, and the other process creates one of the same
        // version.
        assert!(server_fixture.server.delete_node(PATH));
        let czxid = registered(&other).await;
        if is_written {
            let mut watch = cut_off.watch();
            assert!(cut_off.set_data("late").now_or_never().is_none());
            tokio::task::yield_now().await;
            connect.release();
            state_is(&mut watch, is_conflict).await;
        } else {
            drop(cut_off);
            becomes("the clean-up", || here.health().pending_deletes > 0).await.unwrap();
            connect.release();
            nothing_of(&here).await;
        }
        let found =
            server_fixture.server.inspect(|machine| machine.tree().node(PATH).map(|node| node.stat()));
        let found = found.expect("the node of the other process");
        assert_eq!((found.czxid, found.mzxid), (czxid.get(), czxid.get()), "written: {is_written}");
        assert_eq!(registered(&other).await, czxid);
    }
}

async fn nothing_of(manager: &lockkeeper::ConnectionManager) {
    becomes("the end of the clean-up", || manager.health().pending_deletes == 0).await.unwrap();
}

#[tokio::test]
async fn dropped_calls_are_completed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let registration: Registration = register(&manager, "here");
    registered(&registration).await;
    let armed = server_fixture.server.fault(When::op(Op::SetData).session(session), Fault::HoldRequest);
    tokio::select! {
        biased;
        () = armed.hit() => {}
        written = registration.set_data("there") => written.unwrap(),
    }
    armed.release();
    let written =
        server_fixture.server.wait_until(|machine| node(machine).is_some_and(|(_, data)| data == "there"));
    within("the data", written).await.unwrap();

    let armed = server_fixture.server.fault(When::op(Op::Delete).session(session), Fault::HoldRequest);
    tokio::select! {
        biased;
        () = armed.hit() => {}
        released = registration.release() => released.unwrap(),
    }
    armed.release();
    gone(&server_fixture).await;
    assert_eq!(newest_session(&server_fixture), session, "at {PATH}");
}
