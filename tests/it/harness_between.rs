//! The harness's servers can be cut off from each other.

use std::fs;
use std::time::Duration;

use lockkeeper_tests::{
    Between, CreateMode, Ensemble, HarnessError, RawClient, Role, Timing, eventually, left_out,
};

type Outcome = Result<(), HarnessError>;

async fn apart() -> Result<Ensemble, HarnessError> {
    Ensemble::builder().servers(3).apart(true).tick(Duration::from_millis(200)).start().await
}

/// Waits until a server other than `deposed` leads; yields its index.
async fn another_leads(ensemble: &Ensemble, deposed: usize) -> Result<usize, HarnessError> {
    eventually("another server leads", Timing::settle(), async || {
        for server in ensemble.servers().iter().filter(|server| server.index() != deposed) {
            if matches!(server.role().await, Ok(Role::Leader)) {
                return Some(server.index());
            }
        }
        None
    })
    .await
}

/// A leader is deposed by `cut`, and follows when that is mended.
async fn a_leader_gives_way(cut: impl Fn(&Between, usize)) -> Outcome {
    let ensemble = apart().await?;
    let between = ensemble.between().unwrap();
    let old = ensemble.leader().await?.index();
    cut(between, old);
    let new = another_leads(&ensemble, old).await?;

    let mut client = RawClient::connect(ensemble.server(new).address()).await?;
    client.create("/written", b"", CreateMode::Persistent).await?;
    eventually("the old leader knows that it has no quorum", Timing::settle(), async || {
        matches!(ensemble.server(old).role().await, Err(HarnessError::NotServing { .. })).then_some(())
    })
    .await?;
    between.mend_all();
    ensemble.settled().await?;
    assert_eq!(ensemble.leader().await?.index(), new);
    let mut client = RawClient::connect(ensemble.server(old).address()).await?;
    client.sync("/").await?;
    assert!(client.exists("/written").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_leader_that_is_cut_off_is_replaced_and_follows_when_it_is_back() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_gives_way(|between, leader| between.isolate(leader)).await
}

/// Electors tell each other where they listen, so that the one with the greater number can call back: past the relays, if
/// these let it be told.
#[tokio::test]
async fn who_is_cut_off_hears_no_votes() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = apart().await?;
    let cut_off = ensemble.server(2);
    // Those with smaller numbers call it.
    for peer in [0, 1] {
        ensemble.server(peer).restart().await?;
        ensemble.settled().await?;
    }
    let before = fs::read_to_string(cut_off.log_file()).unwrap().len();
    ensemble.between().unwrap().isolate(2);
    another_leads(&ensemble, 2).await?;
    let since = eventually("an election without a vote", Timing::settle(), async || {
        let log = fs::read_to_string(cut_off.log_file()).unwrap();
        let since = log.get(before..).unwrap_or_default();
        // Said when no vote came for a while; then it waits for longer.
        (since.matches("Notification time out").count() >= 2).then(|| since.to_owned())
    });
    assert!(!since.await?.contains("FOLLOWING"), "it knows of a leader");
    Ok(())
}

#[tokio::test]
async fn a_leader_whom_nobody_hears_is_replaced() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_gives_way(|between, leader| {
        for peer in (0..3).filter(|peer| *peer != leader) {
            between.cut(leader, peer);
        }
    })
    .await
}

#[tokio::test]
async fn a_leader_who_hears_nobody_is_replaced() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_gives_way(|between, leader| {
        for peer in (0..3).filter(|peer| *peer != leader) {
            between.cut(peer, leader);
        }
    })
    .await
}
