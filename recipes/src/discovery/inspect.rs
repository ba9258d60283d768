use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, NodeInfo, WholePath};
use serde::de::DeserializeOwned;

use super::handle::Discovery;
use super::instance::{Instance, NoPayload};
use super::service::check_owner;
use crate::inspection::age_text;

/// The services below a path and their instances at one time: a snapshot for people and tools, which may be
/// stale when it is read.
///
/// `{}` prints a line for each service and for each instance.
#[derive(Clone, Debug)]
pub struct DiscoveryInspection<P = NoPayload> {
    path: WholePath,
    services: Vec<ServiceInspection<P>>,
}

/// A service of a [`DiscoveryInspection`].
#[derive(Clone, Debug)]
pub struct ServiceInspection<P = NoPayload> {
    name: String,
    instances: Vec<InstanceInspection<P>>,
}

/// A node of a [`ServiceInspection`].
#[derive(Clone, Debug)]
pub struct InstanceInspection<P = NoPayload> {
    node: NodeInfo,
    instance: Result<Instance<P>, String>,
}

impl<P: DeserializeOwned> Discovery<P> {
    /// Reads every service with its instances: a snapshot. It changes nothing, and needs only the right to
    /// read. What Curator's clients registered is shown as well.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::NoAnswer`] (the link broke: call
    /// again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<DiscoveryInspection<P>, Error> {
        let instance = |node: NodeInfo| {
            let decode = |data| {
                Instance::from_json(data)
                    .and_then(|instance| check_owner(&instance, node.stat()).map(|()| instance))
                    .map_err(|error| error.to_string())
            };
            let unread = || Err("this client may not read the node".to_owned());
            let instance = node.data().map_or_else(unread, decode);
            InstanceInspection { node, instance }
        };
        let mut services = Vec::new();
        for name in self.services().await? {
            let nodes = NodeInfo::children_of(&self.manager, self.path.child(&name)?).await?;
            services.push(ServiceInspection { name, instances: nodes.into_iter().map(instance).collect() });
        }
        Ok(DiscoveryInspection { path: self.manager.whole_path(&self.path), services })
    }
}

impl<P> DiscoveryInspection<P> {
    /// The services, in the order of their names.
    #[must_use]
    pub fn services(&self) -> &[ServiceInspection<P>] {
        &self.services
    }
}

impl<P> ServiceInspection<P> {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The nodes, in the order of their names.
    #[must_use]
    pub fn instances(&self) -> &[InstanceInspection<P>] {
        &self.instances
    }
}

impl<P> InstanceInspection<P> {
    /// The node. Its session is that of the instance, and 0 for a persistent one.
    #[must_use]
    pub fn node(&self) -> &NodeInfo {
        &self.node
    }

    /// The instance.
    ///
    /// # Errors
    ///
    /// The flaw of the data, or of the kind of the node.
    pub fn instance(&self) -> Result<&Instance<P>, &str> {
        self.instance.as_ref().map_err(String::as_str)
    }
}

impl<P> Display for DiscoveryInspection<P> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "discovery {}: {} services", self.path, self.services.len())?;
        for service in &self.services {
            write!(formatter, "\n  {}: {} instances", service.name.escape_debug(), service.instances.len())?;
            for instance in &service.instances {
                write!(formatter, "\n    {instance}")?;
            }
        }
        Ok(())
    }
}

impl<P> Display for InstanceInspection<P> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}  ", self.node.name().escape_debug())?;
        match &self.instance {
            Ok(instance) => {
                let address = instance.address().unwrap_or("-").escape_debug();
                let port = instance.port().or_else(|| instance.ssl_port());
                let port = port.map_or_else(String::new, |port| format!(":{port}"));
                write!(formatter, "{}  {address}{port}  {}", instance.state(), instance.service_type())?;
            }
            Err(error) => write!(formatter, "no instance: {}", error.escape_debug())?,
        }
        let (session, age) = (self.node.session(), age_text(self.node.age()));
        write!(formatter, "  session {session:#x}  ~{age}")
    }
}
