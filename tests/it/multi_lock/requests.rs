//! What is sent for several locks.

use std::collections::BTreeSet;

use lockkeeper_tests::{Ensemble, Message, OpCode};

use super::{all_of, asked, mutex, mutexes};
use crate::support::{behind_proxy, connect};

/// Whether the answer to a transaction has the creation time of the new nodes: since 3.8.2 (ZOOKEEPER-4026).
async fn answers_creation_time(ensemble: &Ensemble) -> bool {
    ensemble.server(0).version().await.unwrap() >= (3, 8, 2)
}

#[tokio::test]
async fn free_locks_are_acquired_by_one_transaction_and_one_read_and_released_by_one_transaction() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let all = all_of(&mutexes(&manager, &["a", "b", "c", "d", "e"]));
    // The first acquire creates the directories.
    all.acquire().await.unwrap().release().await.unwrap();
    // The third request reads the creation time, if the answer to the transaction does not have it.
    let expected = [OpCode::Multi, OpCode::MultiRead, OpCode::Exists];
    let expected = if answers_creation_time(&ensemble).await { &expected[..2] } else { &expected[..] };
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    assert_eq!(asked(&proxies), expected);
    let log = proxies.log();
    let second = log.requests().find(|request| request.op == OpCode::MultiRead).unwrap();
    assert!(second.in_flight >= 1, "the read waited for the answer to the transaction");
    let tokens: BTreeSet<u64> = guard.fencing_tokens().map(|(_, token)| token.as_u64()).collect();
    assert_eq!(tokens.len(), 1, "one transaction creates all nodes");
    assert!(!tokens.contains(&0));
    proxies.clear_log();
    guard.release().await.unwrap();
    assert_eq!(asked(&proxies), [OpCode::Multi]);
}

/// Where the servers answer it with the transaction, it is never requested.
#[tokio::test]
async fn after_some_acquires_the_creation_time_is_requested_before_the_name_is_known() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let is_answered = answers_creation_time(&ensemble).await;
    let sent = |ops: &[OpCode]| -> Vec<OpCode> {
        ops.iter().copied().filter(|op| !(is_answered && *op == OpCode::Exists)).collect()
    };
    let all = all_of(&mutexes(&manager, &["a", "b"]));
    for _ in 0..2 {
        all.acquire().await.unwrap().release().await.unwrap();
    }
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    assert_eq!(asked(&proxies), sent(&[OpCode::Multi, OpCode::Exists, OpCode::MultiRead]));
    let log = proxies.log();
    assert!(log.requests().all(|request| request.op == OpCode::Multi || request.in_flight >= 1));
    let earlier = guard.fencing_tokens().map(|(_, token)| token).max().unwrap();
    guard.release().await.unwrap();

    // Another contender got the expected sequence number, so the node that the client asked for does not
    // exist.
    let other = connect(&ensemble.connect_string()).await;
    mutex(&other, "a").acquire().await.unwrap().release().await.unwrap();
    proxies.clear_log();
    let guard = all.acquire().await.unwrap();
    assert_eq!(asked(&proxies), sent(&[OpCode::Multi, OpCode::Exists, OpCode::MultiRead, OpCode::Exists]));
    assert!(guard.fencing_tokens().all(|(_, token)| token > earlier));
    guard.release().await.unwrap();
}

#[tokio::test]
async fn the_nodes_of_several_locks_are_watched_only_while_waiting() {
    let (_ensemble, proxies, manager) = behind_proxy().await;
    let guard = all_of(&mutexes(&manager, &["a", "b"])).acquire().await.unwrap();
    let watches =
        proxies.log().requests().filter(|r| r.message == Message::Request && r.op == OpCode::GetData).count();
    assert_eq!(watches, 0);
    guard.release().await.unwrap();
}
