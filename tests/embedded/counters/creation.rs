//! The first change, which creates the node, and a node that others delete meanwhile.

use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::error::ErrorKind;
use lockkeeper::value::CompareAndSet;
use lockkeeper::znodes::CreateMode;
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::{COUNTER, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

/// A client, and the parent of the counter.
async fn client_and_parent(server_fixture: &ServerFixture) -> ConnectionManager {
    let manager = client(server_fixture).await;
    manager.znodes().create("/counters", "", CreateMode::Persistent).await.unwrap();
    manager
}

/// The counter, or nodes beside it.
fn names(machine: &Machine) -> Vec<String> {
    children(machine, "/counters")
}

/// Another client deletes the counter with everything below it.
fn delete_counter(server_fixture: &ServerFixture) {
    for writer in server_fixture.server.inspect(writers) {
        // Its client may have deleted it meanwhile.
        server_fixture.server.delete_node(&format!("{COUNTER}/{writer}"));
    }
    server_fixture.server.delete_node(COUNTER);
}

/// An attempt that waited in the server is applied or refused.
async fn arrived(server_fixture: &ServerFixture) {
    let late = server_fixture.server.wait_until(|machine| machine.late_writes() > 0);
    within("the late attempt", late).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_whose_counter_is_deleted_before_the_search_counts_once() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client_and_parent(&server_fixture).await);
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), fault);
        let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        let adding = tokio::spawn(async move { counter.add(7).await });
        within("the fault", lost.hit()).await.unwrap();
        within("the reconnect", back.hit()).await.unwrap();
        delete_counter(&server_fixture);
        back.release();
        assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 7, "{fault:?}");
        let left = (fault == Fault::DropConnectionBefore).then_some(7);
        assert_eq!(number_on(&server_fixture), left, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_conditional_change_is_reported_as_applied_although_another_counter_is_there_since() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let here = counter(&client_and_parent(&server_fixture).await);
        let there = counter(&server_fixture.rival);
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), fault);
        let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        let setting = tokio::spawn(async move { here.compare_and_set(0, 7).await });
        within("the fault", lost.hit()).await.unwrap();
        within("the reconnect", back.hit()).await.unwrap();
        delete_counter(&server_fixture);
        within("the other's change", there.set(5)).await.unwrap().unwrap();
        back.release();
        let set = within("the change", setting).await.unwrap().unwrap().unwrap();
        let was_applied = fault == Fault::DropConnectionAfter;
        let expected = if was_applied { CompareAndSet::Set(7) } else { CompareAndSet::Differs(5) };
        assert_eq!((set, number_on(&server_fixture)), (expected, Some(5)), "{fault:?}");
    }
}

/// The request of the first attempt waits in a server. The second attempt ends the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_attempt_of_a_first_addition_creates_no_counter_after_the_call() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = counter(&client_and_parent(&server_fixture).await);
    let late = server_fixture.server.fault(change(), Fault::HoldRequest);
    let adding = tokio::spawn(async move { here.add(7).await });
    within("the first attempt", late.hit()).await.unwrap();
    server_fixture.server.drop_connections();
    assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 7);
    delete_counter(&server_fixture);
    let cleared = server_fixture.server.wait_until(|machine| names(machine).is_empty());
    within("the end of the creation", cleared).await.unwrap();
    late.release();
    arrived(&server_fixture).await;
    assert_eq!(number_on(&server_fixture), None);
}

/// The first attempt is applied without an answer, and what asks for it has no answer either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_counts_once_although_the_search_for_it_has_no_answer() {
    for op in [Op::SetData, Op::GetData] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let here = counter(&client_and_parent(&server_fixture).await);
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), Fault::DropConnectionAfter);
        let search = When::op(op).path("/counters/visits-creation-*").session(session);
        let search = server_fixture.server.fault(search, Fault::DropConnectionBefore);
        assert_eq!(within("the addition", here.add(7)).await.unwrap().unwrap(), 7, "{op:?}");
        assert_eq!((lost.hits(), search.hits(), number_on(&server_fixture)), (1, 1, Some(7)), "{op:?}");
    }
}

/// The request of the first attempt waits in a server, and another client creates the counter meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_to_a_counter_that_another_client_has_created_leaves_no_attempt_to_create_it() {
    for loses_the_fence in [false, true] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let here = counter(&client_and_parent(&server_fixture).await);
        let there = counter(&server_fixture.rival);
        let session = server_fixture.sessions_of_actor()[0];
        let late = server_fixture.server.fault(change().session(session), Fault::HoldRequest);
        let fence = When::op(Op::SetData).path("/counters/*").session(session);
        let fence = server_fixture.server.fault(
            fence,
            match loses_the_fence {
                true => Fault::DropConnectionAfter,
                false => Fault::DelayReply(Duration::ZERO),
            },
        );
        let adding = tokio::spawn(async move { here.add(7).await });
        within("the first attempt", late.hit()).await.unwrap();
        within("the other's addition", there.add(100)).await.unwrap().unwrap();
        server_fixture.server.drop_connections();
        assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 107);
        assert!(fence.hits() >= 1);
        delete_counter(&server_fixture);
        late.release();
        arrived(&server_fixture).await;
        assert_eq!(number_on(&server_fixture), None, "{loses_the_fence}");
    }
}

/// No attempt is answered. When the call has ended, its writer node is deleted, and then the attempts are
/// applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_of_unknown_outcome_is_not_applied_once_its_writer_node_is_deleted() {
    for is_first in [true, false] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let manager = client_and_parent(&server_fixture).await;
        if !is_first {
            within("a number", counter(&server_fixture.rival).set(10)).await.unwrap().unwrap();
        }
        let there = if is_first { Vec::new() } else { vec!["visits".to_owned()] };
        let alone = |machine: &Machine| names(machine) == there && writers(machine).is_empty();
        within("no writer node", server_fixture.server.wait_until(alone)).await.unwrap();
        let (server, session) = (&server_fixture.server, server_fixture.sessions_of_actor()[0]);
        let late = server.fault(change().session(session).always(), Fault::HoldRequest);
        let here = counter(&manager.with_operation_timeout(Duration::from_secs(1)).unwrap());
        let unknown = within("the addition", here.add(7)).await.unwrap().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
        // What is behind the attempts on their connection waits with them.
        server.drop_connections();
        within("the end of the writer node", server.wait_until(alone)).await.unwrap();
        late.release();
        arrived(&server_fixture).await;
        assert_eq!(number_on(&server_fixture), (!is_first).then_some(10));
        drop(late);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_whose_session_ends_before_the_answer_is_unknown() {
    for fault in [Fault::HoldRequest, Fault::HoldReply] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client_and_parent(&server_fixture).await);
        let session = server_fixture.sessions_of_actor()[0];
        let held = server_fixture.server.fault(change(), fault);
        let adding = tokio::spawn(async move { counter.add(1).await });
        within("the addition", held.hit()).await.unwrap();
        delete_counter(&server_fixture);
        assert!(server_fixture.server.expire(session));
        let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unknown, "{fault:?} {unknown}");
        assert_eq!(number_on(&server_fixture), None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_whose_writer_node_is_deleted_before_the_search_counts_at_most_once() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client_and_parent(&server_fixture).await);
        let (server, session) = (&server_fixture.server, server_fixture.sessions_of_actor()[0]);
        let lost = server.fault(change().session(session), fault);
        let back = server.fault(When::connect().session(session), Fault::HoldRequest);
        let adding = tokio::spawn(async move { counter.add(1).await });
        within("the fault", lost.hit()).await.unwrap();
        within("the reconnect", back.hit()).await.unwrap();
        for name in server.inspect(names).iter().filter(|name| name.starts_with("visits-creation-")) {
            assert!(server.delete_node(&format!("/counters/{name}")));
        }
        back.release();
        let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
        let was_applied = fault == Fault::DropConnectionAfter;
        assert_eq!(number_on(&server_fixture), was_applied.then_some(1), "{fault:?}");
    }
}
