//! Faults between a rate limiter's write, whose answer is lost, and the read that looks for it.

use std::time::Duration;

use lockkeeper::znodes::CreateMode;
use lockkeeper::{BootInstant, ConnectionManager, RateLimiter};
use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Op, When};

use super::cut_off;
use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

const PATH: &str = "/rate";
/// No start leaves the window before its test has ended, however slow the machine is.
const WINDOW: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_millis(100);

fn limiter(manager: &ConnectionManager, starts: u32) -> RateLimiter {
    RateLimiter::new(manager, PATH, starts, WINDOW).unwrap().with_grace(GRACE)
}

/// The starts in the data of the limiter.
fn starts(machine: &Machine) -> u64 {
    let data = machine.tree().node(PATH).and_then(|node| node.data.clone());
    let text = String::from_utf8_lossy(data.as_deref().unwrap_or_default()).into_owned();
    let lines = text.lines().skip(1);
    lines.filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// The write is held on its way, its connection breaks, and the server applies it then. The answer to the
/// read that finds it is late by more than the grace.
#[tokio::test]
async fn a_start_that_is_committed_late_is_fresh_only_from_its_own_request_on() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = builder(&server.connect_string()).session_timeout(Duration::from_secs(60));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    // This admission creates the directory.
    let _ = limiter(&actor, 3).admit().await.unwrap();

    let held = server.fault(When::op(Op::Multi).path(PATH).session(session), Fault::HoldRequest);
    let admitting = tokio::spawn({
        let limiter = limiter(&actor, 3);
        async move {
            let admission = limiter.admit().await.unwrap();
            (admission.is_fresh(), BootInstant::now())
        }
    });
    within("the write", held.hit()).await.unwrap();
    let away = cut_off(&server_fixture, &actor).await;
    held.release();
    within("the first write", server.wait_until(|machine| starts(machine) == 2)).await.unwrap();
    let written = BootInstant::now();
    let read = When::op(Op::GetData).path(PATH).session(session);
    let read = server.fault(read, Fault::DelayReply(GRACE));
    drop(away);
    within("the read that finds it", read.hit()).await.unwrap();
    let (is_fresh, admitted) = within("an admission", admitting).await.unwrap().unwrap();
    // Either the limiter recorded another start, or it reports the first one as stale.
    let is_another = server.inspect(starts) > 2;
    assert!(!is_fresh || is_another, "a start that counts for {:?} is fresh", admitted.since(written));
}

/// A write that was given up is applied after another process has written: it names a version that the node
/// does not have any more, and the node of its contender is gone.
#[tokio::test]
async fn a_write_that_is_applied_after_its_call_replaces_no_later_window() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = builder(&server.connect_string()).session_timeout(Duration::from_secs(10));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let _ = limiter(&actor, 3).admit().await.unwrap();
    let held = server.fault(When::op(Op::Multi).path(PATH).session(session), Fault::HoldRequest);
    let admitting = tokio::spawn({
        let limiter = limiter(&actor, 3);
        async move { limiter.admit().await.map(drop) }
    });
    within("the write", held.hit()).await.unwrap();
    admitting.abort();
    let rival = limiter(&server_fixture.rival, 3);
    let _ = within("an admission of the rival", rival.admit()).await.unwrap().unwrap();
    let before = server.inspect(|machine| machine.tree().node(PATH).unwrap().data.clone());
    held.release();
    // Behind the request that was held.
    actor.znodes().read("/zookeeper").await.unwrap();
    assert_eq!(server.inspect(|machine| machine.tree().node(PATH).unwrap().data.clone()), before);
}

/// The first look after the reconnect comes before the write is applied, and the second one behind it: the
/// write that was sent meanwhile is refused.
#[tokio::test]
async fn a_start_that_is_applied_behind_the_first_look_is_not_used_up() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = builder(&server.connect_string()).session_timeout(Duration::from_secs(10));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let limiter = RateLimiter::new(&actor, PATH, 2, WINDOW).unwrap();
    let _ = limiter.admit().await.unwrap();
    let first = server.fault(When::op(Op::Multi).path(PATH).session(session), Fault::HoldRequest);
    let second = server.fault(When::op(Op::Multi).path(PATH).session(session).nth(2), Fault::HoldRequest);
    let admitting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.admit().await.map(drop) }
    });
    within("the first write", first.hit()).await.unwrap();
    drop(cut_off(&server_fixture, &actor).await);
    within("the second write", second.hit()).await.unwrap();
    first.release();
    within("the first write", server.wait_until(|machine| starts(machine) == 2)).await.unwrap();
    second.release();
    within("the admission", admitting).await.unwrap().unwrap().unwrap();
    assert_eq!(server.inspect(starts), 2);
}

/// The write of the first call is held, and the connection breaks. The next write of the same hold admits
/// that call and more, and another one waits, so the hold lives on.
#[tokio::test]
async fn a_write_that_is_applied_behind_a_later_one_of_its_hold_replaces_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let server = &server_fixture.server;
    let actor = builder(&server.connect_string()).session_timeout(Duration::from_secs(60));
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    // So the first starts are written as well.
    actor.znodes().create(PATH, "no starts\n", CreateMode::Persistent).await.unwrap();
    let limiter = RateLimiter::new(&actor, PATH, 3, WINDOW).unwrap();
    let admit = |starts| {
        let limiter = limiter.clone();
        tokio::spawn(async move { limiter.admit_many(starts).await.map(drop) })
    };
    let held = server.fault(When::op(Op::Multi).path(PATH).session(session), Fault::HoldRequest);
    let first = admit(1);
    within("the write", held.hit()).await.unwrap();
    let (second, waiting) = (admit(2), admit(1));
    let away = cut_off(&server_fixture, &actor).await;
    drop(away);
    for admitted in [first, second] {
        within("an admission", admitted).await.unwrap().unwrap().unwrap();
    }
    held.release();
    // Behind the request that was held.
    actor.znodes().read("/zookeeper").await.unwrap();
    assert_eq!(server.inspect(starts), 3);
    waiting.abort();
    let tried = within("an answer", limiter.try_admit()).await.unwrap().unwrap();
    assert!(tried.retry_after().is_some(), "four starts of three");
}
