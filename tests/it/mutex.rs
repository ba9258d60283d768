//! The mutex on a real server.

use std::time::Duration;

use lockkeeper::Mutex;
use lockkeeper_tests::{Ensemble, Match, OpCode, Proxies, Timing, eventually};

use crate::support::{behind_proxy, connect, nodes_become};

/// The requests that were sent, without the confirmations of the session, which the library sends at any
/// time.
fn sent(proxies: &Proxies) -> Vec<OpCode> {
    proxies.log().ops().into_iter().filter(|op| *op != OpCode::Multi).collect()
}

#[tokio::test]
async fn an_uncontended_acquire_is_one_round_trip_and_a_release_one() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let mutex = Mutex::new(&manager, "/locks/a").unwrap();
    // The first acquire creates the directory.
    mutex.acquire().await.unwrap().release().await.unwrap();
    proxies.clear_log();
    let answer = proxies.on(Match::new().op(OpCode::Create2)).hold_reply();
    let acquiring = mutex.clone();
    let acquiring = tokio::spawn(async move { acquiring.acquire().await.unwrap() });
    answer.triggered().await.unwrap();
    // The second request is in flight before the answer to the first: both are one round trip.
    let both = eventually("both requests", Timing::event(), || async {
        (sent(&proxies) == [OpCode::Create2, OpCode::GetChildren]).then_some(())
    });
    both.await.unwrap();
    answer.release();
    let guard = acquiring.await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Create2, OpCode::GetChildren]);
    let before = ensemble.server(0).packets_received().await.unwrap();
    proxies.clear_log();
    guard.release().await.unwrap();
    assert_eq!(sent(&proxies), [OpCode::Delete]);
    // The server's own count agrees with the proxy's: no request bypassed it.
    let packets = ensemble.server(0).packets_received().await.unwrap() - before;
    let relayed = proxies.log().counts().values().sum::<usize>();
    assert!(packets >= 1 && packets <= relayed as u64 + 2, "{packets} packets, {relayed} relayed");
}

#[tokio::test]
async fn a_grant_to_a_waiter_needs_no_read_after_the_event() {
    let (ensemble, proxies, manager) = behind_proxy().await;
    let other = connect(&ensemble.connect_string()).await;
    let (mutex, others) = (Mutex::new(&manager, "/lock").unwrap(), Mutex::new(&other, "/lock").unwrap());
    let held = others.acquire().await.unwrap();
    let waiter = tokio::spawn(async move { mutex.acquire().await.unwrap() });
    // Queued, with a watch on the holder's node and one on its own.
    let watching = eventually("both watches", Timing::event(), || async {
        (proxies.log().count(OpCode::GetData) == 2).then_some(())
    });
    watching.await.unwrap();
    let last = eventually("both answers", Timing::event(), || async {
        let log = proxies.log();
        let answered = log.requests().filter(|r| r.op == OpCode::GetData).all(|r| log.reply_to(r).is_some());
        answered.then_some(())
    });
    last.await.unwrap();
    proxies.clear_log();
    held.release().await.unwrap();
    let guard = waiter.await.unwrap();
    assert_eq!(sent(&proxies), []);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_wait_leaves_no_watch_behind() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (a, b) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (one, two) = (Mutex::new(&a, "/l").unwrap(), Mutex::new(&b, "/l").unwrap());
    let held = one.acquire().await.unwrap();
    assert!(two.acquire_timeout(Duration::from_secs(2)).await.unwrap_err().is_timeout());
    held.release().await.unwrap();
    two.acquire().await.unwrap().release().await.unwrap();
    let none = eventually("no watch", Timing::event(), || async {
        (ensemble.server(0).watch_count().await.unwrap() == 0).then_some(())
    });
    none.await.unwrap();
}

#[tokio::test]
async fn waiters_are_granted_in_the_order_of_their_acquires_with_growing_tokens() {
    let ensemble = Ensemble::lend().await.unwrap();
    let managers = [connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await];
    let held = Mutex::new(&managers[0], "/l").unwrap().acquire().await.unwrap();
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..6 {
        let (mutex, sender) = (Mutex::new(&managers[number % 2], "/l").unwrap(), sender.clone());
        tokio::spawn(async move {
            let guard = mutex.acquire().await.unwrap();
            sender.send((number, guard.fencing_token())).unwrap();
            guard.release().await.unwrap();
        });
        nodes_become(&ensemble, "/l", number + 2).await;
    }
    let mut newest = held.fencing_token();
    held.release().await.unwrap();
    for expected in 0..6 {
        let (number, token) = served.recv().await.unwrap();
        assert_eq!(number, expected);
        assert!(token > newest);
        newest = token;
    }
}

#[tokio::test]
async fn one_contender_holds_and_its_successor_is_next() {
    let ensemble = Ensemble::lend().await.unwrap();
    let (a, b) = (connect(&ensemble.connect_string()).await, connect(&ensemble.connect_string()).await);
    let (one, two) = (Mutex::new(&a, "/l").unwrap(), Mutex::new(&b, "/l").unwrap());
    let first = one.acquire().await.unwrap();
    assert!(two.try_acquire().await.unwrap().is_none());
    let error = two.acquire_timeout(Duration::from_millis(300)).await.unwrap_err();
    assert!(error.is_timeout());
    // The error names the predecessor.
    assert!(error.to_string().contains(&format!("pid={}", std::process::id())), "{error}");
    let error = two.acquire_timeout(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("1 ahead"), "{error}");
    let waiter = tokio::spawn(async move { two.acquire().await.unwrap() });
    let token = first.fencing_token();
    first.release().await.unwrap();
    let second = waiter.await.unwrap();
    assert!(second.fencing_token() > token);
    second.release().await.unwrap();
    // A timeout of zero is enough for a free lock.
    one.acquire_timeout(Duration::ZERO).await.unwrap().release().await.unwrap();
    a.shutdown().await.unwrap();
    b.shutdown().await.unwrap();
}
