//! The servers' time costs a write, which leaves the node as it is.

use std::time::Duration;

use futures::poll;
use lockkeeper_testserver::{Fault, Op, TestServer, When};

use super::test_fixture::held_lock;
use super::{LockQueue, Rule};
use crate::error::{Error, LossReason};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::znode::name::Label;

fn data(server: &TestServer, hold: &Hold) -> Option<Vec<u8>> {
    server.inspect(|machine| Some(machine.tree().node(hold.full_path())?.data.as_ref()?.to_vec()))
}

#[tokio::test]
async fn the_time_of_the_servers_grows_and_each_node_keeps_its_data() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let queue = LockQueue::new(&manager, "/lock", Label::WRITE, Rule::WRITER).unwrap();
    let queue = queue.with_node_data("a writer");
    let hold = queue.acquire(Deadline::never()).await.unwrap();
    let earlier = hold.server_time(Deadline::never()).await.unwrap();
    assert_eq!((earlier > 0, data(&server, &hold)), (true, Some(b"a writer".to_vec())));

    let exchanged = hold.exchange().downgrade_to(Label::READ, "a reader").commit(Deadline::never()).await;
    let hold = exchanged.unwrap().hold.unwrap();
    let later = hold.server_time(Deadline::never()).await.unwrap();
    assert_eq!((later >= earlier, data(&server, &hold)), (true, Some(b"a reader".to_vec())));
}

#[tokio::test]
async fn without_an_answer_the_time_of_the_servers_is_not_known_and_the_hold_stays() {
    let (server, _queue, hold) = held_lock().await;
    let _silent = server.fault(When::op(Op::SetData).always(), Fault::DropReply);
    let late = hold.server_time(Deadline::after(Duration::from_millis(100))).await.unwrap_err();
    assert!(late.is_timeout() && hold.is_valid(), "{late}");
}

#[tokio::test]
async fn without_its_node_the_hold_is_lost() {
    let (server, _queue, hold) = held_lock().await;
    assert!(server.delete_node(hold.full_path()));
    let lost = hold.server_time(Deadline::never()).await.unwrap_err();
    assert!(matches!(lost, Error::Lost(_)) && !hold.is_valid(), "{lost}");
}

/// As when the lease runs out while the server does not answer: another contender may hold by then.
#[tokio::test]
async fn a_hold_that_is_lost_before_the_answer_is_told_no_time() {
    let (server, _queue, hold) = held_lock().await;
    let answer = server.fault(When::op(Op::SetData), Fault::HoldReply);
    let mut asking = Box::pin(hold.server_time(Deadline::never()));
    assert!(poll!(&mut asking).is_pending());
    answer.hit().await;
    hold.node().lose(LossReason::LeaseRanOut);
    answer.release();
    let lost = asking.await.unwrap_err();
    assert!(matches!(lost, Error::Lost(_)), "{lost}");
}
