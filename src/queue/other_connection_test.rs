//! Reads under a hold that another connection carries than the one that was brought up to date for them.

use std::time::Duration;

use futures::FutureExt;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{Fault, Op, When};

use super::test_fixture::held_lock;
use crate::hold::{Read, ReadResult};
use crate::time::deadline::Deadline;

/// The answer that says that the connection is up to date, and the end of this connection, arrive before the
/// reads are sent. They wait for the next connection then, which no sync has brought up to date.
#[tokio::test]
async fn reads_are_repeated_after_a_sync_if_another_connection_carried_them() {
    let (server, queue, held) = held_lock().await;
    drop(held);
    let data = Read::Data("/lock".parse().unwrap());
    let queue = queue.with_reads(&[data]).unwrap();
    let mut held = queue.acquire(Deadline::never()).await.unwrap();
    // The reads that were sent with the create.
    let _ = held.read(Deadline::never()).await.unwrap();
    let session = held.session().clone();
    let first = session.connection();
    server.drop_connections();
    session.reconnected(first).await;

    let sync = server.fault(When::op(Op::Multi).path("/"), Fault::HoldReply);
    let transcript = server.transcript();
    let mut reading = Box::pin(held.read(Deadline::never()));
    assert!(reading.as_mut().now_or_never().is_none());
    sync.hit().await;
    sync.release();
    // The answer to this arrives behind the one to the sync.
    session.read(|wire| wire.exists("/lock")).await.unwrap();
    let away = server.fault(When::connect().always(), Fault::DropConnectionBefore);
    let second = session.live_connection();
    server.drop_connections();
    session.interrupted(second).await;
    assert!(reading.as_mut().now_or_never().is_none());
    drop(away);

    let results = tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap().unwrap();
    assert!(matches!(results[..], [ReadResult::Data { .. }]), "{results:?}");
    let is_read = |subject| subject == Subject::Request(Op::GetData);
    assert_eq!(transcript.passed().into_iter().filter(|passed| is_read(passed.subject)).count(), 2);
}
