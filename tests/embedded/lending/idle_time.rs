//! Permits that are kept for `idle_time` after the last lease.

use std::time::Duration;

use lockkeeper::locks::SharedLimit;
use lockkeeper::{Revoker, Semaphore};

use super::fixture::{LendingFixture, SESSION, Waiter, asked, bounds, leases};
use crate::limit::within;
use crate::server_fixture::LOCK;

/// Less than the idle time.
const PROMPTLY: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_idle_permit_is_acquired_again_and_again_without_a_request() {
    let fixture = LendingFixture::lingering(4).await;
    let both = [fixture.semaphore.acquire().await.unwrap(), fixture.semaphore.acquire().await.unwrap()];
    for lease in both {
        lease.release().await.unwrap();
    }
    fixture.wait_watched().await;
    let transcript = fixture.server_fixture.server.transcript();
    for round in 0..100 {
        let first = fixture.semaphore.acquire().await.unwrap();
        let second = match round % 2 {
            0 => fixture.semaphore.acquire().await.unwrap(),
            _ => fixture.semaphore.try_acquire().await.unwrap().expect("an idle permit"),
        };
        assert!(first.is_valid() && second.is_valid() && first.path() != second.path());
        match round % 3 {
            0 => drop(first),
            _ => first.release().await.unwrap(),
        }
    }
    assert_eq!(asked(transcript.passed(), fixture.session()), []);
    assert_eq!(fixture.semaphore.available().await.unwrap(), 2);
    drop(fixture.semaphore);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

/// Otherwise no task of the process would see other contenders.
#[tokio::test]
async fn a_task_that_takes_an_idle_permit_again_and_again_lets_other_tasks_run() {
    let fixture = LendingFixture::lingering(1).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let theirs = fixture.theirs(1);
    let other = tokio::spawn(async move { theirs.acquire().await.unwrap().release().await.unwrap() });
    let mut taken = 0;
    while !other.is_finished() && taken < 1_000_000 {
        fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
        taken += 1;
    }
    assert!(other.is_finished(), "after {taken} leases");
    other.await.unwrap();
}

#[tokio::test]
async fn idle_permits_are_deleted_when_another_process_finds_none_free() {
    let fixture = LendingFixture::lingering(1).await;
    for is_seen_before in [false, true] {
        fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
        if is_seen_before {
            fixture.wait_watched().await;
        }
        fixture.theirs(1).acquire_timeout(PROMPTLY).await.unwrap().release().await.unwrap();
    }
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn idle_permits_stay_while_another_process_takes_free_ones() {
    let fixture = LendingFixture::lingering(3).await;
    let first = fixture.semaphore.acquire().await.unwrap();
    let node = first.path().to_owned();
    first.release().await.unwrap();
    fixture.wait_watched().await;
    let theirs = fixture.theirs(3);
    for _ in 0..3 {
        theirs.acquire().await.unwrap().release().await.unwrap();
    }
    fixture.server_fixture.round_trip_of_rival().await.unwrap();
    assert_eq!(*fixture.semaphore.acquire().await.unwrap().path(), node);
}

#[tokio::test]
async fn idle_permits_are_deleted_when_another_process_waits_for_more_than_are_free() {
    let policy = bounds().max_time(Duration::from_millis(50)).idle_time(PROMPTLY * 2);
    let fixture = LendingFixture::set(3, policy).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let theirs = fixture.theirs(3).acquire_many_timeout(3, PROMPTLY).await.unwrap();
    theirs.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

/// A request for several permits is another contender, and needs the idle permits at once.
#[tokio::test]
async fn a_request_for_several_permits_of_the_same_semaphore_takes_the_idle_ones_as_well() {
    let fixture = LendingFixture::lingering(2).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let lease = fixture.semaphore.acquire_many_timeout(2, PROMPTLY).await.unwrap();
    assert_eq!(lease.permits(), 2);
    lease.release().await.unwrap();
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    // The delete of the idle node is sent before.
    let lease = fixture.semaphore.try_acquire_many(2).await.unwrap().expect("two free permits");
    lease.release().await.unwrap();
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}

#[tokio::test]
async fn an_idle_permit_is_deleted_when_its_idle_time_ends() {
    let fixture = LendingFixture::set(2, bounds().idle_time(Duration::from_millis(20))).await;
    for _ in 0..3 {
        fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
        fixture.server_fixture.queue_length_becomes(0).await.unwrap();
    }
}

#[test]
fn idle_permits_are_deleted_with_the_last_clone_of_the_semaphore_also_outside_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fixture = runtime.block_on(LendingFixture::lingering(2));
    let clone = fixture.semaphore.clone();
    runtime.block_on(async { clone.acquire().await.unwrap().release().await.unwrap() });
    assert_eq!(fixture.server_fixture.server.inspect(|machine| leases(machine).len()), 1);
    drop(clone);
    drop(fixture.semaphore);
    runtime.block_on(fixture.server_fixture.queue_length_becomes(0)).unwrap();
}

#[tokio::test]
async fn an_idle_permit_keeps_no_session_alive() {
    let fixture = LendingFixture::lingering(1).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let LendingFixture { server_fixture, actor, semaphore } = fixture;
    drop((actor, semaphore));
    let ended = server_fixture.server.wait_until(|machine| machine.sessions().len() == 1);
    within("the end of the session", ended).await.unwrap();
}

#[tokio::test]
async fn an_idle_permit_is_deleted_when_a_revoker_asks_for_it() {
    let fixture = LendingFixture::lingering(2).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    let inspection = fixture.theirs(2).inspect().await.unwrap();
    let asked = Revoker::new(&fixture.server_fixture.rival).ask(inspection.contenders()).await.unwrap();
    assert_eq!(asked.len(), 1);
    tokio::time::timeout(PROMPTLY, fixture.server_fixture.queue_length_becomes(0)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shared_limit_that_is_lowered_ends_the_hand_offs_until_it_is_kept() {
    let fixture = LendingFixture::lingering(1).await;
    let limit = SharedLimit::new(&fixture.actor, "/limit").unwrap();
    limit.set(2).await.unwrap();
    let shared = Semaphore::new_shared(&fixture.actor, LOCK, &limit).unwrap();
    let policy = bounds().max_time(Duration::from_millis(50)).idle_time(SESSION / 3);
    let shared = shared.with_handoff(policy).unwrap();
    let both = [shared.acquire().await.unwrap(), shared.acquire().await.unwrap()];
    let waiter = Waiter::of(&shared);
    limit.set(1).await.unwrap();
    let [first, second] = both;
    first.release().await.unwrap();
    // Handed off before the new limit was seen, or released: one of both nodes ends, without another
    // contender, and long before it was idle for its time.
    second.release().await.unwrap();
    let lease = waiter.lease().await;
    fixture.leases_become(1).await;
    lease.release().await.unwrap();
    assert_eq!(limit.get().await.unwrap(), 1);
    drop(shared);
    fixture.server_fixture.queue_length_becomes(0).await.unwrap();
}
