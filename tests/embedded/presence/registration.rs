//! What a registration does without faults.

use futures::FutureExt;
use lockkeeper::error::{PresenceError, Refusal};
use lockkeeper::presence::{OnDeletion, PresenceState};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Error, Registration};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{PATH, client, gone, newest_session, node, register, registered, state_is};
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, builder, children};

#[tokio::test]
async fn a_registration_has_an_ephemeral_node_until_it_is_released_or_dropped() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    for is_dropped in [false, true] {
        let registration = register(&manager, "here");
        let czxid = registered(&registration).await;
        assert_eq!(registration.state(), PresenceState::Registered { czxid });
        assert_eq!(server_fixture.server.inspect(node), Some((session, "here".to_owned())));
        match is_dropped {
            true => drop(registration),
            false => {
                registration.release().await.unwrap();
                assert_eq!(server_fixture.server.inspect(node), None);
            }
        }
        gone(&server_fixture).await;
    }
}

#[tokio::test]
async fn a_registration_is_closed_while_it_is_released_and_nothing_else_is_asked() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let registration = register(&client(&server_fixture).await, "here");
    registered(&registration).await;
    let mut watch = registration.watch();
    let delete = server_fixture.server.fault(When::op(Op::Delete).path(PATH), Fault::HoldReply);
    let looks = server_fixture
        .server
        .fault(When::op(Op::Exists).path(PATH).always(), Fault::DelayReply(std::time::Duration::ZERO));
    let release = tokio::spawn(registration.release());
    within("the delete", delete.hit()).await.unwrap();
    state_is(&mut watch, |state| state == PresenceState::Closed).await;
    assert!(!release.is_finished());
    delete.release();
    within("the release", release).await.unwrap().unwrap().unwrap();
    assert_eq!(looks.hits(), 0, "the manager has had no other session");
}

#[tokio::test]
async fn of_two_processes_with_one_path_the_second_waits_and_overwrites_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (first, second) = (client(&server_fixture).await, client(&server_fixture).await);
    let first_session = server_fixture.sessions_of_actor()[0];
    let one = register(&first, "first");
    let czxid = registered(&one).await;
    let other = register(&second, "second");
    let conflict = PresenceState::Conflict { owner_session: first_session };
    let mut watch = other.watch();
    state_is(&mut watch, |state| state == conflict).await;
    // A reconnect does not change that.
    server_fixture.server.drop_connections();
    server_fixture.round_trip_of_rival().await.unwrap();
    let waited = other.registered_timeout(std::time::Duration::from_millis(50)).await.unwrap_err();
    assert!(waited.is_timeout() && waited.to_string().contains("conflict"), "{waited}");
    assert_eq!(server_fixture.server.inspect(node), Some((first_session, "first".to_owned())));
    assert_eq!(one.state(), PresenceState::Registered { czxid });

    one.release().await.unwrap();
    assert!(registered(&other).await > czxid);
    assert_eq!(server_fixture.server.inspect(node).unwrap().1, "second");
}

#[tokio::test]
async fn of_two_registrations_of_one_manager_the_second_waits_as_well() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let one = register(&manager, "first");
    let czxid = registered(&one).await;
    let other = register(&manager, "second");
    let mut watch = other.watch();
    state_is(&mut watch, |state| state == PresenceState::Conflict { owner_session: session }).await;
    assert_eq!(server_fixture.server.inspect(node).unwrap().1, "first");
    drop(one);
    assert!(registered(&other).await > czxid);
    assert_eq!(server_fixture.server.inspect(node).unwrap().1, "second");
    other.release().await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), None);
}

#[tokio::test]
async fn a_registration_that_is_released_before_its_turn_is_closed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let first = register(&manager, "first");
    let czxid = registered(&first).await;
    let second = register(&manager, "second");
    let mut watch = second.watch();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    within("the release", second.release()).await.unwrap().unwrap();
    state_is(&mut watch, |state| state == PresenceState::Closed).await;
    assert_eq!(registered(&first).await, czxid);
}

#[tokio::test]
async fn a_node_that_belongs_to_no_session_is_a_conflict() {
    let server_fixture = ServerFixture::start().await.unwrap();
    server_fixture.rival.znodes().create(PATH, "by hand", CreateMode::Persistent).await.unwrap();
    let registration = register(&client(&server_fixture).await, "here");
    let mut watch = registration.watch();
    state_is(&mut watch, |state| state == PresenceState::Conflict { owner_session: 0 }).await;
    assert!(server_fixture.rival.znodes().delete(PATH).await.unwrap());
    registered(&registration).await;
}

#[tokio::test]
async fn a_node_that_another_client_deletes_is_made_again_or_ends_the_registration() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let registration = register(&manager, "here");
    let czxid = registered(&registration).await;
    let mut watch = registration.watch();
    assert!(server_fixture.server.delete_node(PATH));
    state_is(&mut watch, |state| matches!(state, PresenceState::Registered { czxid: now } if now > czxid))
        .await;
    registration.release().await.unwrap();

    let drained = Registration::register_with(&manager, PATH, "here", OnDeletion::End).unwrap();
    registered(&drained).await;
    let mut watch = drained.watch();
    assert!(server_fixture.server.delete_node(PATH));
    state_is(&mut watch, |state| state == PresenceState::Deleted).await;
    for error in [drained.registered().await.unwrap_err(), drained.set_data("x").await.unwrap_err()] {
        assert!(matches!(error.recipe(), Some(PresenceError::Deleted { .. })), "{error}");
    }
    server_fixture.round_trip_of_rival().await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), None);
    drained.release().await.unwrap();
    // The path is free for another registration.
    registered(&register(&manager, "again")).await;
}

/// The paths are so long that a session has no room to watch all of them.
#[tokio::test]
async fn a_node_without_room_for_a_watch_is_made_again_as_well() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let folder = format!("/services/{}", "long".repeat(250));
    let paths: Vec<String> = (0..130).map(|number| format!("{folder}/{number}")).collect();
    let registrations: Vec<Registration> =
        paths.iter().map(|path| Registration::register(&manager, path, "here").unwrap()).collect();
    for registration in &registrations {
        registered(registration).await;
    }
    for path in &paths {
        assert!(server_fixture.server.delete_node(path));
    }
    let all = server_fixture.server.wait_until(|machine| children(machine, &folder).len() == paths.len());
    within("all nodes", all).await.unwrap();
}

/// The answer to the first write is late, and the event of the deletion arrives before it. The other process
/// has written its node as often as this one.
#[tokio::test]
async fn a_write_does_not_reach_the_node_that_another_process_has_made_meanwhile() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let (server, session) = (&server_fixture.server, newest_session(&server_fixture));
    let watching = When::op(Op::GetData).path(PATH).session(session);
    let watching = server.fault(watching, Fault::DelayReply(std::time::Duration::ZERO));
    let registration = register(&manager, "here");
    let mut watch = registration.watch();
    within("the watch", watching.hit()).await.unwrap();
    let write = server.fault(When::op(Op::SetData).path(PATH).session(session), Fault::HoldReply);
    let (mut first, mut second) =
        (Box::pin(registration.set_data("first")), Box::pin(registration.set_data("second")));
    assert!(futures::poll!(&mut first).is_pending());
    within("the write", write.hit()).await.unwrap();
    assert!(server.delete_node(PATH) && futures::poll!(&mut second).is_pending());
    let theirs = server_fixture.rival.znodes();
    theirs.create(PATH, "theirs", CreateMode::Ephemeral).await.unwrap();
    theirs.write(PATH, "theirs", -1).await.unwrap();
    write.release();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    assert!(server.inspect(node).is_some_and(|(_, data)| data == "theirs"));
}

#[tokio::test]
async fn data_is_replaced_and_a_refusal_is_reported() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let registration = register(&manager, "one");
    let czxid = registered(&registration).await;
    registration.set_data("two").await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), Some((session, "two".to_owned())));
    // What another client wrote is replaced.
    server_fixture.rival.znodes().write(PATH, "theirs", -1).await.unwrap();
    let replaced = server_fixture.server.wait_until(|machine| node(machine).unwrap().1 == "two");
    within("the data", replaced).await.unwrap();
    registration.set_data("three").await.unwrap();
    assert_eq!(server_fixture.server.inspect(node), Some((session, "three".to_owned())));
    let when = When::op(Op::SetData).session(session);
    let _armed = server_fixture.server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
    let refused = registration.set_data("four").await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::NoAuth, .. }), "{refused}");
    assert_eq!(server_fixture.server.inspect(node), Some((session, "three".to_owned())));
    assert_eq!(registration.state(), PresenceState::Registered { czxid });
    assert!(matches!(registration.set_data(vec![0; 2_000_000]).await, Err(Error::Config(_))));
    // A later session, too, has what was accepted last.
    assert!(server_fixture.server.expire(session));
    let is_back = |found: (i64, String)| found.0 != session && found.1 == "three";
    let back = server_fixture.server.wait_until(|machine| node(machine).is_some_and(is_back));
    within("the node of the next session", back).await.unwrap();
}

#[tokio::test]
async fn refused_data_is_never_written_in_a_later_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let server = &server_fixture.server;
    let created = server.fault(When::op(Op::Create2).path(PATH).nth(2), Fault::HoldReply);
    let registration = register(&manager, "one");
    within("the create", created.hit()).await.unwrap();
    let refused =
        server.fault(When::op(Op::SetData).session(session).always(), Fault::Refuse(ErrorCode::NoAuth));
    let mut call = std::pin::pin!(registration.set_data("two"));
    assert!(call.as_mut().now_or_never().is_none());
    // The node was created, and its client does not know.
    server.drop_connections();
    let error = within("the call", call).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    refused.disarm();
    assert!(server.expire(session));
    let is_back = |found: (i64, String)| found.0 != session && found.1 == "one";
    let back = server.wait_until(|machine| node(machine).is_some_and(is_back));
    within("the node of the next session", back).await.unwrap();
}

#[tokio::test]
async fn each_of_two_calls_that_wait_has_the_result_of_its_own_write() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let server = &server_fixture.server;
    let registration = register(&manager, "here");
    registered(&registration).await;
    let of_session = || When::op(Op::SetData).session(session);
    let applied = server.fault(of_session(), Fault::HoldReply);
    let second = async {
        within("the first write", applied.hit()).await.unwrap();
        let _refused = server.fault(of_session().always(), Fault::Refuse(ErrorCode::NoAuth));
        let mut call = std::pin::pin!(registration.set_data("second"));
        assert!(call.as_mut().now_or_never().is_none());
        server.drop_connections();
        within("the second call", call).await.unwrap()
    };
    let (first, second) = tokio::join!(registration.set_data("first"), second);
    first.unwrap();
    let error = second.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    assert!(server.expire(session));
    let is_back = |found: (i64, String)| found.0 != session && found.1 == "first";
    let back = server.wait_until(|machine| node(machine).is_some_and(is_back));
    within("the node of the next session", back).await.unwrap();
}

#[tokio::test]
async fn a_call_is_applied_although_a_later_one_is_refused() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let registration = register(&client(&server_fixture).await, "here");
    registered(&registration).await;
    let refused =
        server_fixture.server.fault(When::op(Op::SetData).path(PATH), Fault::Refuse(ErrorCode::NoAuth));
    // Nothing else runs in this thread: the data of the second call is written first.
    let both = async { tokio::join!(registration.set_data("first"), registration.set_data("second")) };
    let (first, second) = within("the calls", both).await.unwrap();
    assert!(first.is_ok() && refused.hits() == 1, "{first:?}");
    assert!(matches!(second.unwrap_err(), Error::Refused { refusal: Refusal::NoAuth, .. }));
    assert!(server_fixture.server.inspect(node).is_some_and(|(_, data)| data == "first"));
}

#[tokio::test]
async fn a_refused_node_is_reported_and_tried_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let when = When::op(Op::Create2).session(session).path(PATH).always();
    let refused = server_fixture.server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
    let registration = register(&manager, "here");
    let error = within("the refusal", registration.registered()).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::NoAuth, .. }), "{error}");
    assert_eq!(registration.state(), PresenceState::Refused(Refusal::NoAuth));
    refused.disarm();
    let mut watch = registration.watch();
    // Another connection is a reason to try again.
    server_fixture.server.drop_connections();
    state_is(&mut watch, PresenceState::is_registered).await;
}

#[tokio::test]
async fn a_refused_node_is_tried_again_without_any_event() {
    let server_fixture = ServerFixture::start().await.unwrap();
    // The next try is a session timeout later.
    let manager = builder(&server_fixture.server.connect_string()).session_timeout(SESSION * 3);
    let manager = manager.connect().await.unwrap();
    let refused = When::op(Op::Create2).session(newest_session(&server_fixture)).path(PATH);
    let refused = server_fixture.server.fault(refused, Fault::Refuse(ErrorCode::NoAuth));
    let registration = register(&manager, "here");
    within("the refusal", refused.hit()).await.unwrap();
    state_is(&mut registration.watch(), PresenceState::is_registered).await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    for (path, data) in [("", vec![]), ("relative", vec![]), ("/", vec![]), (PATH, vec![0; 2_000_000])] {
        let refused = Registration::register(&manager, path, data).unwrap_err();
        assert!(matches!(refused, Error::Config(_)), "{path:?}: {refused}");
    }
    manager.shutdown().await.unwrap();
    assert!(Registration::register(&manager, PATH, "").unwrap_err().is_closed());
}
