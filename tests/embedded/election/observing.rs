//! What observers see.

use futures::FutureExt;
use lockkeeper::error::LossReason;
use lockkeeper::manager::State;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Election, Error, Revoker};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{candidate, client, election, leading, next, some};
use crate::limit::within;
use crate::server_fixture::{LOCK, SESSION, ServerFixture, builder};

#[tokio::test]
async fn an_observer_sees_every_leader_and_none_between_two_by_one_watch() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let observing = client(&server_fixture).await;
    // A candidate watches its own node after a fortieth of its session, and a leader after a tenth.
    let campaigning = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 60);
    let campaigning = campaigning.connect().await.unwrap();
    let elections = ["a", "b", "c"].map(|id| election(&campaigning, id));
    let mut leaders = election(&observing, "observer").observe().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);

    let mut leadership = elections[0].campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("a"));
    for (election, id) in elections.iter().cycle().skip(1).zip(["b", "c", "a"]) {
        let waiting = candidate(&server_fixture, election, 2).await;
        let earlier = leaders.state().unwrap();
        assert_eq!(earlier.fencing_token(), leadership.fencing_token());
        leadership.resign().await.unwrap();
        leadership = leading(waiting).await;
        // Also for a reader that was late, and finds the next one already.
        let seen = async {
            while leaders.state().is_none_or(|leader| leader.id() != id) {
                tokio::task::yield_now().await;
            }
        };
        within("the next leader", seen).await.unwrap();
        assert_eq!(next(&mut leaders).await, None);
        assert_eq!(next(&mut leaders).await, some(id));
        let leader = leaders.state().unwrap();
        assert_eq!(leader.fencing_token(), leadership.fencing_token());
        assert!(leader.fencing_token() > earlier.fencing_token() && leader.since() >= earlier.since());
    }
    // The candidates are of one process, which sets no watch on its own nodes so soon.
    let one = server_fixture.server.wait_until(|machine| machine.watch_count(0) == 1);
    within("the one watch", one).await.unwrap();

    // A second observer finds the leader at once. Its own watch is on the same node.
    let mut late = election(&observing, "observer").observe().await.unwrap();
    assert_eq!(late.state().map(|leader| leader.id().to_owned()), some("a"));
    assert_eq!(next(&mut late).await, some("a"));
    leadership.resign().await.unwrap();
    for leaders in [&mut leaders, &mut late] {
        assert_eq!(next(leaders).await, None);
    }
    drop((leaders, late));
    let none = server_fixture.server.wait_until(|machine| machine.watch_count(0) == 0);
    within("the end of the observations", none).await.unwrap();
}

#[tokio::test]
async fn an_observer_outlives_its_session_its_connection_and_the_path() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let before = server_fixture.server.sessions();
    let observing = client(&server_fixture).await;
    let session =
        server_fixture.server.sessions().into_iter().find(|session| !before.contains(session)).unwrap();
    let mut leaders = election(&observing, "observer").observe().await.unwrap();
    let here = election(&server_fixture.rival, "here");
    assert_eq!(next(&mut leaders).await, None);

    let leadership = here.campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("here"));
    // The leader changes while the observer has no session.
    let mut transitions = observing.transitions();
    assert!(server_fixture.server.expire(session));
    within("the loss of the session", transitions.next()).await.unwrap();
    leadership.resign().await.unwrap();
    let leadership = here.campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
    assert_eq!(next(&mut leaders).await, some("here"));
    assert_eq!(leaders.state().map(|leader| leader.fencing_token()), Some(leadership.fencing_token()));

    // A reconnect changes nothing.
    let mut transitions = observing.transitions();
    server_fixture.server.drop_connections();
    let reconnected = async {
        while let Some(transition) = transitions.next().await {
            if matches!(transition.state, State::Connected(_)) {
                return;
            }
        }
    };
    within("the next connection", reconnected).await.unwrap();
    let watch = server_fixture.server.wait_until(|machine| machine.watch_count(0) >= 1);
    within("the watch of the next connection", watch).await.unwrap();
    assert!(leaders.changed().now_or_never().is_none());

    // The node is deleted by hand, and its container is reaped.
    assert!(server_fixture.server.delete_node(leadership.path()));
    assert_eq!(next(&mut leaders).await, None);
    let lost = within("the loss", leadership.lost()).await.unwrap();
    // Its own connection may not be there again, so that it hears of it by a read.
    assert!(matches!(lost.reason, LossReason::NodeDeleted | LossReason::NodeMissing), "{lost}");
    server_fixture.server.reap();
    assert!(server_fixture.server.inspect(|machine| machine.tree().node(LOCK).is_none()), "not reaped");
    let again = here.campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("here"));
    assert!(again.fencing_token() > leadership.fencing_token());

    observing.shutdown().await.unwrap();
    assert!(
        within("the end", async {
            loop {
                if let Err(error) = leaders.changed().await {
                    return Error::from(error);
                }
            }
        })
        .await
        .unwrap()
        .is_closed()
    );
    assert_eq!(leaders.state(), None);
}

#[tokio::test]
async fn an_observer_sees_the_first_candidate_of_a_path_whose_parents_did_not_exist() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let observing = client(&server_fixture).await;
    let path = "/far/below/the/root";
    let mut leaders = Election::new(&observing, path, "observer").unwrap().observe().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
    // Each parent is created on its own, and the observer follows down.
    for parent in ["/far", "/far/below"] {
        let created = server_fixture.rival.znodes();
        created.create(parent, b"", CreateMode::Persistent).await.unwrap();
    }
    assert!(leaders.changed().now_or_never().is_none());
    let leadership = Election::new(&server_fixture.rival, path, "x").unwrap().campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("x"));
    leadership.resign().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
}

#[tokio::test]
async fn an_observer_without_the_right_to_read_is_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let leadership = election(&server_fixture.rival, "here").campaign().await.unwrap();
    let observer = election(&client(&server_fixture).await, "observer");
    let mut refusals = Vec::new();
    let node = format!("{LOCK}/*");
    // The server may be asked for a list in either of two ways.
    for (op, path) in [(Op::GetChildren, LOCK), (Op::GetChildren2, LOCK), (Op::GetData, &node)] {
        let when = When::op(op).path(path).always();
        let refused = server_fixture.server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
        match observer.observe().await {
            Err(Error::Refused { .. }) if refused.hits() > 0 => refusals.push(op),
            observed => assert!(observed.is_ok() && refused.hits() == 0, "{op:?}: {observed:?}"),
        }
    }
    assert!(refusals.len() == 2 && refusals.contains(&Op::GetData), "{refusals:?}");
    drop(leadership);
}

#[tokio::test]
async fn a_leader_that_is_asked_to_resign_is_shown_by_its_id() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let observing = client(&server_fixture).await;
    let mut leaders = election(&observing, "observer").observe().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
    let leadership = election(&server_fixture.rival, "here").campaign().await.unwrap();
    assert_eq!(next(&mut leaders).await, some("here"));
    assert!(Revoker::new(&observing).ask_node(leadership.path()).await.unwrap());
    within("the request", leadership.revoke_requested()).await.unwrap().unwrap();
    assert!(leaders.changed().now_or_never().is_none());
    assert_eq!(leaders.state().map(|leader| leader.id().to_owned()), some("here"));
    leadership.resign().await.unwrap();
    assert_eq!(next(&mut leaders).await, None);
}

/// At the end of the sequence the numbers give no order, so the queue is read once more. It may be empty
/// then.
#[tokio::test]
async fn an_observer_is_told_that_nobody_leads_if_a_queue_without_an_order_ends_while_it_is_read() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let observing = client(&server_fixture).await;
    let here = election(&server_fixture.rival, "here");
    here.campaign().await.unwrap().resign().await.unwrap();
    assert!(server_fixture.server.set_sequence(LOCK, i32::MAX));
    let leadership = here.campaign().await.unwrap();
    // The first list shows the candidate, and the second one the order by creation.
    let lists = When::ops([Op::GetChildren, Op::GetChildren2]).path(LOCK).nth(2);
    let second = server_fixture.server.fault(lists, Fault::HoldRequest);
    let observer = election(&observing, "observer");
    let observing = tokio::spawn(async move { observer.observe().await });
    within("the second list", second.hit()).await.unwrap();
    leadership.resign().await.unwrap();
    second.release();
    let leaders = within("the first report", observing).await.unwrap().unwrap().unwrap();
    assert_eq!(leaders.state(), None);
}
