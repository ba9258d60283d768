//! The harness's servers can be cut off from each other.

use std::fs;
use std::time::Duration;

use lockkeeper_tests::{
    Between, CreateMode, Ensemble, HarnessError, LentEnsemble, RawClient, Role, Timing, eventually, left_out,
};

type Outcome = Result<(), HarnessError>;

async fn apart() -> Result<LentEnsemble, HarnessError> {
    Ensemble::builder().servers(3).apart(true).tick(Duration::from_millis(500)).lend().await
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

/// `cut` deposes the leader, which becomes a follower when the cut is mended.
async fn a_leader_is_deposed(cut: impl Fn(&Between, usize)) -> Outcome {
    let ensemble = apart().await?;
    let between = ensemble.between().unwrap();
    let old = ensemble.leader().await?.index();
    cut(between, old);
    let new = another_leads(&ensemble, old).await?;

    eventually("the new leader takes a write", Timing::settle(), async || {
        // It closes connections until its followers are ready.
        let mut client = RawClient::connect(ensemble.server(new).address()).await.ok()?;
        let _created_or_there = client.create("/written", b"", CreateMode::Persistent).await;
        client.exists("/written").await.ok().flatten()
    })
    .await?;
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
async fn a_leader_that_is_cut_off_is_replaced_and_returns_as_a_follower() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_is_deposed(|between, leader| between.isolate(leader)).await
}

/// Electors send each other their addresses, so that the one with the greater number can call back. A relay
/// that let these addresses pass would be bypassed.
#[tokio::test]
async fn a_server_that_is_cut_off_receives_no_votes() -> Outcome {
    if left_out() {
        return Ok(());
    }
    let ensemble = apart().await?;
    let cut_off = ensemble.server(2);
    // The servers with smaller numbers call it.
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
        // The server logs this line when no vote arrives for a while, and waits longer each time.
        (since.matches("Notification time out").count() >= 2).then(|| since.to_owned())
    });
    assert!(!since.await?.contains("FOLLOWING"), "the server follows a leader");
    Ok(())
}

#[tokio::test]
async fn a_leader_whose_messages_are_lost_is_replaced() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_is_deposed(|between, leader| {
        for peer in (0..3).filter(|peer| *peer != leader) {
            between.cut(leader, peer);
        }
    })
    .await
}

#[tokio::test]
async fn a_leader_that_receives_no_messages_is_replaced() -> Outcome {
    if left_out() {
        return Ok(());
    }
    a_leader_is_deposed(|between, leader| {
        for peer in (0..3).filter(|peer| *peer != leader) {
            between.cut(peer, leader);
        }
    })
    .await
}
