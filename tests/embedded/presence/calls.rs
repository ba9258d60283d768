//! What the result of a call says, and what the node has afterwards.

use std::time::Duration;

use lockkeeper::error::Outcome;
use lockkeeper::manager::State;
use lockkeeper::presence::PresenceState;
use lockkeeper::{ConnectionManager, Error};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};

use super::{PATH, SESSION, client, gone, newest_session, node, register, registered, state_is};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

/// A client whose calls end soon, with a session that does not.
async fn hasty_client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.operation_timeout(Duration::from_millis(50)).connect().await.unwrap()
}

#[tokio::test]
async fn the_result_of_a_write_of_data_is_true_also_while_the_server_refuses_the_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = hasty_client(&server_fixture).await;
    let when = When::op(Op::Create2).path(PATH).always();
    let refused = server_fixture.server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
    let registration = register(&manager, "one");
    within("the refusal", registration.registered()).await.unwrap().unwrap_err();
    let expected = match registration.set_data("two").await {
        Err(Error::Refused { .. }) => "one",
        Ok(()) => "two",
        Err(error) if error.outcome_unknown() => "two",
        Err(error) => panic!("{error}"),
    };
    // Other data is tried at once.
    within("another try", refused.hit_times(2)).await.unwrap();
    refused.disarm();
    server_fixture.server.drop_connections();
    let mut watch = registration.watch();
    state_is(&mut watch, PresenceState::is_registered).await;
    let (_, data) = server_fixture.server.inspect(node).unwrap();
    assert_eq!(data, expected);
}

#[tokio::test]
async fn a_call_that_ends_without_an_answer_says_that_it_may_be_applied() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = hasty_client(&server_fixture).await;
    let registration = register(&manager, "one");
    registered(&registration).await;
    let is_unknown = |error: &Error| error.outcome() == Outcome::Unknown && !error.is_transient();

    server_fixture.server.freeze();
    let error = registration.set_data("two").await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
    server_fixture.server.thaw();
    let is_written = |machine: &_| node(machine).is_some_and(|(_, data)| data == "two");
    within("the data", server_fixture.server.wait_until(is_written)).await.unwrap();

    server_fixture.server.freeze();
    let error = registration.release().await.unwrap_err();
    assert!(is_unknown(&error), "{error}");
    server_fixture.server.thaw();
    gone(&server_fixture).await;
}

#[tokio::test]
async fn a_registration_without_a_node_is_released_without_a_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = newest_session(&server_fixture);
    let first = register(&manager, "first");
    registered(&first).await;
    let second = register(&manager, "second");
    let mut watch = second.watch();
    state_is(&mut watch, |state| matches!(state, PresenceState::Conflict { .. })).await;
    // A client that has no session asks for number 0.
    let connect = server_fixture.server.fault(When::connect().session(0), Fault::HoldRequest);
    assert!(server_fixture.server.expire(session));
    within("the next session", connect.hit()).await.unwrap();
    assert!(matches!(manager.state(), State::Connecting | State::Lost(..)), "{}", manager.state());
    within("the release", second.release()).await.unwrap().unwrap();
    connect.release();
    registered(&first).await;
}
