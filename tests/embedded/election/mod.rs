//! Elections: candidates, what observers see, and terms of leadership one after the other.

mod candidates;
mod observing;
mod states;
mod terms;

use std::time::Duration;

use lockkeeper::Watch;
use lockkeeper::election::Leader;
use lockkeeper::{ConnectionManager, Election, Leadership};
use tokio::task::JoinHandle;

use crate::limit::within;
use crate::server_fixture::{LOCK, ServerFixture, builder};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

pub(super) async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

pub(super) fn election(manager: &ConnectionManager, id: &str) -> Election {
    Election::new(manager, LOCK, id).unwrap()
}

/// Campaigns in a task, and waits until the queue has `count` candidates.
pub(super) async fn candidate(
    server_fixture: &ServerFixture,
    election: &Election,
    count: usize,
) -> JoinHandle<Leadership> {
    let election = election.clone();
    let campaign = tokio::spawn(async move { election.campaign().await.unwrap() });
    server_fixture.queue_length_becomes(count).await.unwrap();
    campaign
}

pub(super) async fn leading(campaign: JoinHandle<Leadership>) -> Leadership {
    within("the leadership", campaign).await.unwrap().unwrap()
}

/// The id of the next leader, or that there is none.
pub(super) async fn next(leaders: &mut Watch<Option<Leader>>) -> Option<String> {
    let leader = within("a change of the leader", leaders.changed()).await.unwrap().unwrap();
    leader.map(|leader| leader.id().to_owned())
}

pub(super) fn some(id: &str) -> Option<String> {
    Some(id.to_owned())
}
