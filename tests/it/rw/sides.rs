//! Shared reads, a read under a write, downgrade and upgrade.

use std::time::Duration;

use lockkeeper::error::{Phase, UpgradeError, WouldDeadlock};
use lockkeeper::{Error, Owner};
use lockkeeper_tests::OpCode;

use super::{
    PATH, SHORTLY, contender_nodes, lock, number, processes, reading, sent, sent_but_watches, watches_become,
    writing,
};
use crate::support::{behind_proxy, connect, no_node_is_left, nodes_become};

#[tokio::test]
async fn readers_share_and_a_writer_excludes_all() {
    let (ensemble, [one, two]) = processes().await;
    let (first, second) = (one.read().await.unwrap(), two.read().await.unwrap());
    assert!(one.try_write().await.unwrap().is_none());
    let error = two.write_timeout(Duration::from_secs(2)).await.unwrap_err();
    let Error::Timeout { phase: Phase::Queued { ahead, .. }, .. } = &error else { panic!("{error}") };
    assert_eq!(*ahead, 2);
    first.release().await.unwrap();
    second.release().await.unwrap();
    let write = one.write().await.unwrap();
    assert!(two.try_read().await.unwrap().is_none());
    assert!(two.try_write().await.unwrap().is_none());
    assert!(two.read_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    write.release().await.unwrap();
    drop(two.read_timeout(Duration::ZERO).await.unwrap());
    no_node_is_left(&ensemble, PATH).await;
}

#[tokio::test]
async fn a_read_under_an_own_write_outlives_the_write_and_no_writer_is_granted_between() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let (owner, other) = (Owner::new("one"), lock(&connect(&ensemble.connect_string()).await));
    let one = lock(&manager).for_owner(&owner);
    let write = one.write().await.unwrap();
    let waiter = writing(&other);
    nodes_become(&ensemble, PATH, 2).await;
    proxies.clear_log();
    let read = one.read().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Multi]);
    let again = one.read().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Multi], "a further read guard creates a node");
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (2, 1));
    assert_eq!(read.fencing_token(), write.fencing_token());
    assert_eq!(number(read.path()), number(write.path()));
    assert_eq!(again.path(), read.path());
    write.release().await.unwrap();
    assert!(other.try_read().await.unwrap().is_none(), "granted before a waiting writer");
    assert!(!waiter.is_finished() && read.is_valid());
    read.release().await.unwrap();
    assert!(!waiter.is_finished() && again.is_valid());
    let token = again.fencing_token();
    again.release().await.unwrap();
    assert!(waiter.await.unwrap().fencing_token() > token);
}

#[tokio::test]
async fn a_downgrade_grants_readers_and_no_writer_and_keeps_its_token() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let [one, other] = [lock(&manager), lock(&connect(&ensemble.connect_string()).await)];
    let write = one.write().await.unwrap();
    let (token, place) = (write.fencing_token(), number(write.path()).to_owned());
    let held = write.path().to_owned();
    let reader = reading(&other);
    nodes_become(&ensemble, PATH, 2).await;
    let writer = writing(&other);
    nodes_become(&ensemble, PATH, 3).await;
    proxies.clear_log();
    let read = write.downgrade().await.unwrap();
    assert_eq!(sent_but_watches(&proxies, &held), [OpCode::Multi]);
    assert_eq!((read.fencing_token(), number(read.path())), (token, place.as_str()));
    let beside = reader.await.unwrap();
    assert!(beside.fencing_token() > token);
    beside.release().await.unwrap();
    // Only the reader is ahead of the writer any more, and the writer knows.
    assert_eq!(other.write_timeout(SHORTLY).await.unwrap_err().is_timeout(), !writer.is_finished());
    assert!(read.is_valid());
    assert_eq!(contender_nodes(&ensemble).await.len(), 2);
    read.release().await.unwrap();
    writer.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_waiting_writer_is_not_granted_beside_a_reader_that_was_the_writer_ahead() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let waiting = lock(&manager);
    let other = lock(&connect(&ensemble.connect_string()).await);
    let write = other.write().await.unwrap();
    let waiter = writing(&waiting);
    watches_become(&proxies, 2).await;
    proxies.clear_log();
    let read = write.downgrade().await.unwrap();
    // The waiter has listed again, and watches its new predecessor.
    watches_become(&proxies, 1).await;
    assert_eq!(sent(&proxies), [OpCode::GetChildren, OpCode::GetData]);
    assert!(!waiter.is_finished() && read.is_valid());
    read.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_writer_behind_a_reader_behind_a_writer_that_downgrades_waits_for_both_readers() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let waiting = lock(&manager);
    let one = lock(&connect(&ensemble.connect_string()).await);
    let two = lock(&connect(&ensemble.connect_string()).await);
    let write = one.write().await.unwrap();
    let reader = reading(&two);
    nodes_become(&ensemble, PATH, 2).await;
    let waiter = writing(&waiting);
    // The watch is on the reader, the nearest predecessor: the waiter does not notice the end of the first
    // writer.
    watches_become(&proxies, 2).await;
    let first = write.downgrade().await.unwrap();
    let second = reader.await.unwrap();
    proxies.clear_log();
    second.release().await.unwrap();
    watches_become(&proxies, 1).await;
    assert!(!waiter.is_finished() && first.is_valid());
    first.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_write_while_reading_is_refused_before_a_request_is_sent() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let one = lock(&manager).for_owner(&Owner::new("one"));
    let read = one.read().await.unwrap();
    proxies.clear_log();
    let error = one.write().await.unwrap_err();
    assert!(error.recipe::<WouldDeadlock>().is_some(), "{error}");
    assert!(error.to_string().contains("try_upgrade"), "{error}");
    assert!(one.try_write().await.unwrap_err().recipe::<WouldDeadlock>().is_some());
    assert!(one.write_timeout(SHORTLY).await.unwrap_err().recipe::<WouldDeadlock>().is_some());
    assert_eq!(sent(&proxies), []);
    assert!(read.is_valid());
}

#[tokio::test]
async fn a_sole_reader_may_become_the_writer() {
    let (ensemble, [one, other]) = processes().await;
    let owner = Owner::new("one");
    let one = one.for_owner(&owner);
    let read = one.read().await.unwrap();
    let token = read.fencing_token();
    let write = read.try_upgrade().await.unwrap();
    assert!(write.fencing_token() > token);
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (0, 1));
    nodes_become(&ensemble, PATH, 1).await;
    assert!(other.try_read().await.unwrap().is_none());
    write.release().await.unwrap();
    // With further guards of the same owner it is still the only reader; these guards stay valid.
    let (read, kept) = (one.read().await.unwrap(), one.read().await.unwrap());
    let write = read.try_upgrade().await.unwrap();
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (1, 1));
    // A downgrade keeps the token of the write, since a resource may have seen it, and not that of the older
    // read.
    let token = write.fencing_token();
    let read = write.downgrade().await.unwrap();
    assert_eq!(read.fencing_token(), token);
    assert!(kept.fencing_token() < token && kept.is_valid());
    // Once more, with two own nodes in the queue.
    let write = read.try_upgrade().await.unwrap();
    assert!(write.fencing_token() > token && kept.is_valid());
    drop((write, kept));
    no_node_is_left(&ensemble, PATH).await;
    assert_eq!((one.read_hold_count(&owner), one.write_hold_count(&owner)), (0, 0));
}

#[tokio::test]
async fn a_reader_among_others_stays_one_when_it_tries_to_write() {
    let (ensemble, [one, other]) = processes().await;
    let mine = one.read().await.unwrap();
    let theirs = other.read().await.unwrap();
    let error = mine.try_upgrade().await.unwrap_err();
    assert!(matches!(error, UpgradeError::NotAlone { .. }), "{error}");
    let mine = error.into_guard();
    assert!(mine.is_valid());
    nodes_become(&ensemble, PATH, 2).await;
    theirs.release().await.unwrap();
    // A waiting writer behind it prevents the upgrade, too.
    let writer = writing(&other);
    nodes_become(&ensemble, PATH, 2).await;
    let mine = mine.try_upgrade().await.unwrap_err().into_guard();
    assert!(mine.is_valid() && !writer.is_finished());
    mine.release().await.unwrap();
    writer.await.unwrap().release().await.unwrap();
}
