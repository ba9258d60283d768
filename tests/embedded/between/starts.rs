//! Faults between a rate limiter's transaction, whose answer is lost, and the list that finds its nodes.

use std::time::Duration;

use futures::poll;
use lockkeeper::{BootInstant, ConnectionManager, RateLimiter};
use lockkeeper_testserver::{Fault, Op, When};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder, children};

const PATH: &str = "/rate";
const STARTS: &str = "/rate/starts";
const LOCKS: &str = "/rate/locks";
const WINDOW: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(100);

fn limiter(manager: &ConnectionManager, starts: u32) -> RateLimiter {
    RateLimiter::new(manager, PATH, starts, WINDOW).unwrap().grace(GRACE)
}

/// The transaction is held on its way, its connection breaks, and a list finds no node. Then the server
/// applies the transaction, after the list that precedes the second try. The answer to that list is late by
/// more than the grace, and the second try finds the nodes of the first one.
#[tokio::test]
async fn a_start_that_is_committed_late_is_fresh_only_from_its_own_request_on() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(10));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    // This admission creates the directory.
    let _ = limiter(&actor, 2).admit().await.unwrap();

    let held = server_fixture
        .server
        .fault(When::op(Op::Multi).path("/rate/starts/*").session(session), Fault::HoldRequest);
    let admitting = tokio::spawn({
        let limiter = limiter(&actor, 2);
        async move {
            let admission = limiter.admit().await.unwrap();
            (admission.is_fresh(), BootInstant::now())
        }
    });
    within("the transaction", held.hit()).await.unwrap();
    let list = server_fixture
        .server
        .fault(When::op(Op::GetChildren2).path(STARTS).session(session), Fault::HoldReply);
    server_fixture.server.drop_connections();
    within("the list before the second try", list.hit()).await.unwrap();
    held.release();
    let applied = server_fixture
        .server
        .wait_until(|machine| children(machine, STARTS).len() == 2 && children(machine, LOCKS).is_empty());
    within("the first transaction", applied).await.unwrap();
    let written = BootInstant::now();
    // The passing of time is the subject: the answer arrives after the grace.
    tokio::time::sleep(GRACE).await;
    list.release();
    let (is_fresh, admitted) = within("an admission", admitting).await.unwrap().unwrap();
    // Either the limiter made another start, or it reports the first one as stale.
    let is_another = server_fixture.server.inspect(|machine| children(machine, STARTS).len()) > 2;
    assert!(!is_fresh || is_another, "a start that counts for {:?} is fresh", admitted.since(written));
}

/// An event makes the contender the head while the link is down. The limiter sends the reads of the admission
/// then, and their answers arrive over the next connection, which carries both the reads and the transaction.
#[tokio::test]
async fn an_admission_whose_reads_are_sent_without_a_link_uses_one_start() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(Duration::from_secs(10));
    let actor = actor.connect().await.unwrap();
    let limiter_of_actor = limiter(&actor, 100);
    // This admission creates the directory.
    let _ = limiter_of_actor.admit().await.unwrap();
    for starts in [1, 3, 5, 7] {
        let session = server_fixture.server.sessions()[0];
        let when = When::op(Op::Multi).path("/rate/starts/*").session(session);
        let first = server_fixture.server.fault(when, Fault::HoldRequest);
        let admitting_first = tokio::spawn({
            let limiter = limiter(&server_fixture.rival, 100);
            async move { limiter.admit().await.unwrap() }
        });
        within("the transaction of the rival", first.hit()).await.unwrap();
        let mut admitting = Box::pin(limiter_of_actor.admit());
        let waits = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
        tokio::select! {
            _ = &mut admitting => panic!("admitted before the rival"),
            waits = within("a watch on the node of the rival", waits) => waits.unwrap(),
        }
        first.release();
        let _ = within("the admission of the rival", admitting_first).await.unwrap().unwrap();
        // The event arrives before this answer.
        actor.znodes().read("/zookeeper").await.unwrap();
        let away = cut_off(&server_fixture, &actor).await;
        assert!(poll!(&mut admitting).is_pending(), "there is no link");
        drop(away);
        let _ = within("an admission", admitting).await.unwrap().unwrap();
        let count = server_fixture.server.inspect(|machine| children(machine, STARTS).len());
        assert_eq!(count, starts + 2, "a start was used up without an admission");
    }
}
