//! The order in which contenders get permits.

use std::time::Duration;

use lockkeeper::error::{Phase, SemaphoreError};
use lockkeeper::{ConnectionManager, Error, Lease, Mutex, Semaphore};
use lockkeeper_tests::{Ensemble, Match, OpCode, Proxies, Timing, eventually};
use tokio::task::JoinHandle;

use super::{LOCKS, PATH, behind_proxy_with, head_sleeps, leases, semaphore, sent, settled, two};
use crate::support::{children, connect, no_node_is_left};

#[tokio::test]
async fn no_permit_too_many_is_granted_and_released_permits_are_granted_again() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 3), semaphore(&b, 3));
    assert_eq!(one.available().await.unwrap(), 3);
    let first = one.acquire_many(2).await.unwrap();
    assert_eq!(first.permits(), 2);
    let second = other.acquire().await.unwrap();
    assert_ne!(first.fencing_token(), second.fencing_token());
    assert_eq!(one.available().await.unwrap(), 0);
    assert!(one.try_acquire().await.unwrap().is_none());
    let error = other.acquire_timeout(Duration::from_secs(2)).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { phase: Phase::Recipe(_), .. }), "{error}");
    assert!(error.to_string().contains("at the head of the queue for 1 permits, 0 of them free"), "{error}");
    let error = other.acquire_many_timeout(2, Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("at the head of the queue for 2 permits, 0 of them free"), "{error}");
    settled(&ensemble, 3, 0).await;
    second.release().await.unwrap();
    let third = one.try_acquire().await.unwrap().expect("one permit was released");
    // A timeout of zero is enough for free permits.
    first.release().await.unwrap();
    other.acquire_many_timeout(2, Duration::ZERO).await.unwrap().release().await.unwrap();
    third.release().await.unwrap();
    settled(&ensemble, 0, 0).await;
}

#[tokio::test]
async fn two_requests_for_three_of_four_permits_never_deadlock() {
    let (ensemble, a, b) = two().await;
    let tasks = [&a, &b].map(|manager| {
        let semaphore = semaphore(manager, 4);
        tokio::spawn(async move {
            for _ in 0..20 {
                let lease = semaphore.acquire_many(3).await.unwrap();
                assert_eq!(lease.permits(), 3);
                lease.release().await.unwrap();
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    settled(&ensemble, 0, 0).await;
}

#[tokio::test]
async fn a_large_request_is_not_overtaken_by_small_ones_behind_it() {
    let (ensemble, a, b) = two().await;
    let (one, other) = (semaphore(&a, 3), semaphore(&b, 3));
    let (held, kept) = (one.acquire().await.unwrap(), one.acquire().await.unwrap());
    let large = tokio::spawn({
        let other = other.clone();
        async move { other.acquire_many(3).await.unwrap() }
    });
    settled(&ensemble, 2, 1).await;
    let small = tokio::spawn(async move { one.acquire().await.unwrap() });
    settled(&ensemble, 2, 2).await;
    // One permit is free, and stays free for the predecessor.
    assert!(other.try_acquire().await.unwrap().is_none());
    let error = other.acquire_timeout(Duration::ZERO).await.unwrap_err();
    assert!(matches!(&error, Error::Timeout { phase: Phase::Queued { ahead: 2, .. }, .. }), "{error}");
    head_sleeps(&ensemble, 1).await;
    held.release().await.unwrap();
    settled(&ensemble, 1, 2).await;
    kept.release().await.unwrap();
    let large = large.await.unwrap();
    assert!(!small.is_finished());
    settled(&ensemble, 3, 1).await;
    large.release().await.unwrap();
    small.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn permits_are_granted_in_the_order_of_the_requests() {
    let (ensemble, a, b) = two().await;
    let managers = [a, b];
    let held = semaphore(&managers[0], 2).acquire_many(2).await.unwrap();
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..6 {
        let (semaphore, sender) = (semaphore(&managers[number % 2], 2), sender.clone());
        tokio::spawn(async move {
            let lease = semaphore.acquire_many(2).await.unwrap();
            sender.send(number).unwrap();
            lease.release().await.unwrap();
        });
        settled(&ensemble, 2, number + 1).await;
    }
    held.release().await.unwrap();
    for expected in 0..6 {
        assert_eq!(served.recv().await, Some(expected));
    }
}

/// Acquires permits until the client watches the queue's directory: then sequence numbers show an empty
/// queue.
async fn numbers_tell(proxies: &Proxies, semaphore: &Semaphore) {
    loop {
        proxies.clear_log();
        semaphore.acquire().await.unwrap().release().await.unwrap();
        if !sent(proxies).contains(&OpCode::GetChildren) {
            return;
        }
    }
}

#[tokio::test]
async fn free_permits_cost_two_round_trips_however_many_and_a_release_one() {
    let (_ensemble, proxies, _manager, semaphore) = behind_proxy_with(5).await;
    for (permits, reads) in [
        (1, [OpCode::GetChildren, OpCode::GetChildren2].as_slice()),
        (3, &[OpCode::GetChildren2]),
        (5, &[OpCode::GetChildren2]),
    ] {
        proxies.clear_log();
        let answer = proxies.on(Match::new().op(OpCode::Create2).path_contains("lock-")).hold_reply();
        let acquiring = tokio::spawn({
            let semaphore = semaphore.clone();
            async move { semaphore.acquire_many(permits).await.unwrap() }
        });
        answer.triggered().await.unwrap();
        // The reads are in flight before the answer to the create, the list of the queue first.
        let first_round = eventually("one round trip", Timing::event(), || async {
            (sent(&proxies) == [&[OpCode::Create2], reads].concat()).then_some(())
        });
        first_round.await.unwrap();
        answer.release();
        let lease = acquiring.await.unwrap();
        let mut asked = sent(&proxies);
        asked.retain(|op| *op != OpCode::GetData);
        assert_eq!(asked, [&[OpCode::Create2], reads, &[OpCode::Multi]].concat(), "{permits} permits");
        proxies.clear_log();
        lease.release().await.unwrap();
        assert_eq!(sent(&proxies).len(), 1);
        numbers_tell(&proxies, &semaphore).await;
    }
}

/// Starts the acquires one after another, so that each is queued when its predecessor is granted.
async fn queued(
    ensemble: &Ensemble,
    manager: &ConnectionManager,
    out: &Lease,
    count: usize,
) -> Vec<JoinHandle<Lease>> {
    let mut waiting = Vec::new();
    for number in 1..=count {
        let semaphore = semaphore(manager, 4);
        waiting.push(tokio::spawn(async move { semaphore.acquire().await.unwrap() }));
        settled(ensemble, out.permits(), number).await;
    }
    waiting
}

#[tokio::test]
async fn a_successor_in_the_same_process_uses_the_permit_count_of_its_predecessor() {
    let (ensemble, proxies, manager, _) = behind_proxy_with(4).await;
    let out = semaphore(&manager, 4).acquire_many(4).await.unwrap();
    proxies.clear_log();
    let mut waiting = queued(&ensemble, &manager, &out, 5).await;
    looks_become(&proxies, 2).await;
    proxies.clear_log();
    out.release().await.unwrap();
    // The first contender lists; three take the remaining permits; the fifth lists, and then waits.
    looks_become(&proxies, 3).await;
    settled(&ensemble, 4, 1).await;
    assert!(!sent(&proxies).contains(&OpCode::GetChildren), "{:?}", sent(&proxies));
    let last = waiting.pop().unwrap();
    for waiter in waiting {
        waiter.await.unwrap().release().await.unwrap();
    }
    let _last = last.await.unwrap();
}

/// Waits until `count` lists of the leases were answered, and no more.
async fn looks_become(proxies: &Proxies, count: usize) {
    let seen = eventually(format!("{count} lists"), Timing::settle(), || async {
        let log = proxies.log();
        let lists = log.requests().filter(|request| request.op == OpCode::GetChildren2);
        let answered = lists.filter(|request| log.reply_to(request).is_some()).count();
        assert!(answered <= count, "{answered} lists");
        (answered == count).then_some(())
    });
    seen.await.unwrap();
}

#[tokio::test]
async fn a_waiter_whose_node_was_deleted_by_hand_gets_no_hand_off() {
    let (ensemble, _proxies, manager, _) = behind_proxy_with(4).await;
    let out = semaphore(&manager, 4).acquire_many(4).await.unwrap();
    let waiting = queued(&ensemble, &manager, &out, 2).await;
    // A foreign contender is behind the second one, whose node is then deleted.
    let other = connect(&ensemble.connect_string()).await;
    let foreign = tokio::spawn({
        let semaphore = semaphore(&other, 4);
        async move { semaphore.acquire_many(4).await.unwrap() }
    });
    settled(&ensemble, 4, 3).await;
    let mut queue = children(&ensemble, LOCKS).await;
    queue.sort_by_key(|name| name.split('-').next_back().map(str::to_owned));
    let mut raw = ensemble.raw().await.unwrap();
    raw.delete(&format!("{LOCKS}/{}", queue[1])).await.unwrap();
    out.release().await.unwrap();
    let mut waiting = waiting.into_iter();
    let first = waiting.next().unwrap().await.unwrap();
    first.release().await.unwrap();
    // The foreign contender gets all four permits before the second one gets any.
    let all = foreign.await.unwrap();
    let second = waiting.next().unwrap();
    settled(&ensemble, 4, 1).await;
    assert!(!second.is_finished());
    all.release().await.unwrap();
    let _second = second.await.unwrap();
}

#[tokio::test]
async fn a_new_semaphore_reads_the_recorded_limit_with_its_first_list() {
    let (_ensemble, proxies, manager, _semaphore) = behind_proxy_with(2).await;
    proxies.clear_log();
    let lease = semaphore(&manager, 2).acquire().await.unwrap();
    let all = [OpCode::Create2, OpCode::GetChildren, OpCode::GetChildren2, OpCode::GetData];
    assert_eq!(sent(&proxies)[..4], all);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_wait_at_the_head_leaves_no_watch() {
    let (ensemble, a, b) = two().await;
    let held = semaphore(&a, 1).acquire().await.unwrap();
    let other = semaphore(&b, 1);
    assert!(other.acquire_timeout(Duration::from_millis(300)).await.unwrap_err().is_timeout());
    held.release().await.unwrap();
    other.acquire().await.unwrap().release().await.unwrap();
    let none = eventually("no watch", Timing::event(), || async {
        (super::watches(&ensemble).await == 0).then_some(())
    });
    none.await.unwrap();
}

#[tokio::test]
async fn leases_name_their_holder() {
    let (_ensemble, a, b) = two().await;
    let one = semaphore(&a, 4).with_node_data("the nightly report");
    let first = one.acquire_many(2).await.unwrap();
    let second = semaphore(&b, 4).with_node_data("a user").acquire().await.unwrap();
    let seen = one.inspect().await.unwrap();
    let out: Vec<_> = seen.holders().collect();
    let said: Vec<&[u8]> = out.iter().filter_map(|lease| lease.data()).collect();
    assert_eq!(said, [&b"the nightly report"[..], b"the nightly report", b"a user"]);
    assert!(first.path() == out[0].path() && second.path() == out[2].path());
    assert_eq!((out[0].czxid(), out[0].session()), (out[1].czxid(), out[1].session()));
    assert_ne!(out[0].session(), out[2].session());
    assert!(out[2].since().elapsed().is_ok_and(|age| age < Timing::settle()));
    drop((first, second));
}

#[tokio::test]
async fn a_mutex_in_semaphore_layout_excludes_and_its_tokens_grow() {
    let (ensemble, a, b) = two().await;
    let (one, two) =
        (Mutex::in_semaphore_layout(&a, PATH).unwrap(), Mutex::in_semaphore_layout(&b, PATH).unwrap());
    assert_eq!(one.path().as_str(), PATH);
    let first = one.acquire().await.unwrap();
    assert!(two.try_acquire().await.unwrap().is_none());
    assert!(two.acquire_timeout(Duration::from_millis(300)).await.unwrap_err().is_timeout());
    let waiter = tokio::spawn(async move { two.acquire().await.unwrap() });
    settled(&ensemble, 1, 1).await;
    let token = first.fencing_token();
    first.release().await.unwrap();
    let second = waiter.await.unwrap();
    assert!(second.fencing_token() > token);
    // A semaphore of more permits is another lock on the same path.
    let error = semaphore(&a, 2).acquire().await.unwrap_err();
    assert!(
        matches!(error.recipe(), Some(SemaphoreError::LimitsDisagree { mine: 2, recorded: 1, .. })),
        "{error}"
    );
    assert_eq!(leases(&ensemble).await, 1);
    second.release().await.unwrap();
    no_node_is_left(&ensemble, super::LEASES).await;
}
