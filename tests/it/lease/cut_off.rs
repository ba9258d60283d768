//! Servers that are cut off from their peers, and continue with their old state.

use std::time::Duration;

use lockkeeper::BootInstant;
use lockkeeper::config::LeaseRenewal;
use lockkeeper_tests::{CreateMode, Direction, RawClient, Timing, eventually};

use super::fixture::{Case, LeaseFixture, confirmed};
use super::slack::{self, Slack};

const TICK: Duration = Duration::from_millis(200);

/// One run, or with `LOCKKEEPER_SOAK=1` so many that they show the distribution of the slack, which is
/// printed.
async fn runs(case: &str, run: impl AsyncFn(Duration) -> Slack) -> Vec<Slack> {
    let soak = std::env::var_os("LOCKKEEPER_SOAK").is_some();
    let mut runs = Vec::new();
    for round in 0..if soak { 10 } else { 1 } {
        runs.push(run(Duration::from_secs(if round % 2 == 0 { 4 } else { 6 })).await);
    }
    slack::print(case, &runs);
    runs
}

async fn always_in_time(case: &str, run: impl AsyncFn(Duration) -> Slack) {
    for slack in runs(case, run).await {
        assert!(slack.clock >= 0, "valid for longer than its session: {slack:?}");
        assert!(!slack.both_valid, "two valid guards at once: {slack:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_at_a_follower_that_is_cut_off_turns_invalid_in_time() {
    let fixture = LeaseFixture::start(TICK).await;
    always_in_time("a follower cut off", async |session| {
        let follower = fixture.follower().await;
        let mut case = fixture.case(follower, session, LeaseRenewal::Quorum).await;
        fixture.between().isolate(follower);
        let next = case.granted().await;
        case.slack(next).await
    })
    .await;
}

#[tokio::test]
async fn a_follower_that_is_cut_off_answers_for_an_expired_session() {
    let fixture = LeaseFixture::start(TICK).await;
    let (leader, follower) = (fixture.leader().await, fixture.follower().await);
    let session = Duration::from_secs(2);
    let mut client =
        RawClient::connect_for(fixture.ensemble.server(follower).address(), session).await.unwrap();
    let mut others = RawClient::connect(fixture.ensemble.server(leader).address()).await.unwrap();
    client.create("/node", b"", CreateMode::Ephemeral).await.unwrap();
    fixture.between().isolate(follower);
    loop {
        assert!(client.exists("/node").await.unwrap().is_some(), "the follower still has the node");
        if others.exists("/node").await.unwrap().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(client.exists("/node").await.unwrap().is_some(), "the follower still has the node");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_at_a_deposed_leader_turns_invalid_in_time() {
    let fixture = LeaseFixture::start(TICK).await;
    always_in_time("a leader deposed", async |session| {
        deposed(&fixture, session, LeaseRenewal::Quorum).await
    })
    .await;
}

/// The weaker confirmation does not prevent this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_by_sync_alone_a_guard_at_a_deposed_leader_is_valid_beside_the_next_guard() {
    let fixture = LeaseFixture::start(TICK).await;
    let case = "a leader deposed, confirmed by sync";
    let slacks = runs(case, async |session| deposed(&fixture, session, LeaseRenewal::Sync).await).await;
    let good = "a sync has become as good as a write: the documents are wrong";
    assert!(slacks.iter().any(|slack| slack.both_valid && slack.clock < 0), "{good}: {slacks:?}");
}

async fn deposed(fixture: &LeaseFixture, session: Duration, confirm: LeaseRenewal) -> Slack {
    let leader = fixture.leader().await;
    let mut case = fixture.case(leader, session, confirm).await;
    fixture.between().depose(leader);
    let next = case.granted().await;
    case.slack(next).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_that_is_lost_with_its_follower_does_not_keep_a_guard_valid() {
    let fixture = LeaseFixture::start(TICK).await;
    always_in_time("a follower killed after a late write", async |session| {
        let follower = fixture.follower().await;
        let mut case = fixture.case(follower, session, LeaseRenewal::Quorum).await;
        // The client abandons a link after a fifth of its session, and a reconnect would touch the session at
        // the leader.
        let stalled = BootInstant::now();
        case.proxies.hold(Direction::Both);
        eventually("the link is silent for long", Timing::event(), async || {
            (BootInstant::now().since(stalled) > session * 17 / 100).then_some(())
        })
        .await
        .unwrap();
        case.proxies.release(Direction::Both);
        // If the machine paused for too long, the client abandons the link, and the follower dies without a
        // late write.
        let late = case.guard.txn().set("/", Vec::new(), -1).commit().await;
        late.inspect_err(|error| eprintln!("no late write: {error}")).ok();
        fixture.ensemble.server(follower).kill().await.unwrap();
        let next = case.granted().await;
        case.slack(next).await
    })
    .await;
}

/// A holder at a server that was no leader, and whose guard is valid after another one has become the leader.
async fn survived(fixture: &LeaseFixture, session: Duration) -> (usize, Case<'_>) {
    for _ in 0..10 {
        let server = fixture.follower().await;
        let case = fixture.case(server, session, LeaseRenewal::Quorum).await;
        let old = fixture.leader().await;
        fixture.ensemble.server(old).kill().await.unwrap();
        fixture.ensemble.server(old).restart().await.unwrap();
        fixture.leader().await;
        confirmed(&case.guard, 1).await;
        if case.guard.is_valid() {
            return (server, case);
        }
        eprintln!("a change of the leader cost the session: once more");
        fixture.heal().await;
    }
    panic!("a change of the leader always costs the session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_survived_a_leader_change_turns_invalid_in_time() {
    let fixture = LeaseFixture::start(TICK).await;
    always_in_time("a server cut off after a leader change", async |session| {
        let (server, mut case) = survived(&fixture, session * 2).await;
        let leader = fixture.leader().await;
        if leader == server {
            fixture.between().depose(server);
        } else {
            fixture.between().isolate(server);
        }
        let next = case.granted().await;
        case.slack(next).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_at_a_follower_that_missed_a_leader_change_turns_invalid_in_time() {
    let fixture = LeaseFixture::start(TICK).await;
    always_in_time("a leader change after a follower was cut off", async |session| {
        let (leader, follower) = (fixture.leader().await, fixture.follower().await);
        let mut case = fixture.case(follower, session, LeaseRenewal::Quorum).await;
        fixture.between().isolate(follower);
        fixture.ensemble.server(leader).kill().await.unwrap();
        fixture.ensemble.server(leader).start().await.unwrap();
        let next = case.granted().await;
        case.slack(next).await
    })
    .await;
}
