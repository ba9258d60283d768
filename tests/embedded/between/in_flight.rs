//! Faults between the sending of a transaction and its commit, which may be late, over a connection that has
//! ended.

use std::time::Duration;

use futures::poll;
use lockkeeper::Mutex;
use lockkeeper_testserver::{Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder, queue_nodes};

const WRITTEN: &str = "/written";

/// The server has read the transaction, the client has dropped it, and the link has broken since.
#[tokio::test]
async fn a_lock_is_not_handed_off_in_memory_while_a_dropped_transaction_may_still_be_committed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let session = server_fixture.server.sessions()[0];
    let mutex = Mutex::new(&server_fixture.rival, LOCK).unwrap();
    let held = mutex.acquire().await.unwrap();
    let mine = held.path().to_owned();
    let next = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    server_fixture.queue_length_becomes(2).await.unwrap();
    let waiter = server_fixture.server.inspect(queue_nodes).into_iter().find(|path| *path != mine).unwrap();
    // By then the waiter knows its predecessor.
    server_fixture.round_trip_of_rival().await.unwrap();

    let written = When::op(Op::Multi).path(WRITTEN).session(session);
    let written = server_fixture.server.fault(written, Fault::HoldRequest);
    let mut txn = Box::pin(held.txn().create(WRITTEN, "").commit());
    assert!(poll!(&mut txn).is_pending());
    within("the transaction", written.hit()).await.unwrap();
    drop(txn);
    server_fixture.server.drop_connections();
    server_fixture.round_trip_of_rival().await.unwrap();

    // The delete alone, or after a check of the waiter's node.
    let alone = server_fixture.server.fault(When::op(Op::Delete).path(&mine), Fault::HoldRequest);
    let checking = When::op(Op::Multi).paths(&[waiter.as_str(), mine.as_str()]);
    let checking = server_fixture.server.fault(checking, Fault::HoldRequest);
    drop(held);
    tokio::select! {
        () = alone.hit() => {}
        () = checking.hit() => {}
    }
    written.release();
    let committed = server_fixture.server.wait_until(|machine| machine.tree().node(WRITTEN).is_some());
    within("the late commit", committed).await.unwrap();
    assert!(!next.is_finished(), "a transaction of the previous holder was committed under the next hold");
    alone.release();
    checking.release();
    within("the next grant", next).await.unwrap().unwrap().release().await.unwrap();
}

/// No server of the failure model is so late. The session may live for weeks, and the node would block every
/// contender.
#[tokio::test]
async fn a_create_that_is_applied_behind_the_janitors_second_search_is_found_by_a_later_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = builder(&server.connect_string()).session_timeout(SESSION * 4).connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let mutex = Mutex::new(&actor, LOCK).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();

    let create = server.fault(When::create().session(session), Fault::HoldRequest);
    let searches = When::op(Op::Sync).path(LOCK).session(session).times(2);
    let searches = server.fault(searches, Fault::DelayRequest(Duration::ZERO));
    let mut acquire = Box::pin(mutex.acquire());
    assert!(poll!(&mut acquire).is_pending());
    within("the create", create.hit()).await.unwrap();
    drop(acquire);
    server.drop_connections();
    within("the second search", searches.hit_times(2)).await.unwrap();
    // Answers come in order: with this one, that of the list behind the sync has come.
    let answer = async { while actor.znodes().read("/zookeeper").await.is_err() {} };
    within("an answer", answer).await.unwrap();
    create.release();
    server_fixture.queue_length_becomes(1).await.unwrap();
    server_fixture.queue_length_becomes(0).await.unwrap();
}
