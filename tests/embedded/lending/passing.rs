//! The hand-off of a permit from one task to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockkeeper::Semaphore;
use lockkeeper::config::HandOffPolicy;
use lockkeeper::error::SemaphoreError;

use super::fixture::{AT_MOST, LendingFixture, Waiter, asked, bounds};
use crate::limit::within;
use crate::server_fixture::LOCK;

#[tokio::test]
async fn tasks_of_a_process_get_a_permit_in_the_order_of_their_acquires_without_a_request() {
    let fixture = LendingFixture::lingering(1).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let (node, mut token) = (held.path().to_owned(), held.fencing_token());
    let waiters = fixture.waiters(AT_MOST as usize + 5).await;
    // Its own contender in the queue changes the list, which is read again.
    fixture.wait_heard().await;
    let transcript = fixture.server_fixture.server.transcript();
    let last = waiters.len() - 1;
    let mut lease = held;
    for (number, waiter) in waiters.into_iter().enumerate() {
        lease.release().await.unwrap();
        lease = waiter.lease().await;
        assert!(*lease.path() == node && lease.fencing_token() > token && lease.permits() == 1);
        assert_eq!(lease.fencing_token().as_u64(), token.as_u64());
        token = lease.fencing_token();
        if number < last {
            assert_eq!(asked(transcript.passed(), fixture.session()), []);
        }
    }
    // No task waits any more, so the contender leaves the queue.
    fixture.contenders_become(0).await;
    lease.release().await.unwrap();
    fixture.leases_become(1).await;
}

#[tokio::test]
async fn a_process_takes_permits_for_its_waiting_tasks_until_none_is_free() {
    let fixture = LendingFixture::set(3, bounds()).await;
    let mut waiters: Vec<Waiter> = (0..4).map(|_| Waiter::of(&fixture.semaphore)).collect();
    let last = waiters.pop().unwrap();
    let mut leases = Vec::new();
    for waiter in waiters {
        leases.push(waiter.lease().await);
    }
    let nodes: std::collections::BTreeSet<_> = leases.iter().map(|lease| lease.path().to_owned()).collect();
    assert_eq!(nodes.len(), 3);
    fixture.contenders_become(1).await;
    leases.pop().unwrap().release().await.unwrap();
    let lease = last.lease().await;
    assert!(nodes.contains(lease.path()), "the permit was not handed off");
    drop((lease, leases));
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn while_another_process_waits_a_permit_is_handed_off_at_most_max_handoffs_times() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let node = held.path().to_owned();
    let theirs = fixture.theirs(1);
    let rival = tokio::spawn(async move { theirs.acquire().await.unwrap() });
    fixture.contenders_become(1).await;
    let waiters = fixture.waiters(8).await;
    let serving = tokio::spawn(async move {
        let mut nodes = Vec::new();
        for waiter in waiters {
            let lease = waiter.lease().await;
            nodes.push(lease.path().to_owned());
            lease.release().await.unwrap();
        }
        nodes
    });
    held.release().await.unwrap();
    let lease = within("a grant to the other process", rival).await.unwrap().unwrap();
    lease.release().await.unwrap();
    let nodes = within("the grants of all waiters", serving).await.unwrap().unwrap();
    assert_eq!(nodes.iter().filter(|other| **other == node).count(), AT_MOST as usize);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

/// The rival comes after the process was alone for a while: the watch reports it.
#[tokio::test]
async fn a_contender_that_comes_while_permits_are_handed_off_is_not_starved() {
    let brief = Duration::from_millis(20);
    let policy = HandOffPolicy::default().max_handoffs(u32::MAX).max_time(brief).idle_time(brief);
    let fixture = LendingFixture::set(2, policy).await;
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (semaphore, is_over) = (fixture.semaphore.clone(), Arc::clone(&is_over));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let lease = semaphore.acquire().await.unwrap();
                    tokio::task::yield_now().await;
                    lease.release().await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    fixture.wait_watched().await;
    for permits in [1, 2, 1, 2] {
        let theirs = fixture.theirs(2);
        let lease = within("a grant", theirs.acquire_many(permits)).await.unwrap().unwrap();
        lease.release().await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        within("the end of a task", task).await.unwrap().unwrap();
    }
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn two_processes_that_keep_permits_never_have_more_than_the_limit_and_all_tasks_are_served() {
    const LIMIT: u32 = 3;
    let policy = HandOffPolicy::default().max_handoffs(4).idle_time(Duration::from_millis(50));
    let fixture = LendingFixture::set(LIMIT, policy).await;
    let theirs = fixture.theirs(LIMIT).with_handoff(policy).unwrap();
    let inside = Arc::new(AtomicU32::new(0));
    let mut tasks = Vec::new();
    for semaphore in [&fixture.semaphore, &theirs] {
        for number in 0..4 {
            let (semaphore, inside) = (semaphore.clone(), Arc::clone(&inside));
            tasks.push(tokio::spawn(async move {
                for round in 0..40 {
                    let lease = semaphore.acquire().await.unwrap();
                    assert!(inside.fetch_add(1, Ordering::SeqCst) < LIMIT, "more holders than permits");
                    if (number + round) % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                    assert!(lease.is_valid());
                    inside.fetch_sub(1, Ordering::SeqCst);
                    match round % 2 {
                        0 => drop(lease),
                        _ => lease.release().await.unwrap(),
                    }
                    tokio::task::yield_now().await;
                }
            }));
        }
    }
    for task in tasks {
        within("the end of a task", task).await.unwrap().unwrap();
    }
    drop(theirs);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn dropped_waiters_leave_no_node_and_keep_no_permit() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let node = held.path().to_owned();
    let mut waiters = fixture.waiters(4).await;
    drop(waiters.remove(1));
    held.release().await.unwrap();
    // The hand-off to this waiter is sent, and the waiter has not been polled since.
    drop(waiters.remove(0));
    for waiter in waiters {
        let lease = waiter.lease().await;
        assert_eq!(*lease.path(), node);
        lease.release().await.unwrap();
    }
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    let held = fixture.theirs(1).acquire().await.unwrap();
    let waiters = fixture.waiters(2).await;
    drop(waiters);
    fixture.contenders_become(0).await;
    held.release().await.unwrap();
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_task_that_gives_up_names_the_tasks_ahead_and_a_try_takes_what_is_free() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let waiter = Waiter::of(&fixture.semaphore);
    let refused = fixture.semaphore.acquire_timeout(Duration::from_millis(10)).await.unwrap_err();
    assert!(
        refused.is_timeout() && refused.to_string().contains("other tasks of this process, 1 ahead"),
        "{refused}"
    );
    assert!(fixture.semaphore.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    assert!(fixture.semaphore.try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    waiter.lease().await.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    let free = fixture.semaphore.try_acquire().await.unwrap().expect("a free permit");
    assert!(fixture.semaphore.try_acquire().await.unwrap().is_none());
    free.release().await.unwrap();
    let free = fixture.semaphore.acquire_timeout(Duration::ZERO).await.unwrap();
    assert!(fixture.semaphore.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    free.release().await.unwrap();
}

/// The process has no node yet that it could hand off.
#[tokio::test]
async fn a_wait_of_no_time_takes_a_permit_that_is_free_at_the_server() {
    let fixture = LendingFixture::lingering(1).await;
    let lease =
        within("an answer", fixture.semaphore.acquire_timeout(Duration::ZERO)).await.unwrap().unwrap();
    assert!(fixture.semaphore.acquire_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_waiting_task_gets_the_error_of_the_contender_and_the_next_one_tries_again() {
    let fixture = LendingFixture::set(1, bounds()).await;
    let other = Semaphore::new(&fixture.server_fixture.rival, LOCK, 2).unwrap();
    let held = other.acquire().await.unwrap();
    let waiters: Vec<Waiter> = (0..2).map(|_| Waiter::of(&fixture.semaphore)).collect();
    for waiter in waiters {
        let refused = waiter.result().await.unwrap_err();
        assert!(matches!(refused.recipe(), Some(SemaphoreError::LimitsDisagree { .. })), "{refused}");
    }
    held.release().await.unwrap();
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
}
