use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::{Error, IntoPath, OnDeletion, PresenceState, ViewBounds, ZnodePath};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::CannotBlock;
use super::generic::Blocking;
use super::manager::ConnectionManager;
use super::view::ChildrenView;
use super::watch::{PresenceWatch, Watch};
use crate::discovery::{DiscoveryInspection, FailurePolicy, Instance, InstanceState, NoPayload, Strategy};

/// Services by name, each with the instances that are there, for threads. Everything is as for the async
/// [`Discovery`](crate::Discovery).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use std::time::Duration;
///
/// use lockkeeper::blocking::Discovery;
/// use lockkeeper::{Instance, Strategy};
///
/// let discovery = Discovery::new(&manager, "/services")?;
/// let registration = discovery.register(Instance::new("web", "10.0.0.7", 8080))?;
/// registration.registered()?;
/// let balancer = discovery.balancer("web", Strategy::RoundRobin)?;
/// let instance = balancer.choose_timeout(Duration::from_secs(5))?;
/// assert_eq!(instance.id(), registration.id());
/// registration.release()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type Discovery<P = NoPayload> = Blocking<crate::Discovery<P>>;

/// An instance of a service, registered. A drop ends it in the background.
pub type InstanceRegistration<P = NoPayload> = Blocking<crate::InstanceRegistration<P>>;

/// The instances of a service, followed.
pub type ServiceView<P = NoPayload> = ChildrenView<Arc<Instance<P>>>;

/// Chooses one instance of a service after the other.
pub type Balancer<P = NoPayload> = Blocking<crate::Balancer<P>>;

impl Discovery {
    /// Makes the discovery at `path`, below the manager's chroot. Sends nothing.
    ///
    /// # Errors
    ///
    /// As [`Discovery::new`](crate::Discovery::new).
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Self::with_payload(manager, path)
    }
}

impl<P> Discovery<P> {
    /// As [`new`](Discovery::new), for instances with a payload of type `P`.
    ///
    /// # Errors
    ///
    /// As [`new`](Discovery::new).
    pub fn with_payload(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        Ok(Self::on(manager, crate::Discovery::with_payload(manager.as_async(), path)?))
    }

    /// Writes the field `enabled` also for instances that are enabled: see
    /// [`Discovery::with_enabled_field`](crate::Discovery::with_enabled_field).
    #[must_use]
    pub fn with_enabled_field(self) -> Self {
        let Self { inner, thread } = self;
        Self { inner: inner.with_enabled_field(), thread }
    }

    /// The path of the services, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// The names of all services, sorted.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Discovery::services`](crate::Discovery::services).
    pub fn services(&self) -> Result<Vec<String>, Error> {
        self.block(self.inner.services())
    }
}

impl<P: Serialize> Discovery<P> {
    /// Begins to register an instance, in the background.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Discovery::register`](crate::Discovery::register).
    pub fn register(&self, instance: Instance<P>) -> Result<InstanceRegistration<P>, Error> {
        self.register_with(instance, OnDeletion::Recreate)
    }

    /// As [`register`](Self::register), with a policy for the case that another client deletes the node.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register).
    pub fn register_with(
        &self,
        instance: Instance<P>,
        policy: OnDeletion,
    ) -> Result<InstanceRegistration<P>, Error> {
        // The task of the registration runs on the thread of the manager.
        let register = async { self.inner.register_with(instance, policy) };
        Ok(self.beside(self.block(register)?))
    }
}

impl<P: DeserializeOwned + Send + Sync + 'static> Discovery<P> {
    /// Begins to follow the instances of a service, in the background.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Discovery::service`](crate::Discovery::service).
    pub fn service(&self, name: &str) -> Result<ServiceView<P>, Error> {
        self.service_within(name, ViewBounds::default())
    }

    /// As [`service`](Self::service), within these bounds.
    ///
    /// # Errors
    ///
    /// As [`service`](Self::service).
    pub fn service_within(&self, name: &str, bounds: ViewBounds) -> Result<ServiceView<P>, Error> {
        let service = async { self.inner.service_within(name, bounds) };
        Ok(self.beside(self.block(service)?))
    }

    /// Begins to follow the instances of a service, and chooses among them.
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
        let balancer = async { self.inner.balancer_with(name, strategy, policy) };
        Ok(self.beside(self.block(balancer)?))
    }

    /// Reads every service with its instances: a snapshot.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Discovery::inspect`](crate::Discovery::inspect).
    pub fn inspect(&self) -> Result<DiscoveryInspection<P>, Error> {
        self.block(self.inner.inspect())
    }
}

impl<P> InstanceRegistration<P> {
    /// The id of the instance.
    #[must_use]
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.path()
    }

    /// Whether the node exists, as far as is known. Never blocks.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.inner.state()
    }

    /// The states of the registration, one after the other.
    #[must_use]
    pub fn watch(&self) -> PresenceWatch {
        Watch::new(self.inner.watch(), &self.thread, self.inner.whole_path())
    }

    /// Waits until the instance is registered, without a limit of time.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`InstanceRegistration::registered`](crate::InstanceRegistration::registered).
    pub fn registered(&self) -> Result<i64, Error> {
        self.block(self.inner.registered())
    }

    /// As [`registered`](Self::registered), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`registered`](Self::registered), and [`Error::Timeout`].
    pub fn registered_timeout(&self, timeout: Duration) -> Result<i64, Error> {
        self.block(self.inner.registered_timeout(timeout))
    }

    /// Deletes the node, and waits until the server has confirmed this. It works also within an async task.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] on the manager's own thread; the node is deleted in the
    /// background. Otherwise as [`InstanceRegistration::release`](crate::InstanceRegistration::release).
    pub fn release(self) -> Result<(), Error> {
        let Self { inner, thread } = self;
        thread.block_always(inner.release()).ok_or(CannotBlock)?
    }
}

impl<P: Serialize> InstanceRegistration<P> {
    /// Enables the instance or drains it, and waits until the node has the state.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`InstanceRegistration::set_state`](crate::InstanceRegistration::set_state).
    pub fn set_state(&self, state: InstanceState) -> Result<(), Error> {
        self.block(self.inner.set_state(state))
    }

    /// Replaces the payload, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`InstanceRegistration::set_payload`](crate::InstanceRegistration::set_payload).
    pub fn set_payload(&self, payload: P) -> Result<(), Error> {
        self.block(self.inner.set_payload(payload))
    }

    /// Replaces the whole instance, and waits until the node has it.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`InstanceRegistration::update`](crate::InstanceRegistration::update).
    pub fn update(&self, instance: Instance<P>) -> Result<(), Error> {
        self.block(self.inner.update(instance))
    }
}

impl<P> ServiceView<P> {
    /// The instances in the latest snapshot. Never blocks.
    #[must_use]
    pub fn instances(&self) -> Vec<Arc<Instance<P>>> {
        self.inner.instances()
    }
}

impl<P> Balancer<P> {
    /// The view of the service that the balancer chooses from.
    #[must_use]
    pub fn view(&self) -> ServiceView<P> {
        self.beside(self.inner.view().clone())
    }

    /// The next instance by the strategy. Never blocks.
    #[must_use]
    pub fn choose(&self) -> Option<Arc<Instance<P>>> {
        self.inner.choose()
    }

    /// As [`choose`](Self::choose), and waits for an instance for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`] within an async task. Otherwise as
    /// [`Balancer::choose_timeout`](crate::Balancer::choose_timeout).
    pub fn choose_timeout(&self, timeout: Duration) -> Result<Arc<Instance<P>>, Error> {
        self.block(self.inner.choose_timeout(timeout))
    }

    /// Reports that a call of this instance failed. Never blocks.
    pub fn report_failure(&self, instance: &Instance<P>) {
        self.inner.report_failure(instance);
    }
}
