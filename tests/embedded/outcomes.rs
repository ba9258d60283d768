//! What an error says about a write, and the operation that is found again.

use std::time::Duration;

use lockkeeper::error::{ErrorKind, Outcome, TxnError};
use lockkeeper::znodes::{CreateMode, Once};
use lockkeeper::{ConnectionManager, Error, FencingToken, MultiLock, Mutex, NodeView, RwLock};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use crate::limit::within;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder};

const STOCK: &str = "/stock";
const MARKER: &str = "/done/order-4711";

/// More than any test waits.
const LONG: Duration = Duration::from_secs(600);

/// A server with a stock of 3, and a client whose session outlasts the faults.
async fn with_stock() -> (ServerFixture, ConnectionManager) {
    let server_fixture = ServerFixture::start().await.unwrap();
    let servers = server_fixture.server.connect_string();
    let manager = builder(&servers).session_timeout(SESSION * 20).connect().await.unwrap();
    manager.znodes().create(STOCK, "3", CreateMode::Persistent).await.unwrap();
    // Without the directory of the marker the server would refuse the first request.
    manager.znodes().create("/done", "", CreateMode::Persistent).await.unwrap();
    (server_fixture, manager)
}

async fn stock(manager: &ConnectionManager) -> (u32, i32) {
    let (data, stat) = manager.znodes().read(STOCK).await.unwrap().unwrap();
    (String::from_utf8(data).unwrap().parse().unwrap(), stat.version)
}

/// One try of an operation: takes one from the stock, under the lock.
async fn take_one(manager: &ConnectionManager) -> Result<Once, Error> {
    let guard = Mutex::new(manager, LOCK)?.acquire().await?;
    let (left, version) = stock(manager).await;
    let committed = guard.txn().set(STOCK, (left - 1).to_string(), version).once(MARKER).commit().await?;
    guard.release().await?;
    Ok(committed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_an_answer_is_unknown_and_not_to_be_repeated() {
    for fault in [Fault::DropConnectionAfter, Fault::DropReply] {
        let (server_fixture, manager) = with_stock().await;
        let manager = manager.with_operation_timeout(Duration::from_millis(300)).unwrap();
        let guard = Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap();
        let _lost = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault);
        let commit = guard.txn().set(STOCK, "2", -1).commit();
        let error: TxnError = within("the end of the commit", commit).await.unwrap().unwrap_err();
        assert!(error.outcome() == Outcome::Unknown && !error.is_transient(), "{fault:?}: {error}");
        let error = Error::from(error);
        assert_eq!((error.kind(), error.is_transient()), (ErrorKind::Unknown, false), "{error}");
        assert_eq!(
            stock(&manager.with_operation_timeout(LONG).unwrap()).await.0,
            2,
            "{fault:?}: it was applied"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_whose_answer_was_lost_is_found_again_and_done_once() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let (server_fixture, manager) = with_stock().await;
        let lost = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault);
        let once = within("the operation", take_one(&manager)).await.unwrap().unwrap();
        assert_eq!(lost.hits(), 1);
        assert_eq!(once == Once::Before, fault == Fault::DropConnectionAfter, "{fault:?}: {once:?}");
        assert_eq!(stock(&manager).await.0, 2, "{fault:?}");
        assert_eq!(take_one(&manager).await.unwrap(), Once::Before);
        assert_eq!(stock(&manager).await.0, 2, "done twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_says_nothing_of_an_earlier_request_without_an_answer() {
    for fault in [None, Some(Fault::DropConnectionBefore)] {
        let (server_fixture, manager) = with_stock().await;
        let guard = Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap();
        let _lost = fault.map(|fault| server_fixture.server.fault(When::op(Op::Multi).path(STOCK), fault));
        let refused = guard.txn().set(STOCK, "2", 77).once(MARKER).commit();
        let error = within("the end of the commit", refused).await.unwrap().unwrap_err();
        let expected = if fault.is_some() { Outcome::Unknown } else { Outcome::NotApplied };
        assert_eq!(error.outcome(), expected, "{fault:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_done_once_although_its_session_ends_before_the_answer() {
    let (server_fixture, manager) = with_stock().await;
    let session = *server_fixture.server.sessions().last().unwrap();
    let answer = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), Fault::HoldReply);
    let actor = manager.clone();
    let first = tokio::spawn(async move { take_one(&actor).await });
    within("the transaction", answer.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    let error = within("the first try", first).await.unwrap().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_transient()), (ErrorKind::Unknown, false), "{error}");
    let second = within("the second try", take_one(&manager)).await.unwrap().unwrap();
    assert_eq!((second, stock(&manager).await.0), (Once::Before, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_hold_is_lost_before_the_answer_is_not_to_be_repeated() {
    let (server_fixture, manager) = with_stock().await;
    let guard = Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap();
    let node = guard.path().to_owned();
    let unanswered = server_fixture.server.fault(When::op(Op::Multi).path(STOCK), Fault::DropReply);
    let work = tokio::spawn(async move {
        guard.run(guard.txn().set(STOCK, "2", -1).commit()).await??;
        Ok::<_, Error>(())
    });
    within("the transaction", unanswered.hit()).await.unwrap();
    // The holder learns of the loss while it waits for the answer.
    assert!(server_fixture.server.delete_node(&node));
    let error = within("the end of the work", work).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, Error::Lost(_)) && error.outcome_unknown() && !error.is_transient(), "{error:?}");
    assert_eq!(stock(&manager).await.0, 2, "it was applied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_downgrade_without_an_answer_ends_when_its_nodes_may_not_be_searched_for() {
    let (server_fixture, manager) = with_stock().await;
    let guard = RwLock::new(&manager, LOCK).unwrap().write().await.unwrap();
    let lost = server_fixture
        .server
        .fault(When::op(Op::Multi).path(&format!("{LOCK}/*")), Fault::DropConnectionAfter);
    let listing = [Op::GetChildren, Op::GetChildren2].map(|op| {
        let no_auth = Fault::Refuse(ErrorCode::NoAuth);
        server_fixture.server.fault(When::op(op).path(LOCK).always(), no_auth)
    });
    let error = within("the end of the downgrade", guard.downgrade()).await.unwrap().unwrap_err();
    assert!(lost.hits() == 1 && listing.iter().any(|refused| refused.hits() > 0));
    assert_eq!((error.kind(), error.is_transient()), (ErrorKind::Unknown, false), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_whose_create_has_no_answer_ends_when_its_node_may_not_be_searched_for() {
    let (server_fixture, manager) = with_stock().await;
    let mutex = Mutex::new(&manager, LOCK).unwrap();
    mutex.acquire().await.unwrap().release().await.unwrap();
    let lost = When::create().path(&format!("{LOCK}/*"));
    let lost = server_fixture.server.fault(lost, Fault::DropConnectionAfter);
    let listing = [Op::GetChildren, Op::GetChildren2].map(|op| {
        let no_auth = Fault::Refuse(ErrorCode::NoAuth);
        server_fixture.server.fault(When::op(op).path(LOCK).always(), no_auth)
    });
    let error = within("the end of the acquire", mutex.acquire()).await.unwrap().unwrap_err();
    assert!(lost.hits() == 1 && listing.iter().any(|refused| refused.hits() > 0));
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    // The janitor searches on, and finds the node when it may.
    drop(listing);
    within("the node is deleted", server_fixture.queue_length_becomes(0)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_the_parent_of_a_marker_is_made_leaves_nothing_unknown() {
    let (server_fixture, manager) = with_stock().await;
    manager.znodes().delete("/done").await.unwrap();
    let session = *server_fixture.server.sessions().last().unwrap();
    let making = server_fixture.server.fault(When::create().path("/done"), Fault::HoldReply);
    let actor = manager.clone();
    let first = tokio::spawn(async move { take_one(&actor).await });
    within("the create of the parent", making.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    let error = within("the first try", first).await.unwrap().unwrap().unwrap_err();
    let meaning = (error.kind(), error.outcome(), error.is_transient());
    assert_eq!(meaning, (ErrorKind::Lost, Outcome::NotApplied, true), "{error}");
    let second = within("the second try", take_one(&manager)).await.unwrap().unwrap();
    assert!(matches!(second, Once::Committed(_)) && stock(&manager).await.0 == 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marker_gets_its_parents_and_a_lost_hold_commits_nothing() {
    let (server_fixture, manager) = with_stock().await;
    manager.znodes().delete("/done").await.unwrap();
    assert!(matches!(take_one(&manager).await.unwrap(), Once::Committed(results) if results.len() == 1));
    let guard = Mutex::new(&manager, LOCK).unwrap().acquire().await.unwrap();
    assert!(server_fixture.server.delete_node(guard.path()));
    let late = guard.txn().set(STOCK, "0", -1).once("/done/late").commit().await.unwrap_err();
    assert!(late.is_lost() && late.outcome() == Outcome::NotApplied, "{late}");
    assert_eq!(Error::from(late).kind(), ErrorKind::Lost);
    let bad = guard.txn().once("no path").commit().await.unwrap_err();
    assert_eq!(Error::from(bad).kind(), ErrorKind::Misuse);
    assert_eq!(stock(&manager).await.0, 2);
}

/// Every error of a function that does everything goes through `?`.
async fn everything(servers: &str) -> Result<(), Error> {
    let manager = ConnectionManager::connect(servers).await?;
    let (one, other) = (Mutex::new(&manager, "/one")?, Mutex::new(&manager, "/other")?);
    let guard = one.acquire_timeout(LONG).await?;
    guard.txn().create("/written", "1").commit().await?;
    guard.txn().once("/marked").commit().await?;
    guard.release().await?;
    RwLock::new(&manager, "/rw")?.read().await?.try_upgrade().await?.release().await?;
    let both = MultiLock::builder().lock(&one).lock(&other).build()?.acquire().await?;
    both.release().await?;
    let seen = one.inspect().await?;
    lockkeeper::Revoker::new(&manager).ask(seen.holders()).await?;
    let path: lockkeeper::ZnodePath = "/written".parse()?;
    let _stored: FencingToken = "0x2a.0".parse()?;
    let view = NodeView::new_decoded(&manager, &path, |data| String::from_utf8(data.to_vec()))?;
    view.ready().await?;
    assert_eq!(view.node().expect("it exists").value()?, "1");
    manager.znodes().delete(path).await?;
    manager.shutdown().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_error_type_takes_all_others_and_prints_no_cause_twice() {
    let server_fixture = ServerFixture::start().await.unwrap();
    everything(&server_fixture.server.connect_string()).await.unwrap();
    let malformed = everything("no server: at all").await.unwrap_err();
    assert_eq!(malformed.kind(), ErrorKind::Misuse, "{malformed}");

    let guard = Mutex::new(&server_fixture.rival, "/held").unwrap().acquire().await.unwrap();
    let actor = server_fixture.actor().await.unwrap();
    let held = Mutex::new(&actor, "/held").unwrap();
    let several = MultiLock::builder().lock(&held).build().unwrap();
    let timeout = several.acquire_timeout(Duration::from_millis(50)).await.unwrap_err();
    let mut chain: Vec<String> = vec![timeout.to_string()];
    let mut next = std::error::Error::source(&timeout);
    while let Some(cause) = next {
        chain.push(cause.to_string());
        next = cause.source();
    }
    for (at, cause) in chain.iter().enumerate().skip(1) {
        assert!(chain[..at].iter().all(|text| !text.contains(cause)), "{cause:?} twice: {chain:?}");
    }
    assert_eq!(Error::from(timeout).kind(), ErrorKind::Timeout);
    guard.release().await.unwrap();
}
