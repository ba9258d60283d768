//! Plain transactions: all writes or none, and what is known after a lost answer.

use std::time::Duration;

use lockkeeper::error::{Operation, Outcome, Refusal, TxnError};
use lockkeeper::znodes::{CreateMode, Once, TxnResult};
use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_testserver::{Fault, Op, When};

use super::{data, started};
use crate::limit::within;
use crate::server_fixture::LOCK;

const STOCK: &str = "/stock";
const MARKER: &str = "/done/order-4711";

async fn with_stock(manager: &ConnectionManager) {
    manager.znodes().create(STOCK, "3", CreateMode::Persistent).await.unwrap();
    // Without the directory of the marker the server would refuse the first request.
    manager.znodes().create("/done", "", CreateMode::Persistent).await.unwrap();
}

#[tokio::test]
async fn the_writes_of_a_transaction_are_applied_together_and_answered_by_position() {
    let (server_fixture, manager) = started().await;
    with_stock(&manager).await;
    let txn = manager.txn().check(STOCK, 0).create("/order", "").create_sequential("/order/item-", "a");
    let results = txn.set(STOCK, "2", 0).delete("/done", 0).commit().await.unwrap();
    let [TxnResult::Done, TxnResult::Created(order), TxnResult::Created(item), written, TxnResult::Done] =
        &results[..]
    else {
        panic!("{results:?}");
    };
    assert_eq!((order.as_str(), item.as_str()), ("/order", "/order/item-0000000000"));
    assert!(matches!(written, TxnResult::Written { version: 1, stat } if stat.data_length == 1));
    assert!(server_fixture.server.inspect(|machine| data(machine, "/done").is_none()));
    assert!(manager.txn().commit().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_refusal_names_the_write_and_the_missing_parent_and_nothing_is_written() {
    let (server_fixture, manager) = started().await;
    with_stock(&manager).await;
    let refused = |index, operation, path: &'static str, refusal| (index, operation, path, refusal);
    for (txn, expected, text) in [
        (
            manager.txn().set(STOCK, "2", 0).create("/none/order", ""),
            refused(1, Operation::Create, "/none/order", Refusal::NoNode),
            "its parent /none does not exist",
        ),
        (
            manager.txn().set(STOCK, "2", 0).set(STOCK, "1", 9),
            refused(1, Operation::Write, STOCK, Refusal::BadVersion),
            "write /stock",
        ),
        (
            manager.txn().check("/none", 0).set(STOCK, "2", 0),
            refused(0, Operation::Check, "/none", Refusal::NoNode),
            "write 0, check /none",
        ),
        (
            manager.txn().set(STOCK, "2", 0).delete("/none", -1),
            refused(1, Operation::Delete, "/none", Refusal::NoNode),
            "delete /none",
        ),
    ] {
        let error = txn.commit().await.unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert_eq!(error.outcome(), Outcome::NotApplied);
        let TxnError::Refused { index, operation, path, refusal, .. } = error else { panic!("{error:?}") };
        assert_eq!((index, operation, path.as_str(), refusal), expected);
    }
    let stock = server_fixture.server.inspect(|machine| data(machine, STOCK));
    assert_eq!(stock.as_deref(), Some(&b"3"[..]));
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_sent() {
    let (server_fixture, manager) = started().await;
    let other = server_fixture.actor().await.unwrap();
    let named = When::op(Op::Multi).paths(&["/a", "/b", "/no path"]).always();
    let sent = server_fixture.server.fault(named, Fault::DropReply);
    for txn in [
        manager.txn().create("no path", ""),
        manager.txn().create("/a", vec![0; 600_000]).create("/b", vec![0; 600_000]),
        manager.txn().create("/a", "").and(other.txn().create("/b", "")),
        manager.txn().and(manager.txn().create("no path", "")),
    ] {
        let error = Error::from(txn.commit().await.unwrap_err());
        assert!(matches!(error, Error::Config(_)), "{error}");
    }
    assert_eq!(sent.hits(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_transaction_without_an_answer_is_unknown() {
    for fault in [Fault::DropConnectionAfter, Fault::DropReply] {
        let (server_fixture, manager) = started().await;
        with_stock(&manager).await;
        let brief = manager.with_operation_timeout(Duration::from_millis(300)).unwrap();
        let _lost = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault);
        let commit = brief.txn().set(STOCK, "2", -1).commit();
        let error = within("the end of the commit", commit).await.unwrap().unwrap_err();
        assert!(error.outcome() == Outcome::Unknown && !error.is_transient(), "{fault:?}: {error}");
        assert_eq!(
            server_fixture.server.inspect(|machine| data(machine, STOCK)).unwrap(),
            b"2",
            "{fault:?}: it was applied"
        );
    }
}

/// Takes one from the stock, once.
async fn take_one(manager: &ConnectionManager) -> Result<Once, TxnError> {
    let (stock, stat) = manager.znodes().read(STOCK).await?.unwrap();
    let left = String::from_utf8(stock).unwrap().parse::<u32>().unwrap() - 1;
    manager.txn().set(STOCK, left.to_string(), stat.version).once(MARKER).commit().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_transaction_with_a_marker_is_committed_once_though_its_answer_is_lost() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let (server_fixture, manager) = started().await;
        with_stock(&manager).await;
        let lost = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault);
        let once = within("the operation", take_one(&manager)).await.unwrap().unwrap();
        assert_eq!(lost.hits(), 1);
        assert_eq!(once == Once::Before, fault == Fault::DropConnectionAfter, "{fault:?}: {once:?}");
        assert_eq!(take_one(&manager).await.unwrap(), Once::Before);
        assert_eq!(server_fixture.server.inspect(|machine| data(machine, STOCK)).unwrap(), b"2", "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_transaction_with_a_marker_goes_on_in_the_next_session() {
    for fault in [Fault::HoldReply, Fault::HoldRequest] {
        let (server_fixture, manager) = started().await;
        with_stock(&manager).await;
        let session = server_fixture.sessions_of_actor()[0];
        let answer = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault);
        let taking = tokio::spawn({
            let manager = manager.clone();
            async move { take_one(&manager).await }
        });
        within("the transaction", answer.hit()).await.unwrap();
        assert!(server_fixture.server.expire(session));
        let once = within("the operation", taking).await.unwrap().unwrap().unwrap();
        assert_eq!(once == Once::Before, fault == Fault::HoldReply, "{fault:?}: {once:?}");
        assert_eq!(server_fixture.server.inspect(|machine| data(machine, STOCK)).unwrap(), b"2", "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_the_parent_of_a_marker_is_made_is_followed_by_the_next() {
    let (server_fixture, manager) = started().await;
    with_stock(&manager).await;
    manager.znodes().delete("/done").await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let making = server_fixture.server.fault(When::create().path("/done"), Fault::HoldReply);
    let taking = tokio::spawn({
        let manager = manager.clone();
        async move { take_one(&manager).await }
    });
    within("the create of the parent", making.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    let once = within("the operation", taking).await.unwrap().unwrap().unwrap();
    assert!(matches!(once, Once::Committed(results) if results.len() == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writes_of_a_plain_transaction_can_rest_on_a_hold() {
    let (server_fixture, manager) = started().await;
    with_stock(&manager).await;
    let guard = Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap();
    let writes = || manager.txn().set(STOCK, "2", -1).create_sequential("/done/n-", "");
    let results = guard.txn().and(writes()).commit().await.unwrap();
    assert!(matches!(&results[..], [TxnResult::Written { .. }, TxnResult::Created(_)]), "{results:?}");
    assert!(server_fixture.server.delete_node(guard.path()));
    let late = guard.txn().and(writes()).commit().await.unwrap_err();
    assert!(late.is_lost(), "{late}");
    let joined = manager.txn().and(guard.txn()).set(STOCK, "0", -1).commit().await.unwrap_err();
    assert!(joined.is_lost(), "{joined}");
}
