//! What counts as another contender.

use std::time::Duration;

use lockkeeper_testserver::{Fault, When};

use super::fixture::{LendingFixture, SESSION, Waiter, bounds};
use crate::limit::within;
use crate::server_fixture::LOCK;

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
    let node = held.path().to_owned();
    let create = When::create().path(&format!("{LOCK}/locks/*")).session(fixture.session());
    let create = fixture.server_fixture.server.fault(create, Fault::HoldReply);
    let waiter = Waiter::of(&fixture.semaphore);
    within("the create", create.hit()).await.unwrap();
    fixture.contenders_become(1).await;
    held.release().await.unwrap();
    let mut lease = waiter.lease().await;
    fixture.let_all_run().await;
    create.release();
    fixture.contenders_become(0).await;
    for _ in 0..3 {
        fixture.server_fixture.round_trip_of_rival().await.unwrap();
        fixture.let_all_run().await;
    }
    for _ in 0..5 {
        lease.release().await.unwrap();
        fixture.let_all_run().await;
        lease = within("a permit", fixture.semaphore.acquire()).await.unwrap().unwrap();
        assert_eq!(*lease.path(), node, "the node was given up for the process's own contender");
    }
}
