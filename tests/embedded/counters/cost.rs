//! What a change that fails, or whose answer is lost, leaves to the next one and to others.

use std::time::Duration;

use lockkeeper::error::Outcome;
use lockkeeper::value::CompareAndSet;
use lockkeeper::znodes::CreateMode;
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{COUNTER, add_ones, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

/// The code of a server that has too much to do.
const THROTTLED: ErrorCode = ErrorCode::Other(-127);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_whose_answer_is_lost_keeps_its_writer_node() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client(&server_fixture).await);
        assert_eq!(add_ones(&counter, 2).await.unwrap(), [1, 2]);
        let writer = server_fixture.server.inspect(writers);
        assert_eq!(writer.len(), 1);
        let lost = server_fixture.server.fault(change(), fault);
        let sums = within("the additions", add_ones(&counter, 2)).await.unwrap().unwrap();
        assert_eq!((sums, lost.hits()), (vec![3, 4], 1), "{fault:?}");
        assert_eq!(server_fixture.server.inspect(writers), writer, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_and_a_condition_that_does_not_hold_keep_the_writer_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    assert_eq!(add_ones(&counter, 2).await.unwrap(), [1, 2]);
    let writer = server_fixture.server.inspect(writers);
    assert_eq!(writer.len(), 1);
    assert_eq!(counter.get().await.unwrap(), 2);
    assert_eq!(counter.compare_and_set(5, 6).await.unwrap(), CompareAndSet::Differs(2));
    assert_eq!(counter.increment().await.unwrap(), 3);
    assert_eq!(server_fixture.server.inspect(writers), writer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_node_that_was_not_created_is_created_by_the_next_request_and_not_used_before() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(10).await.unwrap();
    let (server, session) = (&server_fixture.server, server_fixture.sessions_of_actor()[0]);
    let create = When::op(Op::Create2).path("/counters/visits/writer-*");
    let refused = server.fault(create, Fault::Refuse(THROTTLED));
    let reads = When::op(Op::GetData).path(COUNTER).session(session).always();
    let reads = server.fault(reads, Fault::DelayReply(Duration::ZERO));
    let attempts = server.fault(change().always(), Fault::DelayReply(Duration::ZERO));
    assert_eq!(within("the addition", counter.add(1)).await.unwrap().unwrap(), 11);
    assert_eq!((refused.hits(), reads.hits()), (1, 2), "a read behind each create");
    assert_eq!(attempts.hits(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_that_fails_leaves_no_writer_node() {
    let create = When::op(Op::Create2).path("/counters/visits-creation-*");
    for (when, fault) in [(change(), Fault::Refuse(ErrorCode::NoAuth)), (create, Fault::HoldReply)] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (manager, server) = (client(&server_fixture).await, &server_fixture.server);
        manager.znodes().create("/counters", "", CreateMode::Persistent).await.unwrap();
        let counter = counter(&manager.with_operation_timeout(Duration::from_secs(2)).unwrap());
        let hit = server.fault(when, fault);
        let failed = within("the addition", counter.add(7)).await.unwrap().unwrap_err();
        assert_eq!((failed.outcome(), hit.hits()), (Outcome::NotApplied, 1), "{failed}");
        // What is behind a request without an answer waits with it.
        server.drop_connections();
        let cleared = server.wait_until(|machine| children(machine, "/counters").is_empty());
        within("no writer node", cleared).await.unwrap();
        assert_eq!(number_on(&server_fixture), None);
        // With the counter its writer node would end as well.
        drop(counter);
    }
}
