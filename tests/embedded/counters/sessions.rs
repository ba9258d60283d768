//! The end of the session, before the answer and after it.

use std::time::Duration;

use lockkeeper::error::ErrorKind;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{COUNTER, add_ones, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_continues_in_the_next_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    assert_eq!(add_ones(&counter, 2).await.unwrap(), [1, 2]);
    assert!(server_fixture.server.expire(server_fixture.sessions_of_actor()[0]));
    let sent = server_fixture.server.fault(change().always(), Fault::DelayReply(Duration::ZERO));
    let sums = within("the additions", add_ones(&counter, 2)).await.unwrap().unwrap();
    assert_eq!((sums, number_on(&server_fixture)), (vec![3, 4], Some(4)));
    assert_eq!(sent.hits(), 2, "none with the writer node of the last session");
    assert_eq!(server_fixture.server.inspect(writers).len(), 1, "that of the next session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_that_was_not_applied_is_repeated_in_the_next_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(10).await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let held = server_fixture.server.fault(change().nth(1), Fault::HoldRequest);
    let adding = tokio::spawn(async move { counter.add(1).await });
    within("the addition", held.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_whose_session_ends_before_the_answer_is_unknown_and_counted_at_most_once() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(10).await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    let adding = tokio::spawn({
        let counter = counter.clone();
        async move { counter.add(1).await }
    });
    within("the addition", held.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
    assert_eq!((unknown.kind(), unknown.is_transient()), (ErrorKind::Unknown, false), "{unknown}");
    assert_eq!(within("the next one", counter.add(1)).await.unwrap().unwrap(), 12);
}

/// The servers say that the session is over, and have its nodes yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_is_found_by_the_writer_node_of_an_earlier_session_that_still_exists() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (counter, server) = (counter(&client(&server_fixture).await), &server_fixture.server);
        counter.add(10).await.unwrap();
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server.fault(change().session(session), fault);
        let over = server.fault(When::connect().session(session), Fault::Refuse(ErrorCode::SessionExpired));
        assert_eq!(within("the addition", counter.add(1)).await.unwrap().unwrap(), 11, "{fault:?}");
        assert_eq!((lost.hits(), over.hits(), number_on(&server_fixture)), (1, 1, Some(11)), "{fault:?}");
    }
}

/// The first attempt is applied, the second one is refused for that reason, and the search for the first one
/// fails. So the third one is made from the state that the first one has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_counts_at_most_once_although_a_later_attempt_met_the_node_unchanged() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (counter, server) = (counter(&client(&server_fixture).await), &server_fixture.server);
    counter.add(10).await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let third = server.fault(change().session(session).nth(3), Fault::HoldRequest);
    let first = server.fault(change().session(session), Fault::DropConnectionAfter);
    let search = When::op(Op::GetData).path(&format!("{COUNTER}/*")).session(session);
    let search = server.fault(search, Fault::DropConnectionBefore);
    let adding = tokio::spawn(async move { counter.add(1).await });
    within("the first attempt", first.hit()).await.unwrap();
    within("the search", search.hit()).await.unwrap();
    within("the third attempt", third.hit()).await.unwrap();
    assert!(server.expire(session));
    let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
    assert_eq!(number_on(&server_fixture), Some(11));
}

/// The first attempt is not applied, and the refusal of the second one shows that. So only the third one is
/// in doubt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_whose_earlier_attempts_are_refuted_is_repeated_in_the_next_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
    here.add(10).await.unwrap();
    let (server, session) = (&server_fixture.server, server_fixture.sessions_of_actor()[0]);
    let third = server.fault(change().session(session).nth(3), Fault::HoldRequest);
    let first = server.fault(change().session(session), Fault::DropConnectionBefore);
    let back = server.fault(When::connect().session(session), Fault::HoldRequest);
    let adding = tokio::spawn(async move { here.add(1).await });
    within("the first attempt", first.hit()).await.unwrap();
    within("the reconnect", back.hit()).await.unwrap();
    assert_eq!(within("the other's addition", there.add(100)).await.unwrap().unwrap(), 110);
    back.release();
    within("the third attempt", third.hit()).await.unwrap();
    assert!(server.expire(session));
    assert_eq!(within("the addition", adding).await.unwrap().unwrap().unwrap(), 111);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_is_unknown_if_others_add_before_the_next_session_does() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
    here.add(10).await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let held = server_fixture.server.fault(change().session(session), Fault::HoldRequest);
    let adding = tokio::spawn(async move { here.add(1).await });
    within("the addition", held.hit()).await.unwrap();
    let next = server_fixture.server.fault(When::connect(), Fault::HoldRequest);
    assert!(server_fixture.server.expire(session));
    within("the next session", next.hit()).await.unwrap();
    assert_eq!(there.add(100).await.unwrap(), 110);
    next.release();
    let unknown = within("the addition", adding).await.unwrap().unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
    assert_eq!(there.get().await.unwrap(), 110);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_of_a_closed_manager_says_so() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let counter = counter(&manager);
    counter.add(1).await.unwrap();
    manager.shutdown().await.unwrap();
    assert!(within("an error", counter.add(1)).await.unwrap().unwrap_err().is_closed());
    assert!(within("an error", counter.get()).await.unwrap().unwrap_err().is_closed());
}
