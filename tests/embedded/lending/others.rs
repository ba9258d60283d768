//! What counts as another contender.

use std::time::Duration;

use lockkeeper::locks::SharedLimit;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Lease, Semaphore, ZnodePath};
use lockkeeper_testserver::{Fault, Op, When};

use super::fixture::{AT_MOST, LendingFixture, SESSION, Waiter, bounds};
use crate::limit::within;
use crate::server_fixture::LOCK;

/// The permit goes from lease to lease more often than it would beside another contender that waits.
async fn expect_no_end(fixture: &LendingFixture, semaphore: &Semaphore, mut lease: Lease, node: &ZnodePath) {
    assert_eq!(lease.path(), node, "the node was given up");
    // Others are watched for from the first hand-off on.
    lease.release().await.unwrap();
    lease = semaphore.acquire().await.unwrap();
    fixture.wait_judged().await;
    for _ in 0..AT_MOST + 2 {
        lease.release().await.unwrap();
        fixture.let_all_run().await;
        lease = within("a permit", semaphore.acquire()).await.unwrap().unwrap();
        assert_eq!(lease.path(), node, "the node was given up");
    }
    lease.release().await.unwrap();
}

/// The contender of the rival needs three permits, and two are idle. Others try, and leave the queue at once.
#[tokio::test]
async fn a_contender_for_more_permits_than_are_free_gets_them_although_others_come_and_go() {
    let policy = bounds().max_time(Duration::from_millis(100)).idle_time(SESSION / 3);
    let fixture = LendingFixture::set(4, policy).await;
    let (one, two) = (fixture.semaphore.acquire().await.unwrap(), fixture.semaphore.acquire().await.unwrap());
    one.release().await.unwrap();
    two.release().await.unwrap();
    fixture.wait_watched().await;
    let theirs = fixture.theirs(4);
    let waiting = tokio::spawn(async move { theirs.acquire_many(3).await.unwrap() });
    fixture.contenders_become(1).await;
    let theirs = fixture.theirs(4);
    let trying = async {
        loop {
            drop(theirs.try_acquire().await);
            tokio::task::yield_now().await;
        }
    };
    let granted = tokio::select! {
        granted = within("three permits", waiting) => granted.unwrap().unwrap(),
        () = trying => unreachable!("it tries until then"),
    };
    drop(granted);
}

/// The contender of the process was dropped while its create had no answer.
#[tokio::test]
async fn a_contender_of_this_process_that_left_before_its_answer_is_no_other_contender() {
    let fixture = LendingFixture::lingering(1).await;
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_watched().await;
    let held = fixture.semaphore.acquire().await.unwrap();
    let node = held.path().clone();
    let create = When::create().path(&format!("{LOCK}/locks/*")).session(fixture.session());
    let create = fixture.server_fixture.server.fault(create, Fault::HoldReply);
    let waiter = Waiter::of(&fixture.semaphore);
    within("the create", create.hit()).await.unwrap();
    fixture.contenders_become(1).await;
    held.release().await.unwrap();
    let lease = waiter.lease().await;
    fixture.let_all_run().await;
    create.release();
    fixture.contenders_become(0).await;
    expect_no_end(&fixture, &fixture.semaphore, lease, &node).await;
}

#[tokio::test]
async fn a_child_of_the_queue_without_a_number_is_no_other_contender() {
    let fixture = LendingFixture::lingering(1).await;
    let lease = fixture.semaphore.acquire().await.unwrap();
    let znodes = fixture.server_fixture.rival.znodes();
    znodes.create(&format!("{LOCK}/locks/notes"), "", CreateMode::Persistent).await.unwrap();
    let node = lease.path().clone();
    expect_no_end(&fixture, &fixture.semaphore, lease, &node).await;
}

#[tokio::test]
async fn a_contender_that_has_left_is_no_other_contender() {
    let policy = bounds().max_time(Duration::from_millis(50)).idle_time(SESSION / 3);
    let fixture = LendingFixture::set(1, policy).await;
    let lease = fixture.semaphore.acquire().await.unwrap();
    let node = lease.path().clone();
    lease.release().await.unwrap();
    let lease = fixture.semaphore.acquire().await.unwrap();
    fixture.wait_judged().await;
    let ticket = fixture.theirs(1).enqueue().await.unwrap();
    fixture.wait_judged().await;
    let list = When::op(Op::GetChildren2).path(&format!("{LOCK}/locks")).session(fixture.session());
    let list = fixture.server_fixture.server.fault(list, Fault::DelayReply(Duration::ZERO));
    drop(ticket);
    within("another look at the queue", list.hit()).await.unwrap();
    fixture.wait_judged().await;
    expect_no_end(&fixture, &fixture.semaphore, lease, &node).await;
}

#[tokio::test]
async fn a_process_that_is_alone_does_not_ask_how_many_permits_are_in_use() {
    let fixture = LendingFixture::lingering(2).await;
    let lists = When::op(Op::GetChildren).path(&format!("{LOCK}/leases")).always();
    let lists = fixture.server_fixture.server.fault(lists, Fault::DelayReply(Duration::ZERO));
    fixture.semaphore.acquire().await.unwrap().release().await.unwrap();
    fixture.wait_judged().await;
    assert_eq!(lists.hits(), 0);
}

#[tokio::test]
async fn a_process_that_is_alone_hands_all_permits_of_a_shared_limit_on_without_end() {
    let fixture = LendingFixture::lingering(1).await;
    let limit = SharedLimit::new(&fixture.actor, "/limit").unwrap();
    limit.set(1).await.unwrap();
    let shared = Semaphore::new_shared(&fixture.actor, LOCK, &limit).unwrap();
    let shared = shared.with_handoff(bounds().idle_time(SESSION / 3)).unwrap();
    let lease = shared.acquire().await.unwrap();
    let node = lease.path().clone();
    expect_no_end(&fixture, &shared, lease, &node).await;
}
