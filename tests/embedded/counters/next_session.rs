//! What the next session asks for, and finds, of an attempt that had no answer.

use std::time::Duration;

use lockkeeper::Counter;
use lockkeeper::error::ErrorKind;
use lockkeeper::znodes::CreateMode;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{COUNTER, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

/// The writer nodes below the counter.
const WRITERS: &str = "/counters/visits/writer-*";

/// A counter that is 10, and the session of its client.
async fn ten(server_fixture: &ServerFixture) -> (Counter, i64) {
    let counter = counter(&client(server_fixture).await);
    counter.add(10).await.unwrap();
    (counter, server_fixture.sessions_of_actor()[0])
}

/// The path of the only writer node.
fn writer(server_fixture: &ServerFixture) -> String {
    let names = server_fixture.server.inspect(writers);
    assert_eq!(names.len(), 1, "{names:?}");
    format!("{COUNTER}/{}", names[0])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_node_of_an_earlier_session_is_looked_for_once() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (counter, session) = ten(&server_fixture).await;
    let server = &server_fixture.server;
    let first = server.fault(change(), Fault::HoldRequest);
    let second = server.fault(change().nth(2), Fault::HoldRequest);
    let adding = tokio::spawn(async move { counter.add(1).await });
    within("the first attempt", first.hit()).await.unwrap();
    let searches = When::op(Op::GetData).path(&writer(&server_fixture)).always();
    let searches = server.fault(searches, Fault::DelayReply(Duration::ZERO));
    assert!(server.expire(session));
    within("the second attempt", second.hit()).await.unwrap();
    // So the second attempt is refused, and the third one has another writer node.
    assert!(server.delete_node(&writer(&server_fixture)));
    second.release();
    assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 11);
    assert_eq!(searches.hits(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_that_an_earlier_session_applied_needs_no_writer_node_in_the_next_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (counter, session) = ten(&server_fixture).await;
    let server = &server_fixture.server;
    let created = When::op(Op::Create2).path(WRITERS).always();
    let created = server.fault(created, Fault::DelayReply(Duration::ZERO));
    let lost = server.fault(change().session(session), Fault::DropConnectionAfter);
    // The servers say that the session is over, and have its nodes yet.
    let over = server.fault(When::connect().session(session), Fault::Refuse(ErrorCode::SessionExpired));
    assert_eq!(within("the addition", counter.add(1)).await.unwrap().unwrap(), 11);
    assert_eq!((lost.hits(), over.hits(), created.hits()), (1, 1, 1), "the one of the lost attempt");
}

/// The attempt waits in a server, and is applied when the next session has searched for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_that_an_earlier_session_applies_late_is_found() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (counter, session) = ten(&server_fixture).await;
    let server = &server_fixture.server;
    let late = server.fault(change().session(session), Fault::HoldRequest);
    let over = server.fault(When::connect().session(session), Fault::Refuse(ErrorCode::SessionExpired));
    let adding = tokio::spawn(async move { counter.add(1).await });
    within("the attempt", late.hit()).await.unwrap();
    let next = server.fault(When::op(Op::Create2).path(WRITERS), Fault::HoldRequest);
    server.drop_connections();
    within("the next writer node", next.hit()).await.unwrap();
    late.release();
    let arrived = server.wait_until(|machine| machine.late_writes() > 0);
    within("the late attempt", arrived).await.unwrap();
    assert_eq!((over.hits(), number_on(&server_fixture)), (1, Some(11)));
    next.release();
    assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 11);
    assert_eq!(number_on(&server_fixture), Some(11));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_has_a_known_outcome_while_the_writer_node_of_its_session_exists() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (manager, server) = (client(&server_fixture).await, &server_fixture.server);
        manager.znodes().create("/counters", "", CreateMode::Persistent).await.unwrap();
        let (counter, session) = (counter(&manager), server_fixture.sessions_of_actor()[0]);
        let lost = server.fault(change().session(session), fault);
        let over = server.fault(When::connect().session(session), Fault::Refuse(ErrorCode::SessionExpired));
        assert_eq!(within("the addition", counter.add(7)).await.unwrap().unwrap(), 7, "{fault:?}");
        assert_eq!((lost.hits(), over.hits(), number_on(&server_fixture)), (1, 1, Some(7)), "{fault:?}");
    }
}

/// The first attempt is in doubt, and the second one, of the next session, meets a change of another client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_whose_outcome_has_become_unknown_reads_the_counter_no_more() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, session) = ten(&server_fixture).await;
    let (there, server) = (counter(&server_fixture.rival), &server_fixture.server);
    let first = server.fault(change(), Fault::HoldRequest);
    let second = server.fault(change().nth(2), Fault::HoldRequest);
    let adding = tokio::spawn(async move { here.add(1).await });
    within("the first attempt", first.hit()).await.unwrap();
    assert!(server.expire(session));
    within("the second attempt", second.hit()).await.unwrap();
    assert_eq!(within("the other's addition", there.add(100)).await.unwrap().unwrap(), 110);
    let reads = When::op(Op::GetData).path(COUNTER).session(server_fixture.sessions_of_actor()[0]).always();
    let reads = server.fault(reads, Fault::DelayReply(Duration::ZERO));
    second.release();
    let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
    assert_eq!((unknown.kind(), reads.hits()), (ErrorKind::Unknown, 0), "{unknown}");
    assert_eq!(number_on(&server_fixture), Some(110));
}
