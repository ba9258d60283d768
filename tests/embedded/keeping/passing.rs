//! The hand-off from one task to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::WouldDeadlock;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::manager::{HoldEvent, State};
use lockkeeper::{Mutex, Owner};
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{AT_MOST, HandOffFixture, Waiter, asked, keep, nodes_of};
use crate::limit::within;
use crate::server_fixture::LOCK;

#[tokio::test]
async fn tasks_of_a_process_are_granted_in_the_order_of_their_acquires_on_one_node() {
    let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let transcript = fixture.server_fixture.server.transcript();
    let (order, mut served) = (parking_lot::Mutex::new(Vec::new()), Vec::new());
    for (number, waiter) in fixture.waiters(5).into_iter().enumerate() {
        let order = &order;
        served.push(async move {
            let guard = waiter.guard().await;
            order.lock().push((number, guard.fencing_token(), guard.path().to_owned()));
            guard.release().await.unwrap();
        });
    }
    let first = held.fencing_token();
    held.release().await.unwrap();
    // The last waiter is polled first.
    served.reverse();
    futures::future::join_all(served).await;
    let order = order.into_inner();
    assert_eq!(order.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert!(order.iter().all(|(_, token, path)| *token > first && *path == node));
    assert!(order.is_sorted_by(|one, next| one.1 < next.1 && one.1.as_u64() == next.1.as_u64()));
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    let ops: Vec<_> =
        asked(transcript.passed(), fixture.session()).into_iter().map(|passed| passed.subject).collect();
    // One check for contenders of other processes, and the delete of the node.
    assert_eq!(ops, [Op::GetChildren2, Op::GetData, Op::Delete].map(Subject::Request));
}

#[tokio::test]
async fn while_another_process_waits_a_node_is_handed_off_at_most_max_handoffs_times() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let (node, token) = (held.path().to_owned(), held.fencing_token());
    let rival = fixture.rival_waits().await;
    let waiters = fixture.waiters(8);
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    let theirs = within("a grant to the other process", rival).await.unwrap().unwrap();
    assert!(theirs.fencing_token() > token);
    theirs.release().await.unwrap();
    let nodes = within("the grants of all waiters", serving).await.unwrap().unwrap();
    let on_the_first = nodes.iter().filter(|other| **other == node).count();
    assert_eq!(on_the_first, AT_MOST as usize);
    assert!(nodes[AT_MOST as usize..].iter().all(|other| *other != node), "{nodes:?}");
}

#[tokio::test]
async fn while_another_process_waits_a_node_is_handed_off_no_longer_than_max_time() {
    let brief = Duration::from_millis(1);
    let fixture = HandOffFixture::set(HandOffPolicy::default().max_handoffs(u32::MAX).max_time(brief)).await;
    assert_not_starved(&fixture, brief * 2).await;
}

/// The rival comes after the process was alone for a while: the watch reports it.
#[tokio::test]
async fn a_contender_that_comes_while_a_node_is_handed_off_again_and_again_is_not_starved() {
    assert_not_starved(&HandOffFixture::set(keep()).await, Duration::ZERO).await;
}

async fn assert_not_starved(fixture: &HandOffFixture, hold: Duration) {
    let is_over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (mutex, is_over) = (fixture.mutex.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let guard = mutex.acquire().await.unwrap();
                    // The passing of time is the subject: holds of this length use up `max_time`.
                    tokio::time::sleep(hold).await;
                    guard.release().await.unwrap();
                }
            })
        })
        .collect();
    fixture.wait_watched().await;
    for _ in 0..3 {
        let theirs = Mutex::new(&fixture.server_fixture.rival, LOCK).unwrap();
        let guard = within("a grant to the other process", theirs.acquire()).await.unwrap().unwrap();
        guard.release().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

/// A contender of another process may come meanwhile, unseen.
#[tokio::test]
async fn without_a_connection_other_processes_are_assumed_to_wait() {
    let fixture = HandOffFixture::set(keep()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let one = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    let held = one.guard().await;
    fixture.wait_watched().await;
    let waiters = fixture.waiters(8);
    let mut transitions = fixture.actor.transitions();
    fixture.server_fixture.server.refuse_connections();
    fixture.server_fixture.server.drop_connections();
    let suspended =
        async { while !matches!(transitions.next().await.unwrap().state, State::Suspended(_)) {} };
    within("the loss of the link", suspended).await.unwrap();
    fixture.let_all_run().await;
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    fixture.let_all_run().await;
    fixture.server_fixture.server.accept_connections();
    let nodes = within("the grants of all waiters", serving).await.unwrap().unwrap();
    // Hand-offs before the first answer may count, too.
    assert!(nodes.iter().filter(|other| **other == node).count() <= AT_MOST as usize);
}

#[tokio::test]
async fn a_dropped_waiter_is_skipped_and_a_hand_off_in_flight_to_it_grants_its_successor() {
    let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let mut waiters = fixture.waiters(4);
    drop(waiters.remove(1));
    held.release().await.unwrap();
    // The hand-off to this waiter is sent, and the waiter has not been polled since.
    drop(waiters.remove(0));
    let nodes = nodes_of(waiters).await;
    assert_eq!(nodes, [node.clone(), node]);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_dropped_waiter_that_had_the_shared_node_is_followed_by_the_next() {
    let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
    let theirs = Mutex::new(&fixture.server_fixture.rival, LOCK).unwrap().acquire().await.unwrap();
    let mutex = fixture.mutex.clone();
    let queued = tokio::spawn(async move { mutex.acquire().await });
    fixture.server_fixture.queue_length_becomes(2).await.unwrap();
    let waiters = fixture.waiters(2);
    queued.abort();
    theirs.release().await.unwrap();
    assert_eq!(nodes_of(waiters).await.len(), 2);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn a_timeout_behind_the_own_process_says_so() {
    let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
    let held = fixture.mutex.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.mutex);
    // The first acquire has timed out when the second begins.
    for _ in 0..2 {
        let refused = fixture.mutex.acquire_timeout(Duration::from_millis(10)).await.unwrap_err();
        assert!(
            refused.is_timeout() && refused.to_string().contains("other tasks of this process, 2 ahead"),
            "{refused}"
        );
    }
    assert!(fixture.mutex.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert!(fixture.mutex.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    waiter.guard().await.release().await.unwrap();
    let _ = fixture.mutex.try_acquire().await.unwrap().expect("a free lock");
}

#[tokio::test]
async fn an_owner_that_holds_the_lock_does_not_wait_for_itself() {
    let fixture = HandOffFixture::set(keep()).await;
    let owner = Owner::new("one");
    let work = async {
        let held = fixture.mutex.acquire().await.unwrap();
        let refused = fixture.mutex.acquire().await.unwrap_err();
        assert!(refused.recipe::<WouldDeadlock>().is_some(), "{refused}");
        held.release().await.unwrap();
        fixture.mutex.acquire().await.unwrap().release().await.unwrap();
    };
    owner.scope(work).await;
}

#[tokio::test]
async fn each_guard_has_its_events_and_none_before_the_previous_guard_ended() {
    let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
    let mut events = ZooKeeperLock::events(&fixture.mutex);
    let held = fixture.mutex.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.mutex);
    held.release().await.unwrap();
    waiter.guard().await.release().await.unwrap();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let Some(HoldEvent::Acquired { token, .. }) = events.next().await else { panic!("no grant") };
        tokens.push(token);
        assert!(matches!(events.next().await, Some(HoldEvent::Released { .. })));
    }
    assert!(tokens[0] < tokens[1] && events.next().now_or_never().is_none());
    assert!(!ZooKeeperLock::is_held(&fixture.mutex) && fixture.actor.health().held == 0);
}

#[test]
fn a_guard_that_is_dropped_outside_a_runtime_is_handed_off() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (fixture, held, waiter) = runtime.block_on(async {
        let fixture = HandOffFixture::set(HandOffPolicy::default()).await;
        let held = fixture.mutex.acquire().await.unwrap();
        let waiter = Waiter::of(&fixture.mutex);
        (fixture, held, waiter)
    });
    let node = held.path().to_owned();
    drop(held);
    let guard = runtime.block_on(waiter.guard());
    assert_eq!(*guard.path(), node);
    drop(guard);
    runtime.block_on(fixture.server_fixture.queue_length_becomes(0)).unwrap();
}

#[tokio::test]
async fn until_the_first_list_other_processes_are_assumed_to_wait() {
    let fixture = HandOffFixture::set(keep()).await;
    let list = When::op(Op::GetChildren2).path(LOCK).session(fixture.session());
    let list = fixture.server_fixture.server.fault(list, Fault::HoldReply);
    let held = fixture.mutex.acquire().await.unwrap();
    let node = held.path().to_owned();
    let waiters = fixture.waiters(8);
    let serving = tokio::spawn(nodes_of(waiters));
    held.release().await.unwrap();
    within("the list", list.hit()).await.unwrap();
    fixture.let_all_run().await;
    list.release();
    let nodes = within("the grants of all waiters", serving).await.unwrap().unwrap();
    assert_eq!(nodes.iter().filter(|other| **other == node).count(), AT_MOST as usize);
}
