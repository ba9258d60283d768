//! Services, their instances, and clients that choose among them.
//!
//! # Layout
//!
//! That of Curator's `curator-x-discovery`: an instance is the node `<path>/<service>/<id>`, ephemeral, with
//! JSON as data. `docs/protocol.md` has the bytes.
//!
//! Sources: Apache Curator's `ServiceDiscoveryImpl`, `JsonInstanceSerializer`, `ServiceProviderImpl`,
//! `DownInstancePolicy`; CURATOR-320 (delete and create at each reconnect), CURATOR-380 and CURATOR-470
//! (which instance came or went), CURATOR-574 (data that cannot be read).

mod balancer;
mod failures;
#[cfg(any(test, lockkeeper_fuzzing))]
pub(crate) mod fuzzing;
mod handle;
mod inspect;
mod instance;
mod json;
mod registration;
mod service;
mod strategy;
mod uri_spec;

pub use self::balancer::Balancer;
pub use self::failures::FailurePolicy;
pub use self::handle::Discovery;
pub use self::inspect::{DiscoveryInspection, InstanceInspection, ServiceInspection};
pub use self::instance::{Instance, InstanceState, NoPayload, ServiceType};
pub use self::registration::InstanceRegistration;
pub use self::service::ServiceView;
pub use self::strategy::Strategy;
pub use self::uri_spec::UriSpec;
