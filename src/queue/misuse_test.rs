//! An invalid argument is refused before a request is sent, and the error says what to do.

use lockkeeper_testserver::TestServer;

use super::{ExchangeError, LockQueue, MultiQueue, Rule};
use crate::error::{ConfigError, Error, TxnError};
use crate::manager::ConnectionManager;
use crate::rendezvous::Rendezvous;
use crate::time::deadline::Deadline;
use crate::znode::name::{Label, LabelError};
use crate::znode::version::Version;

async fn connect(server: &TestServer) -> ConnectionManager {
    ConnectionManager::connect(&server.connect_string()).await.unwrap()
}

fn queue(manager: &ConnectionManager, path: &str) -> LockQueue {
    LockQueue::new(manager, path, Label::LOCK, Rule::MUTEX).unwrap()
}

/// The value that the setting was refused for.
fn refused(error: &Error, setting: &str) -> String {
    match error {
        Error::Config(ConfigError::Setting { name, value, .. }) if *name == setting => value.clone(),
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn queues_of_several_managers_are_not_entered_together() {
    let server = TestServer::start().await.unwrap();
    let (one, other) = (connect(&server).await, connect(&server).await);

    let error = MultiQueue::new(vec![queue(&one, "/a"), queue(&other, "/b")]).unwrap_err();
    assert_eq!(refused(&error, "queues"), "of several managers");
    let error = MultiQueue::new(Vec::new()).unwrap_err();
    assert_eq!(refused(&error, "queues"), "empty");
    assert!(MultiQueue::new(vec![queue(&one, "/a"), queue(&one, "/b")]).is_ok());
}

#[tokio::test]
async fn a_hold_of_another_manager_is_refused_before_anything_is_sent() {
    let server = TestServer::start().await.unwrap();
    let (one, other) = (connect(&server).await, connect(&server).await);
    let held = queue(&one, "/a").acquire(Deadline::never()).await.unwrap();
    let foreign = queue(&other, "/b").acquire(Deadline::never()).await.unwrap();
    // Every call that needs a reply fails in another way.
    server.freeze();

    let txn = held.txn_with([&foreign]).create("/c", Vec::new());
    let Err(TxnError::Failed(error)) = txn.commit().await else { panic!("committed, or lost") };
    assert_eq!(refused(&error, "holds"), "of several managers");

    let exchange = held.exchange().create_contender(&queue(&other, "/d"));
    let Err(ExchangeError::Failed(error)) = exchange.commit(Deadline::never()).await else { panic!("done") };
    assert_eq!(refused(&error, "queue"), "of another manager");
}

#[tokio::test]
async fn an_exchange_without_a_new_node_is_refused_before_anything_is_sent() {
    let server = TestServer::start().await.unwrap();
    let held = queue(&connect(&server).await, "/a").acquire(Deadline::never()).await.unwrap();
    server.freeze();
    let written = held.exchange().set("/c", "", Version::Any).commit(Deadline::never()).await;
    let Err(ExchangeError::Failed(error)) = written else { panic!("done") };
    assert_eq!(refused(&error, "exchange"), "without a new node");
}

#[tokio::test]
async fn a_rendezvous_of_more_members_than_a_transaction_can_name_is_refused() {
    let server = TestServer::start().await.unwrap();
    let place = Rendezvous::new(&connect(&server).await, "/barrier").unwrap();
    server.freeze();
    for count in [10_000, u32::MAX] {
        let Err(error) = place.enter(count, Deadline::never()).await else { panic!("entered") };
        assert_eq!(refused(&error, "count"), count.to_string());
    }
}

#[tokio::test]
async fn labels_of_one_rule_that_a_node_name_cannot_tell_apart_are_refused() {
    const fn label(text: &'static str) -> Label {
        match Label::new(text) {
            Ok(label) => label,
            Err(_) => panic!("not a label"),
        }
    }
    const TURN: Label = label("turn-");
    const RULE: Rule = Rule::blocked_by(&[TURN.kind()]).sharing_with(&[label("return-").kind()]);
    let server = TestServer::start().await.unwrap();
    let manager = connect(&server).await;

    let error = LockQueue::new(&manager, "/a", TURN, RULE).unwrap_err();
    let is_ambiguous = matches!(error, Error::Config(ConfigError::Label(LabelError::Ambiguous { .. })));
    assert!(is_ambiguous, "{error}");
}

#[tokio::test]
async fn the_checks_of_a_transaction_count_in_its_size() {
    let server = TestServer::start().await.unwrap();
    let manager = connect(&server).await;
    let held = queue(&manager, "/a").acquire(Deadline::never()).await.unwrap();
    server.freeze();

    // The write alone fits: its data, its path and their framing.
    let data = vec![b'x'; 1_000_000 - "/c".len() - 64];
    let error = held.txn().set("/c", data, Version::Any).commit().await.unwrap_err();
    let is_too_large = matches!(error, TxnError::Failed(Error::Config(ConfigError::DataTooLarge { .. })));
    assert!(is_too_large, "{error}");
}
