//! Updates of an instance: its state, its payload, all of it.

use lockkeeper::discovery::{Instance, InstanceRegistration, InstanceState};
use lockkeeper::error::Refusal;
use lockkeeper::{Discovery, Error};
use lockkeeper_testserver::{ErrorCode, Fault, Op, When};
use serde::{Deserialize, Serialize};

use super::{PATH, client, data};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Zone {
    zone: String,
}

fn zone(zone: &str) -> Zone {
    Zone { zone: zone.to_owned() }
}

fn instance(id: &str, zone_name: &str) -> Instance<Zone> {
    Instance::new("web", "10.0.0.7", 8080)
        .with_id(id)
        .with_payload(zone(zone_name))
        .with_payload_class("x.Zone")
}

async fn register(discovery: &Discovery<Zone>) -> InstanceRegistration<Zone> {
    let registration = discovery.register(instance("a", "north")).unwrap();
    within("the registration", registration.registered()).await.unwrap().unwrap();
    registration
}

fn stored(server_fixture: &ServerFixture) -> Instance<Zone> {
    let data = server_fixture.server.inspect(|machine| data(machine, "a")).unwrap();
    Instance::from_json(data.as_bytes()).unwrap()
}

#[tokio::test]
async fn an_update_changes_its_part_and_keeps_the_rest() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = Discovery::new_typed(&client(&server_fixture).await, PATH).unwrap();
    let registration = register(&discovery).await;
    let state = registration.state();
    registration.set_state(InstanceState::Draining).await.unwrap();
    registration.set_payload(zone("south")).await.unwrap();
    let now = stored(&server_fixture);
    assert_eq!((now.payload(), now.payload_class()), (Some(&zone("south")), Some("x.Zone")));
    assert_eq!(now.state(), InstanceState::Draining);
    registration.set_state(InstanceState::Enabled).await.unwrap();
    let now = stored(&server_fixture);
    assert_eq!((now.payload(), now.is_enabled()), (Some(&zone("south")), true));

    let moved = instance("a", "west").with_ssl_port(8443);
    registration.update(moved.clone()).await.unwrap();
    assert_eq!(stored(&server_fixture), moved);
    for other in [instance("b", "west"), Instance::new("db", "h", 1).with_id("a").with_payload(zone("west"))]
    {
        let refused = registration.update(other).await.unwrap_err();
        assert!(matches!(refused, Error::Config(_)), "{refused}");
    }
    // Each was a write of one node, which nobody deleted.
    assert_eq!(registration.state(), state);
    assert_eq!(stored(&server_fixture), moved);
}

#[tokio::test]
async fn a_refused_update_is_reported_and_not_part_of_later_ones() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let discovery = Discovery::new_typed(&manager, PATH).unwrap();
    let registration = register(&discovery).await;
    let when = When::op(Op::SetData).session(session);
    let _armed = server_fixture.server.fault(when, Fault::Refuse(ErrorCode::NoAuth));
    let refused = registration.set_payload(zone("south")).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { refusal: Refusal::NoAuth, .. }), "{refused}");
    let refused = registration.set_payload(zone(&"x".repeat(2_000_000))).await.unwrap_err();
    assert!(matches!(refused, Error::Config(_)), "{refused}");
    registration.set_state(InstanceState::Draining).await.unwrap();
    let now = stored(&server_fixture);
    assert_eq!((now.payload(), now.state()), (Some(&zone("north")), InstanceState::Draining));
}

#[tokio::test]
async fn an_update_whose_call_is_dropped_is_completed() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let discovery = Discovery::new_typed(&manager, PATH).unwrap();
    let registration = register(&discovery).await;
    for is_lost in [false, true] {
        let zone = zone(if is_lost { "east" } else { "west" });
        let armed = server_fixture.server.fault(When::op(Op::SetData).session(session), Fault::HoldRequest);
        tokio::select! {
            biased;
            () = armed.hit() => {}
            written = registration.set_payload(zone.clone()) => written.unwrap(),
        }
        if is_lost {
            server_fixture.server.drop_connections();
        }
        armed.release();
        // A later update has the payload of the one that was dropped.
        registration.set_state(InstanceState::Draining).await.unwrap();
        let now = stored(&server_fixture);
        assert_eq!((now.payload(), now.state()), (Some(&zone), InstanceState::Draining));
        registration.set_state(InstanceState::Enabled).await.unwrap();
    }
}

#[tokio::test]
async fn enabled_is_in_the_data_where_it_is_asked_for() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = Discovery::new_typed(&client(&server_fixture).await, PATH).unwrap();
    let registration = register(&discovery.with_enabled_field()).await;
    let ends =
        |end: &str| server_fixture.server.inspect(|machine| data(machine, "a").unwrap().ends_with(end));
    assert!(ends(r#","uriSpec":null,"enabled":true}"#));
    registration.set_state(InstanceState::Draining).await.unwrap();
    assert!(ends(r#","uriSpec":null,"enabled":false}"#));
}
