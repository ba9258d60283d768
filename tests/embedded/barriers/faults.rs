//! Lost answers, sessions that end, nodes that are deleted by hand.

use std::time::Duration;

use lockkeeper::error::{ErrorKind, LossReason, Outcome};
use lockkeeper::manager::State;
use lockkeeper::{DoubleBarrier, Error, Inside};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{BARRIER, client, is_open, member, members, members_become};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder};

async fn leave_all(inside: impl IntoIterator<Item = Inside>) {
    let tasks: Vec<_> = inside.into_iter().map(|inside| tokio::spawn(inside.leave())).collect();
    for task in tasks {
        within("a member leaves", task).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds_continue_whichever_answer_is_lost() {
    for op in [Op::Create2, Op::Multi, Op::GetChildren, Op::GetChildren2, Op::GetData, Op::Exists] {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            for nth in 1..=3 {
                let server_fixture = ServerFixture::start().await.unwrap();
                let (one, two) = (client(&server_fixture).await, client(&server_fixture).await);
                let _lost =
                    server_fixture.server.fault(When::op(op).path(&format!("{BARRIER}/**")).nth(nth), fault);
                let _list = server_fixture.server.fault(When::op(op).path(BARRIER).nth(nth), fault);
                let (a, b) = (member(&one, 2, "a"), member(&two, 2, "b"));
                for _ in 0..2 {
                    let both = async { tokio::try_join!(a.enter(), b.enter()) };
                    let both = within(&format!("both, {op:?} {nth} {fault:?}"), both).await.unwrap().unwrap();
                    leave_all([both.0, both.1]).await;
                }
                members_become(&server_fixture, 0).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_first_create_is_applied_late_is_one_member() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let one = client(&server_fixture).await;
    // The directory is there.
    leave_all([within("alone", member(&one, 1, "first").enter()).await.unwrap().unwrap()]).await;
    let create = When::op(Op::Create2).path(&format!("{BARRIER}/*"));
    let late = server_fixture.server.fault(create, Fault::HoldRequest);
    let a = member(&one, 2, "a");
    let entering = tokio::spawn(async move { a.enter().await });
    within("the create", late.hit()).await.unwrap();
    server_fixture.server.drop_connections();
    members_become(&server_fixture, 1).await;
    let (made, before) = server_fixture.server.inspect(|machine| (members(machine), machine.zxid()));
    late.release();
    // A refused write has a zxid, too.
    let applied = server_fixture.server.wait_until(|machine| machine.zxid() > before);
    within("the late create", applied).await.unwrap();
    assert_eq!(server_fixture.server.inspect(members), made);
    let inside = within("another one", member(&server_fixture.rival, 2, "b").enter()).await.unwrap().unwrap();
    leave_all([within("both", entering).await.unwrap().unwrap().unwrap(), inside]).await;
}

#[tokio::test]
async fn a_create_that_is_applied_after_its_member_has_left_leaves_no_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // The clean-up takes as long as a session.
    let one = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 4);
    let one = one.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    // The directory is there.
    leave_all([within("alone", member(&one, 1, "first").enter()).await.unwrap().unwrap()]).await;
    let of_actor = |op| When::op(op).path(&format!("{BARRIER}/*")).session(session);
    let late = server_fixture.server.fault(of_actor(Op::Create2), Fault::HoldRequest);
    let a = member(&one, 1, "a");
    let entering = tokio::spawn(async move { a.enter().await });
    within("the create", late.hit()).await.unwrap();
    server_fixture.server.drop_connections();
    let inside = within("the member", entering).await.unwrap().unwrap().unwrap();
    let looked = server_fixture.server.fault(of_actor(Op::Exists), Fault::HoldReply);
    let leaving = tokio::spawn(inside.leave());
    // The create arrives behind the first look for its node.
    within("the look", looked.hit()).await.unwrap();
    assert!(server_fixture.server.inspect(members).is_empty(), "made after the member has left");
    late.release();
    members_become(&server_fixture, 1).await;
    looked.release();
    within("the end", leaving).await.unwrap().unwrap().unwrap();
    members_become(&server_fixture, 0).await;
    assert!(server_fixture.server.sessions().contains(&session), "the node ended with its session");
}

/// So the create is the likely cause, as one is that is larger than the servers accept.
#[tokio::test]
async fn a_member_whose_create_never_has_an_answer_nor_makes_a_node_gets_an_error() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let one = client(&server_fixture).await;
    leave_all([within("alone", member(&one, 1, "first").enter()).await.unwrap().unwrap()]).await;
    let create = When::op(Op::Create2).path(&format!("{BARRIER}/*")).always();
    let unanswered = server_fixture.server.fault(create, Fault::DropConnectionBefore);
    let error = within("an error", member(&one, 1, "a").enter()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unanswerable { .. }), "{error}");
    drop(unanswered);
    leave_all([within("alone", member(&one, 1, "a").enter()).await.unwrap().unwrap()]).await;
}

#[tokio::test]
async fn a_member_whose_node_is_found_enters_however_many_answers_were_lost() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let one = client(&server_fixture).await;
    leave_all([within("alone", member(&one, 1, "first").enter()).await.unwrap().unwrap()]).await;
    // More than a create without an answer and without a node is sent.
    let create = When::op(Op::Create2).path(&format!("{BARRIER}/*")).times(12);
    let lost = server_fixture.server.fault(create, Fault::DropConnectionAfter);
    let inside = within("the member", member(&one, 1, "a").enter()).await.unwrap().unwrap();
    assert_eq!((lost.hits(), server_fixture.server.inspect(members).len()), (12, 1));
    leave_all([inside]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_does_not_take_the_node_that_a_session_before_created_for_its_own() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let one = builder(&server_fixture.server.connect_string()).operation_timeout(SESSION * 20);
    let one = one.connect().await.unwrap();
    leave_all([within("alone", member(&one, 1, "first").enter()).await.unwrap().unwrap()]).await;
    let session = server_fixture.sessions_of_actor()[0];
    let create = When::op(Op::Create2).path(&format!("{BARRIER}/*")).session(session);
    let unanswered = server_fixture.server.fault(create, Fault::HoldReply);
    let mut transitions = one.transitions();
    let a = member(&one, 1, "a");
    let entering = tokio::spawn(async move { a.enter().await });
    within("the create", unanswered.hit()).await.unwrap();
    // The server is paused for longer than the lease of the session, and continues with the session.
    server_fixture.server.stop().await;
    let loss = async { while !matches!(transitions.next().await.unwrap().state, State::Lost(..)) {} };
    within("the loss", loss).await.unwrap();
    server_fixture.server.restart().await.unwrap();
    let inside = within("the member", entering).await.unwrap().unwrap().unwrap();
    assert!(inside.is_valid());
    assert_eq!(owners(&server_fixture, session), [false]);
    leave_all([inside]).await;
    members_become(&server_fixture, 0).await;
}

/// For each member's node: whether this session owns it.
fn owners(server_fixture: &ServerFixture, session: i64) -> Vec<bool> {
    server_fixture.server.inspect(|machine| {
        let owner = |name| machine.tree().node(&format!("{BARRIER}/{name}")).unwrap().stat().ephemeral_owner;
        members(machine).into_iter().map(|name| owner(name) == session).collect()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_session_ends_gets_an_error_and_the_others_do_not_hang() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let one = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let (a, b) = (member(&one, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let entering = tokio::spawn({
        let a = a.clone();
        async move { a.enter().await }
    });
    members_become(&server_fixture, 1).await;
    // The member knows of its node: without the answer to the create it would enter in the next session.
    let waits = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
    within("its wait", waits).await.unwrap();
    assert!(server_fixture.server.expire(session));
    let lost = within("the loss", entering).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(&lost, Error::Lost(_)), "{lost}");

    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    let session = *server_fixture.server.sessions().last().unwrap();
    assert!(server_fixture.server.expire(session));
    assert_eq!(within("the loss", in_a.lost()).await.unwrap().reason, LossReason::SessionExpired);
    within("the other one leaves", in_b.leave()).await.unwrap().unwrap();
    assert!(in_a.leave().await.unwrap_err().is_lost());
    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    leave_all([in_a, in_b]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_whose_members_all_crash_inside_is_followed_by_another() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (one, two) = (client(&server_fixture).await, client(&server_fixture).await);
    let (a, b) = (member(&one, 2, "a"), member(&two, 2, "b"));
    let crashed = within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    for session in server_fixture.sessions_of_actor() {
        assert!(server_fixture.server.expire(session));
    }
    members_become(&server_fixture, 0).await;
    within("the losses", async { tokio::join!(crashed.0.lost(), crashed.1.lost()) }).await.unwrap();
    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    assert!(in_a.is_valid() && in_b.is_valid());
    leave_all([in_a, in_b]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_delete_has_no_answer_in_time_leaves_in_the_background() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let inside = within("the member", member(&manager, 1, "a").enter()).await.unwrap().unwrap();
    let node = format!("{BARRIER}/*");
    let silent = server_fixture.server.fault(When::op(Op::Multi).path(&node).always(), Fault::HoldRequest);
    let leaving = tokio::spawn(inside.leave_timeout(Duration::from_millis(300)));
    within("the delete", silent.hit()).await.unwrap();
    let late = within("the end", leaving).await.unwrap().unwrap().unwrap_err();
    // It is deleted later, so nothing says that it was not done.
    let meaning = (late.kind(), late.outcome(), late.is_transient());
    assert_eq!(meaning, (ErrorKind::Unreleased, Outcome::Unknown, false), "{late}");
    drop(silent);
    members_become(&server_fixture, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_session_ends_while_it_leaves_has_left() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let both = within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    // The check of the other one's node, and the delete. A confirmation of the hold has one path.
    let nodes = [format!("{BARRIER}/*"), format!("{BARRIER}/*")];
    let delete = When::op(Op::Multi).paths(&nodes).session(session);
    let delete = server_fixture.server.fault(delete, Fault::HoldRequest);
    let leaving = tokio::spawn(both.0.leave());
    within("the delete", delete.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    members_become(&server_fixture, 1).await;
    // It waits for the other one, in its next session.
    both.1.leave().await.unwrap();
    within("the end", leaving).await.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_a_read_puts_no_delete_in_doubt() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let inside = within("the member", member(&manager, 1, "a").enter()).await.unwrap().unwrap();
    let lists = [Op::GetChildren, Op::GetChildren2]
        .map(|op| server_fixture.server.fault(When::op(op).path(BARRIER), Fault::HoldRequest));
    let leaving = tokio::spawn(inside.leave());
    let held = async {
        let [one, other] = lists.each_ref().map(|list| list.hit());
        futures::future::select(std::pin::pin!(one), std::pin::pin!(other)).await;
    };
    within("the list", held).await.unwrap();
    for name in server_fixture.server.inspect(members) {
        assert!(server_fixture.server.delete_node(&format!("{BARRIER}/{name}")));
    }
    server_fixture.server.drop_connections();
    // Another client deleted the node, and no delete of this one can have done so.
    let left = within("the end", leaving).await.unwrap().unwrap();
    assert!(left.unwrap_err().is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_node_is_deleted_by_hand_gets_an_error() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (a, b) = (member(&manager, 2, "a"), member(&server_fixture.rival, 2, "b"));
    let entering = tokio::spawn({
        let a = a.clone();
        async move { a.enter().await }
    });
    members_become(&server_fixture, 1).await;
    let name = server_fixture.server.inspect(members).remove(0);
    assert!(server_fixture.server.delete_node(&format!("{BARRIER}/{name}")));
    assert!(matches!(within("the loss", entering).await.unwrap().unwrap().unwrap_err(), Error::Lost(_)));
    let (in_a, in_b) =
        within("both", async { tokio::try_join!(a.enter(), b.enter()) }).await.unwrap().unwrap();
    for name in server_fixture.server.inspect(members) {
        assert!(server_fixture.server.delete_node(&format!("{BARRIER}/{name}")));
    }
    let left = within("both leave", async { tokio::join!(in_a.leave(), in_b.leave()) }).await.unwrap();
    assert!(left.0.unwrap_err().is_lost() && left.1.unwrap_err().is_lost());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_shutdown_nobody_enters() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let barrier = member(&manager, 2, "a");
    let entering = tokio::spawn({
        let barrier = barrier.clone();
        async move { barrier.enter().await }
    });
    members_become(&server_fixture, 1).await;
    manager.shutdown().await.unwrap();
    assert!(within("the end", entering).await.unwrap().unwrap().unwrap_err().is_closed());
    assert!(within("the end", barrier.enter()).await.unwrap().unwrap_err().is_closed());
    members_become(&server_fixture, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_is_not_opened_with_a_member_that_crashed_meanwhile() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (one, two) = (client(&server_fixture).await, client(&server_fixture).await);
    let ready = format!("{BARRIER}/ready");
    let opening = server_fixture.server.fault(When::op(Op::Multi).path(&ready).always(), Fault::HoldRequest);
    let enter = |barrier: DoubleBarrier| tokio::spawn(async move { barrier.enter().await });
    let crashing = enter(member(&one, 2, "crashes"));
    members_become(&server_fixture, 1).await;
    let node = format!("{BARRIER}/{}", server_fixture.server.inspect(members).remove(0));
    let staying = enter(member(&two, 2, "stays"));
    within("both open the barrier", opening.hit_times(2)).await.unwrap();
    assert!(server_fixture.server.delete_node(&node));
    assert!(within("the loss", crashing).await.unwrap().unwrap().unwrap_err().is_lost());
    let before = server_fixture.server.inspect(Machine::zxid);
    opening.release();
    // A refused write has a zxid, too.
    let both = server_fixture.server.wait_until(|machine| machine.zxid() >= before + 2);
    within("both transactions", both).await.unwrap();
    assert!(!server_fixture.server.inspect(is_open), "opened with one member");
    drop(opening);
    let joining = enter(member(&one, 2, "joins"));
    let inside = within("both", async { (staying.await.unwrap(), joining.await.unwrap()) }).await.unwrap();
    leave_all([inside.0.unwrap(), inside.1.unwrap()]).await;
}
