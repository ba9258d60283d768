use std::sync::Arc;

use lockkeeper_core::{DecodeFailure, Stat, ViewNode, WholePath, count_unreadable_instance};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::instance::{Instance, NoPayload};
use crate::view::ChildrenView;

/// The instances of a service, followed: see [`Discovery::service`](crate::Discovery::service).
///
/// # Methods
///
/// Those of every [`ChildrenView`](crate::ChildrenView).
pub type ServiceView<P = NoPayload> = ChildrenView<Arc<Instance<P>>>;

impl<P> ServiceView<P> {
    /// The instances in the latest snapshot, whatever their state, in the order of the names of their nodes.
    /// A node that cannot be read as an instance is left out. Sends nothing.
    #[must_use]
    pub fn instances(&self) -> Vec<Arc<Instance<P>>> {
        let snapshot = self.snapshot();
        let instance =
            |(_, node): (&str, &Arc<ViewNode<Arc<Instance<P>>>>)| node.value().ok().map(Arc::clone);
        snapshot.children("").filter_map(instance).collect()
    }
}

/// Reads a child of a service. The root of the view is the service itself, and no instance.
pub(super) fn decode<P: DeserializeOwned>(
    service: &WholePath,
    node: &str,
    data: &[u8],
    stat: &Stat,
) -> Result<Arc<Instance<P>>, DecodeFailure> {
    if node.is_empty() {
        return Err("this node is the service, and no instance".into());
    }
    // What is wrong may quote the data, which belongs in no log.
    let instance = Instance::from_json(data).inspect_err(|_| {
        count_unreadable_instance();
        warn!(path = %format_args!("{service}/{node}"), "a node is no instance of its service");
    })?;
    check_owner(&instance, stat).map(|()| Arc::new(instance)).inspect_err(|_| {
        warn!(path = %format_args!("{service}/{node}"), "a node that belongs to no session is no instance");
    })
}

/// An instance whose type is ephemeral belongs to a session. A copy of its node does not.
pub(super) fn check_owner<P>(instance: &Instance<P>, stat: &Stat) -> Result<(), DecodeFailure> {
    if stat.ephemeral_owner == 0 && instance.service_type().is_ephemeral() {
        let of_type = instance.service_type();
        return Err(format!("the node is persistent, and an instance of type {of_type} is ephemeral").into());
    }
    Ok(())
}
