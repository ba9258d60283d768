//! Services and their instances: who came and who went, and which instance a client gets.

mod balancer;
mod faults;
mod instances;
mod updates;

use std::sync::Arc;
use std::time::Duration;

use lockkeeper::discovery::{Instance, InstanceRegistration, NoPayload, ServiceView};
use lockkeeper::view::{ViewChange, ViewChanges};
use lockkeeper::{ConnectionManager, Discovery};
use lockkeeper_testserver::machine::Machine;

use crate::limit::within;
use crate::server_fixture::{ServerFixture, builder};

/// So long that only the tested events end a session.
const SESSION: Duration = Duration::from_secs(30);

pub(super) const PATH: &str = "/services";

pub(super) async fn client(server_fixture: &ServerFixture) -> ConnectionManager {
    let client = builder(&server_fixture.server.connect_string()).session_timeout(SESSION);
    client.connect().await.unwrap()
}

pub(super) fn discovery(manager: &ConnectionManager) -> Discovery {
    Discovery::new(manager, PATH).unwrap()
}

/// An instance of the service `web`.
pub(super) fn instance(id: &str) -> Instance {
    Instance::new("web", "10.0.0.7", 8080).with_id(id).with_registration_time(5)
}

pub(super) async fn register(discovery: &Discovery, id: &str) -> InstanceRegistration {
    let registration = discovery.register(instance(id)).unwrap();
    within("the registration", registration.registered()).await.unwrap().unwrap();
    registration
}

/// The data of an instance of `web`.
pub(super) fn data(machine: &Machine, id: &str) -> Option<String> {
    let node = machine.tree().node(&format!("{PATH}/web/{id}"))?;
    Some(String::from_utf8_lossy(node.data.as_deref().unwrap_or_default()).into_owned())
}

pub(super) async fn synced(view: &ServiceView) -> Vec<String> {
    within("the view", view.sync()).await.unwrap().unwrap();
    ids(view)
}

pub(super) fn ids(view: &ServiceView) -> Vec<String> {
    view.instances().iter().map(|instance| instance.id().to_owned()).collect()
}

/// The next change of an instance: what it is, and the name of the node.
pub(super) async fn next(changes: &mut ViewChanges<Arc<Instance<NoPayload>>>) -> (&'static str, String) {
    let change = async {
        loop {
            let difference = changes.next().await.unwrap();
            let of_instance = |change: &&ViewChange<_>| !change.path().is_empty();
            let Some(change) = difference.changes().iter().find(of_instance) else { continue };
            let kind = match change {
                ViewChange::Created { .. } => "came",
                ViewChange::Deleted { .. } => "went",
                ViewChange::Recreated { .. } => "came again",
                _ => "changed",
            };
            return (kind, change.path().to_owned());
        }
    };
    within("a change", change).await.unwrap()
}
