//! Deletes the nodes of a hold.

use std::sync::Arc;

use tracing::debug;

use super::node::HeldNode;
use crate::config::limits;
use crate::error::release::ReleaseError;
use crate::session::OwnedNode;
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, WireError, WriteOp};

/// Deletes all nodes of a hold.
pub(crate) async fn delete_all(
    first: HeldNode,
    mut others: Vec<HeldNode>,
    deadline: Deadline,
) -> Result<(), ReleaseError> {
    if others.is_empty() {
        return delete_one(first, deadline).await;
    }
    others.insert(0, first);
    delete_together(others, deadline).await.into_iter().collect()
}

/// Deletes one node of a hold.
pub(crate) async fn delete_one(held_node: HeldNode, deadline: Deadline) -> Result<(), ReleaseError> {
    let HeldNode { registration, node_guard, .. } = held_node;
    let node = Arc::clone(&registration.0);
    // The registration is removed first, so that no reader of the missing node takes the release for a loss.
    drop(registration);
    read_release(&node, node_guard.delete(deadline).await)
}

fn read_release(node: &OwnedNode, deleted: Result<bool, WireError>) -> Result<(), ReleaseError> {
    match deleted {
        Ok(true) => {
            debug!(path = node.path(), "released");
            Ok(())
        }
        Ok(false) => Err(ReleaseError::Lost(node.was_deleted_before())),
        Err(error) => match node.session().loss() {
            Some(reason) => Err(ReleaseError::Lost(node.loss_by(reason))),
            None => Err(ReleaseError::Unconfirmed { path: node.path().into(), cause: error.to_string() }),
        },
    }
}

/// Deletes all nodes in one transaction if possible, else one by one: those of several sessions, and so many
/// that no request can name them.
pub(crate) async fn delete_together(
    held_nodes: Vec<HeldNode>,
    deadline: Deadline,
) -> Vec<Result<(), ReleaseError>> {
    let Some(session) = held_nodes.first().map(|held_node| held_node.node().session().clone()) else {
        return Vec::new();
    };
    let deletes: Vec<WriteOp> = held_nodes
        .iter()
        .map(|held_node| WriteOp::Delete { path: held_node.node().path().to_owned(), version: None })
        .collect();
    if held_nodes.iter().all(|held_node| held_node.node().session().is_same_as(&session))
        && held_nodes.len() > 1
        && limits::check(deletes.iter().map(WriteOp::bytes).sum()).is_ok()
    {
        for held_node in &held_nodes {
            held_node.node().set_given_up();
            held_node.node_guard.entry().into_iter().for_each(|entry| entry.mark_leaving());
        }
        // If this future is dropped or no reply arrives, each node is left to the janitor: a second delete
        // does no harm.
        match session.multi(&deletes, deadline).await {
            Ok(_) => {
                debug!(nodes = held_nodes.len(), path = deletes.first().map(WriteOp::path), "released");
                return held_nodes
                    .into_iter()
                    .map(|mut held_node| {
                        held_node.node_guard.mark_deleted();
                        Ok(())
                    })
                    .collect();
            }
            Err(MultiError::Operation { .. }) => {}
            Err(MultiError::Request(error)) => {
                return held_nodes
                    .into_iter()
                    .map(|held_node| read_release(&Arc::clone(held_node.node()), Err(error.clone())))
                    .collect();
            }
        }
    }
    let mut results = Vec::new();
    for held_node in held_nodes {
        results.push(delete_one(held_node, deadline).await);
    }
    results
}
