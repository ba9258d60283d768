//! Instances that come and go, and what a view shows of them.

use std::time::Duration;

use lockkeeper::discovery::{Instance, InstanceState, ServiceType, Strategy};
use lockkeeper::presence::{OnDeletion, PresenceState};
use lockkeeper::znodes::CreateMode;
use lockkeeper::{Discovery, Error};
use lockkeeper_testserver::{Fault, Op, When};

use super::{PATH, client, data, discovery, ids, instance, next, register, synced};
use crate::limit::within;
use crate::server_fixture::ServerFixture;

const DATA: &str = concat!(
    r#"{"name":"web","id":"a","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"#,
    r#""registrationTimeUTC":5,"serviceType":"DYNAMIC","uriSpec":null}"#,
);

#[tokio::test]
async fn a_view_tells_which_instance_came_changed_and_went() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let view = discovery.service("web").unwrap();
    within("the view", view.ready()).await.unwrap().unwrap();
    assert!(view.instances().is_empty());
    let mut changes = view.changes();
    let registration = register(&discovery, "a").await;
    assert_eq!(next(&mut changes).await, ("came", "a".to_owned()));
    assert_eq!(server_fixture.server.inspect(|machine| data(machine, "a")).unwrap(), DATA);

    registration.set_state(InstanceState::Draining).await.unwrap();
    assert_eq!(next(&mut changes).await, ("changed", "a".to_owned()));
    assert!(!view.instances()[0].is_enabled());
    let _other = register(&discovery, "b").await;
    assert_eq!(next(&mut changes).await, ("came", "b".to_owned()));
    assert_eq!(synced(&view).await, ["a", "b"]);
    registration.release().await.unwrap();
    assert_eq!(next(&mut changes).await, ("went", "a".to_owned()));
    assert_eq!(discovery.services().await.unwrap(), ["web"]);
}

#[tokio::test]
async fn a_reconnect_writes_nothing_and_shows_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let registered = discovery(&client(&server_fixture).await);
    let session = server_fixture.sessions_of_actor()[0];
    let registration = register(&registered, "a").await;
    let state = registration.state();
    let view = discovery(&server_fixture.rival).service("web").unwrap();
    assert_eq!(synced(&view).await, ["a"]);
    let mut changes = view.changes();
    // The confirmations of the lease are transactions that write nothing.
    let when = When::ops([Op::Create, Op::Create2, Op::SetData, Op::Delete]).session(session).always();
    let writes = server_fixture.server.fault(when, Fault::DropConnectionBefore);
    let when = When::op(Op::GetData).path(&format!("{PATH}/web/a")).session(session).always();
    let reads = server_fixture.server.fault(when, Fault::DelayReply(Duration::ZERO));
    for round in 1..=3 {
        server_fixture.server.drop_connections();
        within("the read after a reconnect", reads.hit_times(round)).await.unwrap();
        assert_eq!(synced(&view).await, ["a"]);
    }
    assert_eq!((writes.hits(), registration.state()), (0, state));
    writes.disarm();
    let other = register(&registered, "b").await;
    // The first change that a client sees is this one.
    assert_eq!(next(&mut changes).await, ("came", "b".to_owned()));
    other.release().await.unwrap();
}

#[tokio::test]
async fn an_instance_is_back_after_the_end_of_its_session() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let session = server_fixture.sessions_of_actor()[0];
    let registration = register(&discovery(&manager), "a").await;
    registration.set_state(InstanceState::Draining).await.unwrap();
    let view = discovery(&server_fixture.rival).service("web").unwrap();
    assert_eq!(synced(&view).await, ["a"]);
    let (before, mut watch) = (registration.state(), registration.watch());
    assert!(server_fixture.server.expire(session));
    let back = async {
        while !watch.state().is_registered() || watch.state() == before {
            watch.changed().await.unwrap();
        }
    };
    within("the next registration", back).await.unwrap();
    assert_eq!(synced(&view).await, ["a"]);
    assert_eq!(view.instances()[0].state(), InstanceState::Draining);
}

#[tokio::test]
async fn a_node_that_is_no_instance_harms_nothing_else() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let registration = register(&discovery, "a").await;
    let balancer = discovery.balancer("web", Strategy::RoundRobin).unwrap();
    let view = balancer.view();
    let znodes = server_fixture.rival.znodes();
    for bad in ["", "{", "null", r#"{"name":"web"}"#, r#"{"name":"web","id":"b","port":-1}"#] {
        znodes.create(format!("{PATH}/web/b"), bad, CreateMode::Persistent).await.unwrap();
        assert_eq!(synced(view).await, ["a"], "{bad:?}");
        let error = view.snapshot().get("b").unwrap().value().unwrap_err();
        assert_eq!(error.path(), "b");
        assert!((0..4).all(|_| balancer.choose().is_some_and(|instance| instance.id() == "a")));
        let inspection = discovery.inspect().await.unwrap();
        let [web] = inspection.services() else { panic!("{inspection}") };
        assert!(web.instances()[0].instance().is_ok() && web.instances()[1].instance().is_err());
        assert!(znodes.delete(format!("{PATH}/web/b")).await.unwrap());
    }
    // It becomes an instance when its data is one.
    znodes.create(format!("{PATH}/web/b"), "{", CreateMode::Persistent).await.unwrap();
    let json = instance("b").with_service_type(ServiceType::Permanent).to_json().unwrap();
    znodes.write(format!("{PATH}/web/b"), json, -1).await.unwrap();
    assert_eq!(synced(view).await, ["a", "b"]);
    registration.release().await.unwrap();
    assert_eq!(synced(view).await, ["b"]);
}

#[tokio::test]
async fn of_two_instances_with_one_id_the_second_waits() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (client(&server_fixture).await, client(&server_fixture).await);
    let first = register(&discovery(&here), "a").await;
    let second = discovery(&there).register(instance("a")).unwrap();
    let mut watch = second.watch();
    let conflict = async {
        while !matches!(watch.state(), PresenceState::Conflict { .. }) {
            watch.changed().await.unwrap();
        }
    };
    within("the conflict", conflict).await.unwrap();
    first.release().await.unwrap();
    within("the registration", second.registered()).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_operator_takes_an_instance_out_of_service_by_deleting_its_node() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery = discovery(&client(&server_fixture).await);
    let registration = discovery.register_with(instance("a"), OnDeletion::End).unwrap();
    within("the registration", registration.registered()).await.unwrap().unwrap();
    let view = discovery.service("web").unwrap();
    assert_eq!(synced(&view).await, ["a"]);
    let mut watch = registration.watch();
    assert!(server_fixture.server.delete_node(&format!("{PATH}/web/a")));
    let ended = async { while watch.changed().await.is_ok() {} };
    within("the end", ended).await.unwrap();
    assert_eq!(registration.state(), PresenceState::Deleted);
    assert!(synced(&view).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let discovery: Discovery = discovery(&client(&server_fixture).await);
    let refused = |instance: Instance| discovery.register(instance).unwrap_err();
    for bad in ["", "a/b", ".", "..", "a\0"] {
        for error in [
            refused(Instance::new(bad, "h", 1)),
            refused(instance(bad)),
            discovery.service(bad).unwrap_err(),
            discovery.balancer(bad, Strategy::Sticky).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Config(_)), "{bad:?}: {error}");
        }
    }
    for kind in [ServiceType::DynamicSequential, ServiceType::Static, ServiceType::Permanent] {
        let error = refused(instance("a").with_service_type(kind));
        assert!(matches!(error, Error::Config(_)), "{error}");
    }
    let large =
        refused(instance("a").with_payload_class("x").with_uri_spec("x".repeat(2_000_000).parse().unwrap()));
    assert!(matches!(large, Error::Config(_)), "{large}");
    assert!(discovery.services().await.unwrap().is_empty());
    assert_eq!(ids(&discovery.service("web").unwrap()), [""; 0]);
}
