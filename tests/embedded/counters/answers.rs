//! Answers that are lost, and calls that are dropped.

use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper::error::{CounterError, ErrorKind, Outcome};
use lockkeeper::value::CompareAndSet;
use lockkeeper::{Counter, Error};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{COUNTER, add_ones, change, client, counter, number_on, writers};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_whose_answer_is_lost_counts_once() {
    // The first change creates the node, later ones write.
    for nth in 1..=4 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let server_fixture = ServerFixture::start().await.unwrap();
            let counter = counter(&client(&server_fixture).await);
            let lost = server_fixture.server.fault(change().nth(nth), fault);
            let sums = within("the additions", add_ones(&counter, 4)).await.unwrap().unwrap();
            assert_eq!((sums, lost.hits()), (vec![1, 2, 3, 4], 1), "{fault:?} at {nth}");
            assert_eq!(number_on(&server_fixture), Some(4), "{fault:?} at {nth}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_counts_once_although_others_add_while_its_answer_is_lost() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let manager = client(&server_fixture).await;
        let (here, there) = (counter(&manager), counter(&server_fixture.rival));
        assert_eq!(here.add(10).await.unwrap(), 10);
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), fault);
        // The client comes back only after the other one has added.
        let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        let adding = tokio::spawn(async move { here.add(1).await });
        within("the fault", lost.hit()).await.unwrap();
        within("the reconnect", back.hit()).await.unwrap();
        let other = within("the other's addition", there.add(100)).await.unwrap().unwrap();
        back.release();
        let own = within("the addition", adding).await.unwrap().unwrap().unwrap();
        let was_applied = fault == Fault::DropConnectionAfter;
        assert_eq!((own, other), if was_applied { (11, 111) } else { (111, 110) }, "{fault:?}");
        assert_eq!(number_on(&server_fixture), Some(111));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_addition_counts_once_although_another_client_creates_the_counter_meanwhile() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let manager = client(&server_fixture).await;
        manager.znodes().create("/counters", "", lockkeeper::znodes::CreateMode::Persistent).await.unwrap();
        let (here, there) = (counter(&manager), counter(&server_fixture.rival));
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), fault);
        let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        let adding = tokio::spawn(async move { here.add(1).await });
        within("the fault", lost.hit()).await.unwrap();
        within("the reconnect", back.hit()).await.unwrap();
        let other = within("the other's addition", there.add(100)).await.unwrap().unwrap();
        back.release();
        let own = within("the addition", adding).await.unwrap().unwrap().unwrap();
        let was_applied = fault == Fault::DropConnectionAfter;
        assert_eq!((own, other), if was_applied { (1, 101) } else { (101, 100) }, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_change_is_reported_as_applied_also_if_the_first_search_for_it_fails() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
        // The second one creates a writer node, and reads for that.
        here.set(1).await.unwrap();
        here.set(1).await.unwrap();
        let session = server_fixture.sessions_of_actor()[0];
        let lost = server_fixture.server.fault(change().session(session), fault);
        let back = server_fixture.server.fault(When::connect().session(session), Fault::HoldRequest);
        let search =
            server_fixture.server.fault(When::op(Op::GetData).session(session), Fault::DropConnectionBefore);
        let setting = tokio::spawn(async move { here.compare_and_set(1, 7).await });
        within("the change", lost.hit()).await.unwrap();
        let other = within("the other's addition", there.add(100)).await.unwrap().unwrap();
        back.release();
        within("the search", search.hit()).await.unwrap();
        let set = within("the change", setting).await.unwrap().unwrap().unwrap();
        let was_applied = fault == Fault::DropConnectionAfter;
        let expected = if was_applied { CompareAndSet::Set(7) } else { CompareAndSet::Differs(101) };
        assert_eq!((set, other), (expected, if was_applied { 107 } else { 101 }), "{fault:?}");
    }
}

/// The attempt is applied, and the search for it fails. Before the next search another client deletes the
/// writer node, and changes the number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_change_whose_writer_node_is_deleted_before_the_search_is_of_unknown_outcome() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
    here.set(1).await.unwrap();
    here.set(1).await.unwrap();
    let (server, session) = (&server_fixture.server, server_fixture.sessions_of_actor()[0]);
    let lost = server.fault(change().session(session), Fault::DropConnectionAfter);
    let back = server.fault(When::connect().session(session).nth(2), Fault::HoldRequest);
    let search = When::op(Op::GetData).path(&format!("{COUNTER}/*")).session(session);
    let search = server.fault(search, Fault::DropConnectionBefore);
    let setting = tokio::spawn(async move { here.compare_and_set(1, 7).await });
    within("the change", lost.hit()).await.unwrap();
    within("the search", search.hit()).await.unwrap();
    within("the reconnect", back.hit()).await.unwrap();
    for writer in server.inspect(writers) {
        assert!(server.delete_node(&format!("{COUNTER}/{writer}")));
    }
    assert_eq!(within("the other's addition", there.add(100)).await.unwrap().unwrap(), 107);
    back.release();
    let unknown = within("the change", setting).await.unwrap().unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_change_whose_answer_is_lost_reports_what_became_of_it() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client(&server_fixture).await);
        let _lost = server_fixture.server.fault(change().times(2), fault);
        let set = within("the change", counter.compare_and_set(0, 7)).await.unwrap().unwrap();
        assert_eq!(set, CompareAndSet::Set(7), "{fault:?}");
        let set = within("the change", counter.compare_and_set(0, 9)).await.unwrap().unwrap();
        assert_eq!(set, CompareAndSet::Differs(7), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn additions_that_wait_together_are_one_transaction_and_each_has_its_own_sum() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(100).await.unwrap();
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    let first = tokio::spawn({
        let counter = counter.clone();
        async move { counter.increment().await }
    });
    within("the first addition", held.hit()).await.unwrap();
    let changes = server_fixture.server.fault(change().always(), Fault::DelayReply(Duration::ZERO));
    let mut others: Vec<_> = (0..50).map(|_| Box::pin(counter.increment())).collect();
    for other in &mut others {
        assert!(futures::poll!(other.as_mut()).is_pending());
    }
    held.release();
    let sums = within("the additions", try_join_all(others)).await.unwrap().unwrap();
    assert_eq!(first.await.unwrap().unwrap(), 101);
    assert_eq!(sums, (102..152).collect::<Vec<i64>>());
    assert_eq!(changes.hits(), 1, "one transaction");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_beyond_the_range_is_refused_and_those_beside_it_are_not() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let small = Counter::new_i32(&manager, "/small").unwrap();
    small.set(i32::MAX - 1).await.unwrap();
    let (one, two, back) = tokio::join!(small.add(1), small.add(1), small.add(-5));
    let refused = two.unwrap_err();
    let CounterError::Overflow { value, added, bits, .. } = refused.recipe().unwrap() else {
        panic!("{refused}")
    };
    assert_eq!((*value, *added, *bits), (i64::from(i32::MAX), 1, 32));
    assert_eq!((refused.outcome(), refused.kind()), (Outcome::NotApplied, ErrorKind::Recipe));
    assert_eq!((one.unwrap(), back.unwrap()), (i32::MAX, i32::MAX - 5));
    let large = Counter::new(&manager, "/small").unwrap();
    let refused = large.increment().await.unwrap_err();
    assert!(matches!(refused.recipe(), Some(CounterError::NotANumber { bytes: 4, expected: 8, .. })));
    assert!(large.get().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_addition_counts_at_most_once_and_the_counter_stays_usable() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(10).await.unwrap();
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    let mut sent = Box::pin(counter.add(1));
    assert!(futures::poll!(sent.as_mut()).is_pending());
    within("the addition", held.hit()).await.unwrap();
    let mut waiting = Box::pin(counter.add(1_000));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    drop((sent, waiting));
    held.release();
    assert_eq!(within("the next one", counter.add(100)).await.unwrap().unwrap(), 111, "one that waited");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_an_error_and_nothing_is_added() {
    for code in [ErrorCode::NoAuth, ErrorCode::BadArguments] {
        let server_fixture = ServerFixture::start().await.unwrap();
        let counter = counter(&client(&server_fixture).await);
        counter.add(10).await.unwrap();
        let _refused = server_fixture.server.fault(change(), Fault::Refuse(code));
        let refused = within("the addition", counter.increment()).await.unwrap().unwrap_err();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
        assert_eq!(within("the next one", counter.increment()).await.unwrap().unwrap(), 11);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_addition_ends_at_its_timeout_and_says_whether_it_may_count() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    counter(&manager).add(10).await.unwrap();
    let counter = counter(&manager.with_operation_timeout(Duration::from_secs(2)).unwrap());
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    let unknown = within("the addition", counter.increment()).await.unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
    held.release();
    server_fixture.server.refuse_connections();
    server_fixture.server.drop_connections();
    let unsent = within("the addition", counter.increment()).await.unwrap().unwrap_err();
    server_fixture.server.accept_connections();
    assert!(matches!(unsent.kind(), ErrorKind::Timeout | ErrorKind::Unknown), "{unsent}");
    let sum = async {
        loop {
            if let Ok(sum) = counter.get().await {
                return sum;
            }
        }
    };
    assert!((11..=12).contains(&within("the sum", sum).await.unwrap()));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is to block the runtime")]
async fn of_two_additions_in_one_transaction_the_one_with_time_left_waits_for_its_answer() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await.with_operation_timeout(Duration::from_secs(4)).unwrap();
    let counter = counter(&manager);
    counter.add(10).await.unwrap();
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    let (mut early, mut late) = (Box::pin(counter.add(100)), Box::pin(counter.add(1_000)));
    assert!(futures::poll!(early.as_mut()).is_pending());
    // Nothing else runs in this thread: the two get different deadlines, and are sent together.
    std::thread::sleep(Duration::from_secs(3));
    assert!(futures::poll!(late.as_mut()).is_pending());
    within("the transaction", held.hit()).await.unwrap();
    let unknown = within("the deadline", early).await.unwrap().unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unknown, "{unknown}");
    held.release();
    assert_eq!(within("the answer", late).await.unwrap().unwrap(), 1_110);
}

#[tokio::test]
async fn a_read_beside_an_addition_of_unknown_outcome_has_a_known_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    counter(&manager).add(10).await.unwrap();
    let counter = counter(&manager.with_operation_timeout(Duration::from_secs(2)).unwrap());
    let held = server_fixture.server.fault(change(), Fault::HoldReply);
    // Nothing else runs in this thread: both are in one batch.
    let (added, read) = tokio::join!(counter.add(1), counter.get());
    held.release();
    let (added, read) = (added.unwrap_err(), read.unwrap_err());
    assert_eq!((added.kind(), read.kind()), (ErrorKind::Unknown, ErrorKind::Timeout), "{added}, {read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_shows_every_addition_that_ended_and_writes_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
    assert_eq!(here.get().await.unwrap(), 0);
    assert_eq!(number_on(&server_fixture), None, "a read creates no node");
    for sum in 1..=5 {
        assert_eq!(there.increment().await.unwrap(), sum);
        assert_eq!(here.get().await.unwrap(), sum);
    }
    assert_eq!(server_fixture.server.inspect(writers).len(), 1, "the reader has no writer node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writer_node_is_deleted_with_the_last_clone() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(1).await.unwrap();
    let clone = counter.clone();
    drop(counter);
    assert_eq!(clone.add(1).await.unwrap(), 2);
    assert_eq!(server_fixture.server.inspect(writers).len(), 1);
    drop(clone);
    let gone = server_fixture.server.wait_until(|machine| writers(machine).is_empty());
    within("no writer node", gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_was_created_anew_with_the_same_version_is_read_anew() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (counter(&client(&server_fixture).await), counter(&server_fixture.rival));
    for begins_with_read in [true, false] {
        there.set(10).await.unwrap();
        match begins_with_read {
            true => assert_eq!(here.get().await.unwrap(), 10),
            false => assert_eq!(here.add(0).await.unwrap(), 10),
        }
        let version = |machine: &lockkeeper_testserver::machine::Machine| {
            machine.tree().node(COUNTER).unwrap().stat().version
        };
        let before = server_fixture.server.inspect(version);
        for writer in server_fixture.server.inspect(writers) {
            assert!(server_fixture.server.delete_node(&format!("{COUNTER}/{writer}")));
        }
        assert!(server_fixture.server.delete_node(COUNTER));
        there.set(500).await.unwrap();
        assert!(server_fixture.server.set_version(COUNTER, before));
        assert_eq!(within("an addition", here.add(1)).await.unwrap().unwrap(), 501);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_is_deleted_by_hand_begins_again_at_zero() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let counter = counter(&client(&server_fixture).await);
    counter.add(7).await.unwrap();
    for writer in server_fixture.server.inspect(writers) {
        assert!(server_fixture.server.delete_node(&format!("{COUNTER}/{writer}")));
    }
    assert_eq!(within("an addition", counter.increment()).await.unwrap().unwrap(), 8, "without its writer");
    for writer in server_fixture.server.inspect(writers) {
        assert!(server_fixture.server.delete_node(&format!("{COUNTER}/{writer}")));
    }
    assert!(server_fixture.server.delete_node(COUNTER));
    // The first one creates the node, and the next one a writer node below it.
    assert_eq!(within("an addition", counter.increment()).await.unwrap().unwrap(), 1);
    assert_eq!(within("an addition", counter.increment()).await.unwrap().unwrap(), 2);
    let reads = server_fixture.server.fault(When::op(Op::GetData).path(COUNTER).always(), Fault::DropReply);
    assert_eq!(within("an addition", counter.increment()).await.unwrap().unwrap(), 3);
    assert_eq!(reads.hits(), 0, "a lone writer reads nothing");
}
