//! Our elections with Curator's `LeaderLatch` and `LeaderSelector`, on one path.
//!
//! Curator 5.4 may believe that it leads after its session has expired (CURATOR-696), so nothing here says
//! that Java is the only leader then. Ours is.

use lockkeeper::{Election, Leadership};
use lockkeeper_tests::CuratorElection;
use tokio::task::JoinHandle;

use super::fixture::{Failure, InteropFixture, Outcome, SHORTLY};

const CLASSES: [CuratorElection; 2] = [CuratorElection::Latch, CuratorElection::Selector];

fn election(fixture: &InteropFixture, class: CuratorElection, id: &str) -> Result<Election, Failure> {
    Ok(match class {
        CuratorElection::Latch => Election::new(&fixture.manager, fixture.path.as_str(), id)?,
        CuratorElection::Selector => {
            Election::in_selector_layout(&fixture.manager, fixture.path.as_str(), id)?
        }
    })
}

async fn fixture(name: &str, class: CuratorElection) -> Result<Option<InteropFixture>, Failure> {
    InteropFixture::at(&format!("/interop/election-{name}-{class:?}")).await
}

/// Campaigns in a task, and waits until the queue has `count` candidates.
async fn candidate(
    fixture: &InteropFixture,
    election: &Election,
    count: usize,
) -> Result<JoinHandle<Result<Leadership, lockkeeper::Error>>, Failure> {
    let election = election.clone();
    let campaign = tokio::spawn(async move { election.campaign().await });
    fixture.queue_of(count).await?;
    Ok(campaign)
}

#[tokio::test]
async fn candidates_of_java_and_rust_share_one_queue_and_show_each_others_ids() -> Outcome {
    for class in CLASSES {
        let Some(fixture) = fixture("one-queue", class).await? else {
            return Ok(());
        };
        let path = fixture.path.as_str();
        let (first, third) = (election(&fixture, class, "rust-1")?, election(&fixture, class, "rust-2")?);
        let java = fixture.java.thread("java-1");
        let mut leaders = first.observe().await?;

        let leadership = first.campaign().await?;
        let second = tokio::spawn({
            let (java, path) = (java.clone(), path.to_owned());
            async move { java.campaign(class, &path).await }
        });
        fixture.queue_of(2).await?;
        let last = candidate(&fixture, &third, 3).await?;
        assert_eq!(fixture.java.elected(class, path).await?, ["rust-1*", "java-1", "rust-2"]);
        assert_eq!(first.candidates().await?, ["rust-1", "java-1", "rust-2"]);
        assert_eq!(fixture.java.data(leadership.path()).await?, "rust-1");

        let token = leadership.fencing_token().as_u64();
        leadership.resign().await?;
        let grant = second.await??;
        assert!(grant.czxid > token);
        let seen = loop {
            match leaders.changed().await? {
                Some(leader) if leader.id() == "java-1" => break leader,
                earlier => assert!(earlier.is_none_or(|leader| leader.fencing_token().as_u64() == token)),
            }
        };
        assert_eq!(seen.fencing_token().as_u64(), grant.czxid);
        assert!(!last.is_finished(), "a leader beside Java's");
        assert_eq!(fixture.java.elected(class, path).await?, ["java-1*", "rust-2"]);
        assert_eq!(third.candidates().await?, ["java-1", "rust-2"]);

        java.resign(class, path).await?;
        let leadership = last.await??;
        assert!(leadership.fencing_token().as_u64() > grant.czxid);
        leadership.resign().await?;
    }
    Ok(())
}

#[tokio::test]
async fn while_the_one_language_leads_the_other_does_not() -> Outcome {
    for class in CLASSES {
        let Some(fixture) = fixture("excludes", class).await? else {
            return Ok(());
        };
        let path = fixture.path.as_str();
        let (ours, java) = (election(&fixture, class, "rust")?, fixture.java.thread("java"));

        let leadership = ours.campaign().await?;
        assert_eq!(java.campaign_timeout(class, path, SHORTLY).await?, None);
        assert!(leadership.is_valid());
        fixture.queue_of(1).await?;
        leadership.resign().await?;

        let grant = java.campaign(class, path).await?;
        assert!(ours.try_campaign().await?.is_none());
        assert!(ours.campaign_timeout(SHORTLY).await.unwrap_err().is_timeout());
        let leader = ours.observe().await?.state().ok_or("no leader is seen")?;
        assert_eq!((leader.id(), leader.fencing_token().as_u64()), ("java", grant.czxid));
        java.resign(class, path).await?;
        ours.campaign().await?.resign().await?;
    }
    Ok(())
}

#[tokio::test]
async fn our_candidate_is_elected_when_the_session_of_a_killed_java_leader_ends() -> Outcome {
    for class in CLASSES {
        let Some(fixture) = fixture("killed", class).await? else {
            return Ok(());
        };
        let grant = fixture.java.thread("java").campaign(class, &fixture.path).await?;
        let ours = election(&fixture, class, "rust")?;
        let campaign = candidate(&fixture, &ours, 2).await?;
        fixture.java.kill().await?;
        let leadership = campaign.await??;
        assert!(leadership.is_valid() && leadership.fencing_token().as_u64() > grant.czxid);
        assert_eq!(fixture.queue_of(1).await?, [leadership.path().as_str()]);
    }
    Ok(())
}
