//! Candidates, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::error::{ConfigError, LossReason};
use lockkeeper::{Election, Error, Inspection, MultiLock};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{candidate, client, election, leading, next, some};
use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, queue_nodes};

#[tokio::test]
async fn the_data_of_a_candidate_is_its_id_and_candidates_are_shown_in_order() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = election(&server_fixture.rival, "größe 1");
    let there = election(&client(&server_fixture).await, "two");
    assert!(here.candidates().await.unwrap().is_empty());
    let leadership = here.campaign().await.unwrap();
    let waiting = candidate(&server_fixture, &there, 2).await;
    assert!(here.is_led_here() && !there.is_led_here());

    assert_eq!(there.candidates().await.unwrap(), ["größe 1", "two"]);
    let data = server_fixture
        .server
        .inspect(|machine| machine.tree().node(leadership.path()).and_then(|node| node.data.clone()));
    assert_eq!(data.as_deref(), Some("größe 1".as_bytes()));
    let seen: Inspection = there.inspect().await.unwrap();
    let holder = seen.holders().next().unwrap();
    assert_eq!(holder.fencing_token(), Some(leadership.fencing_token()));
    assert_eq!(holder.identity().note(), Some("größe 1"));
    assert!(seen.to_string().starts_with("election /locks/lock: held by 1, 1 waiting"), "{seen}");

    assert!(there.try_campaign().await.unwrap().is_none());
    assert!(there.campaign_timeout(Duration::ZERO).await.unwrap_err().is_timeout());
    let token = leadership.fencing_token();
    leadership.resign().await.unwrap();
    assert!(leading(waiting).await.fencing_token() > token);
}

#[tokio::test]
async fn an_election_refuses_its_path_to_the_other_layout_and_to_a_mutex_without_its_label() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = &server_fixture.rival;
    let selector = Election::in_selector_layout(manager, LOCK, "selector").unwrap();
    let latch = election(manager, "latch");

    let leadership = latch.campaign().await.unwrap();
    for refused in [
        selector.campaign().await.unwrap_err(),
        lockkeeper::Mutex::new(manager, LOCK).unwrap().acquire().await.unwrap_err(),
    ] {
        assert!(matches!(refused, Error::ConflictingKind { .. }), "{refused}");
    }
    leadership.resign().await.unwrap();
    let leadership = selector.campaign().await.unwrap();
    let refused = latch.campaign().await.unwrap_err();
    assert!(matches!(refused, Error::ConflictingKind { .. }), "{refused}");
    assert!(lockkeeper::Mutex::new(manager, LOCK).unwrap().try_acquire().await.unwrap().is_none());
    assert_eq!(selector.candidates().await.unwrap(), ["selector"]);
    leadership.resign().await.unwrap();

    let several = MultiLock::builder().lock(&latch).build();
    assert!(matches!(several, Err(Error::Config(ConfigError::Setting { .. }))), "{several:?}");
}

#[tokio::test]
async fn a_thousand_candidates_lead_in_the_order_of_their_campaigns_and_observers_see_them_in_order() {
    const EACH: usize = 250;
    let server_fixture = ServerFixture::start().await.unwrap();
    let observing = client(&server_fixture).await;
    let mut leaders = election(&observing, "observer").observe().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
    let first = election(&server_fixture.rival, "first").campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("first"));
    let observer = tokio::spawn(async move {
        let mut seen = vec![leaders.state().map(|leader| leader.fencing_token())];
        while let Ok(leader) = leaders.changed().await {
            seen.push(leader.map(|leader| leader.fencing_token()));
        }
        seen.into_iter().flatten().collect::<Vec<_>>()
    });
    let terms = Arc::new(Mutex::new(Vec::new()));
    let mut campaigns = JoinSet::new();
    for part in 0..4 {
        let manager = client(&server_fixture).await;
        for number in 0..EACH {
            let (election, terms) = (election(&manager, &format!("{part}-{number}")), Arc::clone(&terms));
            campaigns.spawn(async move {
                let leadership = election.campaign().await.unwrap();
                terms.lock().push(leadership.fencing_token());
                leadership.resign().await.unwrap();
            });
        }
        server_fixture.queue_length_becomes((part + 1) * EACH + 1).await.unwrap();
    }
    first.resign().await.unwrap();
    within("all terms", campaigns.join_all()).await.unwrap();
    let terms = terms.lock().clone();
    assert!(terms.len() == 4 * EACH && terms.is_sorted_by(|earlier, later| earlier < later));
    observing.shutdown().await.unwrap();
    let seen = within("the end of the observation", observer).await.unwrap().unwrap();
    assert!(seen.is_sorted_by(|earlier, later| earlier < later), "{seen:?}");
}

#[tokio::test]
async fn candidates_take_up_their_election_again_after_its_nodes_were_deleted() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = election(&server_fixture.rival, "here");
    let there = election(&client(&server_fixture).await, "there");
    let leadership = here.campaign().await.unwrap();
    let waiting = candidate(&server_fixture, &there, 2).await;
    let nodes = server_fixture.server.inspect(queue_nodes);
    let waiter = nodes.into_iter().find(|node| *node != *leadership.path()).unwrap();
    // It notices the loss of its own node by a watch, which a short wait does not have.
    let watches = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 2);
    within("its watches", watches).await.unwrap();
    assert!(server_fixture.server.delete_node(&waiter));
    let is_anew = server_fixture.server.wait_until(move |machine| {
        let nodes = queue_nodes(machine);
        nodes.len() == 2 && !nodes.contains(&waiter)
    });
    within("a new node", is_anew).await.unwrap();
    assert!(server_fixture.server.delete_node(leadership.path()));
    let lost = within("the loss", leadership.lost()).await.unwrap();
    assert_eq!(lost.reason, LossReason::NodeDeleted);
    let next = leading(waiting).await;
    assert!(next.is_valid() && next.fencing_token() > leadership.fencing_token());
    let again = candidate(&server_fixture, &here, 2).await;
    next.resign().await.unwrap();
    leading(again).await.resign().await.unwrap();
}
