//! Services and their instances, for threads.

use std::time::Duration;

use lockkeeper::blocking::Discovery;
use lockkeeper::{FailurePolicy, Instance, InstanceState, OnDeletion, Strategy, ViewBounds};
use lockkeeper_tests::Timing;
use serde::{Deserialize, Serialize};

use crate::support::{aside, connect, is_refused, server};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Zone {
    zone: String,
}

fn instance(id: &str) -> Instance<Zone> {
    let payload = Zone { zone: "north".to_owned() };
    Instance::new("web", "10.0.0.7", 8080).with_id(id).with_payload(payload)
}

#[test]
fn a_thread_registers_an_instance_and_another_one_chooses_it() {
    let server = server();
    let (here, there) = (connect(&server), connect(&server));
    let registry = Discovery::with_payload(&here, "/services").unwrap().with_enabled_field();
    let clients: Discovery<Zone> = Discovery::with_payload(&there, "/services").unwrap();
    let balancer = clients.balancer("web", Strategy::RoundRobin).unwrap();
    let waiting = std::thread::spawn({
        let balancer = balancer.clone();
        move || balancer.choose_timeout(Timing::event()).unwrap()
    });
    let registration = registry.register(instance("a")).unwrap();
    let czxid = registration.registered_timeout(Timing::event()).unwrap();
    assert_eq!((registration.registered().unwrap(), registration.state().is_registered()), (czxid, true));
    assert_eq!(registration.path().as_str(), "/services/web/a");
    let mut states = registration.watch();
    assert_eq!(waiting.join().unwrap().payload(), instance("a").payload());

    let mut changes = balancer.view().changes();
    registration.set_payload(Zone { zone: "south".to_owned() }).unwrap();
    let difference = changes.next_timeout(Timing::event()).unwrap().unwrap();
    assert_eq!(difference.changes().len(), 1);
    registration.update(instance("a").with_ssl_port(8443)).unwrap();
    registration.set_state(InstanceState::Draining).unwrap();
    let view = balancer.view();
    view.sync().unwrap();
    assert_eq!(view.instances()[0].ssl_port(), Some(8443));
    assert!(balancer.choose().is_none());
    assert!(balancer.choose_timeout(Duration::from_millis(1)).unwrap_err().is_timeout());
    assert_eq!(clients.services().unwrap(), ["web"]);
    assert_eq!(clients.inspect().unwrap().services()[0].instances().len(), 1);
    assert_eq!(clients.path().as_str(), "/services");
    registration.release().unwrap();
    while states.changed().unwrap().expect("a final state").is_registered() {}
    assert!(states.state().is_final());
    view.sync().unwrap();
    assert!(view.instances().is_empty());
}

#[test]
fn a_call_of_a_discovery_within_a_task_is_refused_unless_it_cannot_wait() {
    let server = server();
    let manager = connect(&server);
    let discovery = Discovery::with_payload(&manager, "/services").unwrap();
    let registration = discovery.register_with(instance("a"), OnDeletion::End).unwrap();
    registration.registered().unwrap();
    let policy = FailurePolicy::new(1, Duration::from_secs(60));
    let balancer = discovery.balancer_with("web", Strategy::Sticky, policy).unwrap();
    discovery.service_within("web", ViewBounds::default()).unwrap().ready().unwrap();
    balancer.view().sync().unwrap();
    aside(async {
        assert!(is_refused(&discovery.register(instance("b"))));
        assert!(is_refused(&discovery.service("web")));
        assert!(is_refused(&discovery.balancer("web", Strategy::Random)));
        assert!(is_refused(&discovery.services()));
        assert!(is_refused(&discovery.inspect()));
        assert!(is_refused(&registration.registered()));
        assert!(is_refused(&registration.set_state(InstanceState::Draining)));
        assert!(is_refused(&balancer.choose_timeout(Duration::ZERO)));
        let chosen = balancer.choose().unwrap();
        assert_eq!((chosen.id(), registration.id()), ("a", "a"));
        balancer.report_failure(&chosen);
        assert!(balancer.choose().is_some(), "all have failed, so any is chosen");
        registration.release().unwrap();
    });
}
