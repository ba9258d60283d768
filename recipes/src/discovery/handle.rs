use std::fmt::{self, Debug, Formatter};
use std::marker::PhantomData;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Error, IntoPath, OnDeletion, Presence, Stat, ViewBounds, ZnodePath,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::balancer::Balancer;
use super::failures::FailurePolicy;
use super::instance::{Instance, NoPayload, ServiceType};
use super::json;
use super::registration::InstanceRegistration;
use super::service::{self, ServiceView};
use super::strategy::Strategy;
use crate::view::ChildrenView;

/// Services by name, each with the instances that are there: the counterpart of Curator's
/// `ServiceDiscovery`, `ServiceCache` and `ServiceProvider`. Needs the feature `discovery`.
///
/// A clone is cheap. `P` is the type of the payload of an instance: any type that serde reads and writes. The
/// path belongs to the discovery alone: each child is a service, and each grandchild an instance.
///
/// # Ordering
///
/// The server orders the instances that come and go. All readers see the same instances in the end; a
/// [view](Self::service) has each change at a revision.
///
/// # Layout
///
/// `<path>/<service>/<id>` with JSON as data: that of Curator's `curator-x-discovery`, byte for byte. Java
/// services with the same path find ours, and ours find them. See
/// [`with_payload_class`](Instance::with_payload_class) for a payload that Java reads.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// use lockkeeper::Discovery;
/// use lockkeeper::discovery::{Instance, InstanceState, Strategy};
/// use lockkeeper::view::ViewChange;
///
/// // A process of the service.
/// let discovery = Discovery::new(&manager, "/services")?;
/// let registration = discovery.register(Instance::new("web", "10.0.0.7", 8080))?;
/// registration.registered().await?;
///
/// // A client.
/// let balancer = discovery.balancer("web", Strategy::RoundRobin)?;
/// let instance = balancer.choose_timeout(Duration::from_secs(5)).await?;
/// assert_eq!((instance.address(), instance.port()), (Some("10.0.0.7"), Some(8080)));
///
/// // No client chooses the instance any more, and the process finishes the calls that it has.
/// let mut changes = balancer.view().changes();
/// registration.set_state(InstanceState::Draining).await?;
/// 'drained: while let Some(difference) = changes.next().await {
///     for change in difference.changes() {
///         let ViewChange::Updated { node, .. } = change else { continue };
///         let instance = node.value()?;
///         let revision = difference.snapshot().revision();
///         println!("{} is {} at revision {revision}", instance.id(), instance.state());
///         break 'drained;
///     }
/// }
/// assert!(balancer.choose().is_none());
/// registration.release().await?;
/// # Ok(())
/// # }
/// ```
pub struct Discovery<P = NoPayload> {
    pub(super) manager: ConnectionManager,
    pub(super) path: ZnodePath,
    with_enabled: bool,
    payload: PhantomData<fn() -> P>,
}

impl Discovery {
    /// Makes the discovery at `path`, below the manager's chroot, for instances whose payload does not
    /// matter. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::new_typed(manager, path)
    }
}

impl<P> Discovery<P> {
    /// As [`new`](Discovery::new), for instances with a payload of type `P`.
    ///
    /// # Errors
    ///
    /// As [`new`](Discovery::new).
    pub fn new_typed(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let (manager, path) = (manager.clone(), path.into_path()?);
        Ok(Self { manager, path, with_enabled: false, payload: PhantomData })
    }

    /// Writes the field `enabled` also for instances that are enabled, as Curator does with
    /// `compatibleSerializationMode` off. Default: only for those that are not, because old versions of
    /// Curator refuse a field that they do not know. Both are read.
    #[must_use]
    pub fn with_enabled_field(self) -> Self {
        Self { with_enabled: true, ..self }
    }

    /// The path of the services, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The names of all services, sorted, whether they have instances or not. A [`ChildrenView`] of the
    /// [path](Self::path) follows them.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn services(&self) -> Result<Vec<String>, Error> {
        let mut names = self.manager.znodes().children(&self.path).await?.unwrap_or_default();
        names.sort_unstable();
        Ok(names)
    }

    fn service_path(&self, name: &str) -> Result<ZnodePath, Error> {
        Ok(self.path.child(named("the name of the service", name)?)?)
    }
}

impl<P: Serialize> Discovery<P> {
    /// Begins to register an instance, in the background. The registration ends when it is dropped. If
    /// another client deletes the node, it is created again.
    ///
    /// # Conflicts
    ///
    /// Of two instances of a service with one id, the second is in the state
    /// [`Conflict`](lockkeeper_core::PresenceState::Conflict) until the first ends. Curator deletes the node
    /// of the first.
    ///
    /// # Cost
    ///
    /// One write for each session, and one watch. A reconnect costs two reads, and no write: no client sees
    /// anything of it. (Curator deletes and creates the node at each reconnect.)
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name of the service or the id is empty or no valid name of a node, if the
    /// instance is not of the type [`Dynamic`](ServiceType::Dynamic), if the payload cannot be JSON or is too
    /// large, or without a tokio runtime; [`Error::Closed`] after a shutdown has begun.
    ///
    /// # Session loss
    ///
    /// As [`Registration`](crate::Registration): the instance is back within one round trip of the next
    /// session.
    pub fn register(&self, instance: Instance<P>) -> Result<InstanceRegistration<P>, Error> {
        self.register_with(instance, OnDeletion::Recreate)
    }

    /// As [`register`](Self::register), with a policy for the case that another client deletes the node:
    /// with [`OnDeletion::End`], an operator takes the process out of service by deleting its node.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_with(
        &self,
        instance: Instance<P>,
        policy: OnDeletion,
    ) -> Result<InstanceRegistration<P>, Error> {
        let path = self.service_path(instance.name())?.child(named("the id", instance.id())?)?;
        if instance.service_type() != ServiceType::Dynamic {
            let (name, value) = ("the type of the instance", instance.service_type().to_string());
            let advice = "register instances of type DYNAMIC; write another one by Znodes::create";
            return Err(ConfigError::Setting { name, value, advice }.into());
        }
        let data = json::write(&instance, self.with_enabled)?;
        let presence = Presence::new(&self.manager, path, data, policy)?;
        Ok(InstanceRegistration::new(presence, instance, self.with_enabled))
    }
}

impl<P: DeserializeOwned + Send + Sync + 'static> Discovery<P> {
    /// Begins to follow the instances of a service, in the background: a
    /// [`ChildrenView`]. The service need not exist. It needs only the right to read.
    ///
    /// A [`ViewChange`](lockkeeper_core::ViewChange) is `Created` for an instance that came, `Deleted` for
    /// one that went, and `Updated` for one that changed, as when it drains. `Recreated` is one that went and
    /// came back between two revisions, as after the loss of its session.
    ///
    /// A node that is no instance has an error in place of its value, and harms nothing else. It is logged,
    /// and counted in the metric `lockkeeper_unreadable_instances_total`. So is, without the count, a
    /// persistent node whose instance has an ephemeral [type](ServiceType), as tools that copy or restore
    /// trees leave it: no client chooses it.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the name is empty or no valid name of a node, or without a tokio runtime;
    /// [`Error::Closed`] after a shutdown.
    pub fn service(&self, name: &str) -> Result<ServiceView<P>, Error> {
        self.service_within(name, ViewBounds::default())
    }

    /// As [`service`](Self::service), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`service`](Self::service).
    pub fn service_within(&self, name: &str, bounds: ViewBounds) -> Result<ServiceView<P>, Error> {
        let path = self.service_path(name)?;
        let whole = self.manager.whole_path(&path);
        let decode = move |node: &str, data: &[u8], stat: &Stat| service::decode(&whole, node, data, stat);
        ChildrenView::with_stat_decoder(&self.manager, path, bounds, decode)
    }

    /// Begins to follow the instances of a service, and chooses among them: the counterpart of Curator's
    /// `ServiceProvider`. With the default [`FailurePolicy`].
    ///
    /// # Errors
    ///
    /// As [`service`](Self::service).
    pub fn balancer(&self, name: &str, strategy: Strategy) -> Result<Balancer<P>, Error> {
        self.balancer_with(name, strategy, FailurePolicy::default())
    }

    /// As [`balancer`](Self::balancer), with this policy for instances that fail.
    ///
    /// # Errors
    ///
    /// As [`service`](Self::service).
    pub fn balancer_with(
        &self,
        name: &str,
        strategy: Strategy,
        policy: FailurePolicy,
    ) -> Result<Balancer<P>, Error> {
        Ok(Balancer::new(&self.manager, self.service(name)?, strategy, policy))
    }
}

/// A name that is not empty.
fn named<'a>(what: &'static str, name: &'a str) -> Result<&'a str, Error> {
    if name.is_empty() {
        let advice = "give each service a name, and each instance an id";
        return Err(ConfigError::Setting { name: what, value: "empty".to_owned(), advice }.into());
    }
    Ok(name)
}

impl<P> Clone for Discovery<P> {
    fn clone(&self) -> Self {
        let (manager, path) = (self.manager.clone(), self.path.clone());
        Self { manager, path, with_enabled: self.with_enabled, payload: PhantomData }
    }
}

impl<P> Debug for Discovery<P> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Discovery").field("path", &self.path).finish_non_exhaustive()
    }
}
