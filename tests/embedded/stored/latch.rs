//! Latches: each count once, whatever becomes of the answer, and waiters of each generation.

use std::time::Duration;

use futures::future::try_join_all;
use lockkeeper::error::{ErrorKind, SharedValueError};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, CountDownLatch};
use lockkeeper_testserver::{Fault, Op, When};

use super::{data, started};
use crate::limit::within;

const LATCH: &str = "/latches/loaded";

fn latch(manager: &ConnectionManager, count: u32) -> CountDownLatch {
    CountDownLatch::new(manager, LATCH, count).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_count_counts_once_though_its_answer_is_lost() {
    // The first count creates the node, later ones write.
    for nth in 1..=3 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let (server_fixture, manager) = started().await;
            let latch = latch(&manager, 4);
            let lost = server_fixture.server.fault(When::op(Op::Multi).path(LATCH).nth(nth), fault);
            for left in [3, 2, 1, 0, 0] {
                let counted = within("the count", latch.count_down()).await.unwrap().unwrap();
                assert_eq!(counted, left, "{fault:?} at {nth}");
            }
            assert_eq!(lost.hits(), 1);
            assert_eq!(server_fixture.server.inspect(|machine| data(machine, LATCH)).unwrap(), b"0 0");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_waits_for_the_last_count_of_all_clients_and_goes_on_in_the_next_session() {
    let (server_fixture, manager) = started().await;
    let (here, there) = (latch(&manager, 20), latch(&server_fixture.rival, 20));
    let reads =
        server_fixture.server.fault(When::op(Op::AddWatch).always(), Fault::DelayReply(Duration::ZERO));
    let waiting = tokio::spawn({
        let here = here.clone();
        async move { here.wait().await }
    });
    within("the watch", reads.hit()).await.unwrap();
    let counts = (0..19).map(|n| if n % 2 == 0 { here.count_down() } else { there.count_down() });
    within("the counts", try_join_all(counts)).await.unwrap().unwrap();
    assert_eq!(here.state().await.unwrap().left, 1);
    for session in server_fixture.sessions_of_actor() {
        assert!(server_fixture.server.expire(session));
    }
    assert!(!waiting.is_finished());
    assert_eq!(within("the last count", there.count_down()).await.unwrap().unwrap(), 0);
    within("the waiter", waiting).await.unwrap().unwrap().unwrap();
    within("an open latch", here.wait()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_resets_of_one_generation_one_resets_and_earlier_waiters_return() {
    let (server_fixture, manager) = started().await;
    let latch = latch(&manager, 2);
    assert_eq!(latch.count_down().await.unwrap(), 1);
    let reads =
        server_fixture.server.fault(When::op(Op::AddWatch).always(), Fault::DelayReply(Duration::ZERO));
    let waiting = tokio::spawn({
        let latch = latch.clone();
        async move { latch.wait().await }
    });
    within("the watch", reads.hit()).await.unwrap();
    let resets = within("the resets", try_join_all((0..5).map(|_| latch.reset(0)))).await.unwrap().unwrap();
    assert_eq!(resets.iter().filter(|was_reset| **was_reset).count(), 1, "{resets:?}");
    within("the waiter of generation 0", waiting).await.unwrap().unwrap().unwrap();
    let state = latch.state().await.unwrap();
    assert_eq!((state.left, state.generation), (2, 1));
    let closed = latch.wait_timeout(Duration::from_millis(50)).await.unwrap_err();
    assert!(closed.is_timeout() && closed.to_string().contains("waiting for the latch"), "{closed}");
}

#[tokio::test]
async fn a_latch_for_nothing_and_a_node_of_another_kind_are_typed_errors() {
    let (_server, manager) = started().await;
    assert_eq!(CountDownLatch::new(&manager, LATCH, 0).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(CountDownLatch::new(&manager, "/", 1).unwrap_err().kind(), ErrorKind::Misuse);
    manager.znodes().create(LATCH, "no latch", CreateMode::Persistent).await.unwrap();
    let latch = latch(&manager, 1);
    for error in [
        latch.count_down().await.map(drop).unwrap_err(),
        latch.reset(0).await.map(drop).unwrap_err(),
        within("the wait", latch.wait()).await.unwrap().unwrap_err(),
    ] {
        assert!(error.recipe::<SharedValueError>().is_some(), "{error:?}");
    }
}
