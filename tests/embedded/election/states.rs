//! What a participant sees of itself.

use std::ops::ControlFlow;

use futures::FutureExt;
use lockkeeper::Watch;
use lockkeeper::election::CandidateState;
use lockkeeper::error::LossReason;
use lockkeeper::{Election, Leadership};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{candidate, client, election, leading};
use crate::limit::within;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder};

async fn becomes(state: &mut Watch<CandidateState>, expected: CandidateState) {
    let changes = async { while state.changed().await.unwrap() != expected {} };
    within(&format!("{expected:?}"), changes).await.unwrap();
    assert_eq!(state.state(), expected);
}

fn waiting(position: u32) -> CandidateState {
    CandidateState::Waiting { position: Some(position) }
}

fn leads(leadership: &Leadership) -> CandidateState {
    CandidateState::Leading { fencing_token: leadership.fencing_token() }
}

#[tokio::test]
async fn a_participant_sees_its_position_its_leadership_and_its_resignation() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let first = election(&client(&server_fixture).await, "first");
    let second = election(&client(&server_fixture).await, "second");
    let third = election(&server_fixture.rival, "third");
    let mut state = third.state();
    assert_eq!(state.changed().await.unwrap(), CandidateState::Idle);
    let leadership = first.campaign().await.unwrap();
    let second = candidate(&server_fixture, &second, 2).await;
    // A clone is the same participant.
    let campaign = candidate(&server_fixture, &third.clone(), 3).await;
    becomes(&mut state, waiting(2)).await;
    leadership.resign().await.unwrap();
    let leadership = leading(second).await;
    becomes(&mut state, waiting(1)).await;
    assert!(state.changed().now_or_never().is_none());
    leadership.resign().await.unwrap();
    let leadership = leading(campaign).await;
    assert_eq!(state.state(), leads(&leadership));
    becomes(&mut state, leads(&leadership)).await;
    // Another watch begins with the present state.
    assert_eq!(third.state().changed().await.unwrap(), leads(&leadership));
    leadership.resign().await.unwrap();
    becomes(&mut state, CandidateState::Idle).await;
    assert!(third.try_campaign().await.unwrap().is_some());
    assert_eq!(state.state(), CandidateState::Idle, "a dropped leadership");
}

#[tokio::test]
async fn a_lost_leadership_is_shown_before_another_participant_leads() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let actor = actor.connect().await.unwrap();
    let session = server_fixture.sessions_of_actor()[0];
    let here = election(&actor, "here");
    let mut state = here.state();
    let leadership = here.campaign().await.unwrap();
    becomes(&mut state, leads(&leadership)).await;
    let other = tokio::spawn({
        let (other, here) = (election(&server_fixture.rival, "other"), here.clone());
        async move {
            let leadership = other.campaign().await.unwrap();
            (leadership, here.state().state())
        }
    });
    server_fixture.queue_length_becomes(2).await.unwrap();

    // Its server does not answer any more, so its lease runs out before the server ends its session.
    let silence = server_fixture.server.fault(When::request().session(session).always(), Fault::HoldRequest);
    let lost = within("the loss", state.changed()).await.unwrap().unwrap();
    assert!(matches!(lost, CandidateState::Lost { .. }), "{lost:?}");
    assert!(!leadership.is_valid());
    let (next, seen_then) = within("the next leader", other).await.unwrap().unwrap();
    assert_eq!((&state.state(), &seen_then), (&lost, &lost));
    drop((silence, next));

    // The reason lasts until the next campaign, also after its holder has noticed.
    drop(leadership);
    assert_eq!(state.state(), lost);
    let again = within("the next term", here.campaign()).await.unwrap().unwrap();
    becomes(&mut state, leads(&again)).await;
    assert!(server_fixture.server.delete_node(again.path()));
    // After a reconnect nobody can say who deleted it.
    let reasons = [LossReason::NodeDeleted, LossReason::NodeMissing];
    let is_lost = |state| reasons.into_iter().any(|reason| state == CandidateState::Lost { reason });
    let lost = async { while !is_lost(state.changed().await.unwrap()) {} };
    within("the loss", lost).await.unwrap();
}

#[tokio::test]
async fn a_campaign_that_is_given_up_or_fails_is_no_campaign() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let leadership = election(&server_fixture.rival, "leader").campaign().await.unwrap();
    let here = election(&client(&server_fixture).await, "here");
    let mut state = here.state();
    let campaign = candidate(&server_fixture, &here, 2).await;
    becomes(&mut state, waiting(1)).await;
    campaign.abort();
    becomes(&mut state, CandidateState::Idle).await;
    assert!(here.try_campaign().await.unwrap().is_none());
    assert!(here.campaign_timeout(std::time::Duration::from_millis(1)).await.unwrap_err().is_timeout());
    let refused = Fault::Refuse(ErrorCode::NoAuth);
    let refused = server_fixture.server.fault(When::create().path(&format!("{LOCK}/*")).always(), refused);
    assert!(here.campaign().await.is_err() && refused.hits() > 0);
    assert_eq!(state.state(), CandidateState::Idle);
    drop(leadership);
}

#[tokio::test]
async fn a_candidate_without_a_session_has_no_position_and_then_another_one() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let actor = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let leadership = election(&server_fixture.rival, "leader").campaign().await.unwrap();
    let here = election(&actor, "here");
    let mut state = here.state();
    let campaign = candidate(&server_fixture, &here, 2).await;
    becomes(&mut state, waiting(1)).await;
    let behind = candidate(&server_fixture, &election(&client(&server_fixture).await, "behind"), 3).await;
    let created =
        server_fixture.server.fault(When::op(Op::Create2).path(&format!("{LOCK}/*")), Fault::HoldRequest);
    assert!(server_fixture.server.expire(session));
    becomes(&mut state, CandidateState::Waiting { position: None }).await;
    created.release();
    becomes(&mut state, waiting(2)).await;
    leadership.resign().await.unwrap();
    leading(behind).await.resign().await.unwrap();
    becomes(&mut state, leads(&leading(campaign).await)).await;
}

#[tokio::test]
async fn terms_are_shown_and_a_shutdown_ends_the_states() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let here: Election = election(&manager, "here");
    let mut state = here.state();
    let led = here.lead(|leadership| {
        let seen = (here.state().state(), leads(&leadership));
        async move {
            assert_eq!(seen.0, seen.1);
            ControlFlow::Break(())
        }
    });
    led.await.unwrap();
    assert_eq!(state.changed().await.unwrap(), CandidateState::Idle);
    let leadership = here.campaign().await.unwrap();
    becomes(&mut state, leads(&leadership)).await;
    // A shutdown leaves the leader its time.
    let closing = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown_within(std::time::Duration::from_secs(20)).await }
    });
    within("the shutdown", manager.closing()).await.unwrap();
    assert_eq!(state.state(), leads(&leadership));
    leadership.resign().await.unwrap();
    becomes(&mut state, CandidateState::Closed).await;
    assert!(state.changed().await.unwrap_err().cause().is_closed());
    within("the end", closing).await.unwrap().unwrap().unwrap();
    // Nobody can campaign any more.
    let mut state = election(&server_fixture.rival, "dropped").state();
    assert_eq!(state.changed().await.unwrap(), CandidateState::Idle);
    assert!(
        within("the end of the election", state.changed()).await.unwrap().unwrap_err().cause().is_closed()
    );
}

#[tokio::test]
async fn a_create_that_fails_is_repeated_in_the_same_session() {
    for fault in
        [Fault::Refuse(ErrorCode::Other(-127)), Fault::DropConnectionBefore, Fault::DropConnectionAfter]
    {
        let server_fixture = ServerFixture::start().await.unwrap();
        let sessions = server_fixture.server.sessions();
        let here = election(&server_fixture.rival, "here");
        // The path exists, so that the first create is that of a candidate.
        here.campaign().await.unwrap().resign().await.unwrap();
        let failed = server_fixture.server.fault(When::create().path(&format!("{LOCK}/*")), fault);
        let leadership = within("the leadership", here.campaign()).await.unwrap().unwrap();
        assert_eq!(failed.hits(), 1);
        assert!(leadership.is_valid());
        assert_eq!(server_fixture.server.sessions(), sessions, "{fault:?}: another session");
        server_fixture.queue_length_becomes(1).await.unwrap();
    }
}
