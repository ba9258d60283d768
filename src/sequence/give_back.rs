//! How the nodes of a hold go.

use std::sync::Arc;

use tracing::debug;

use super::hold::Foothold;
use crate::backend::{MultiError, WireError, WriteOp};
use crate::deadline::Deadline;
use crate::release::ReleaseError;
use crate::session::OwnNode;

/// Deletes all nodes of a hold.
pub(super) async fn delete_all(
    first: Foothold,
    mut others: Vec<Foothold>,
    deadline: Deadline,
) -> Result<(), ReleaseError> {
    if others.is_empty() {
        return delete_one(first, deadline).await;
    }
    others.insert(0, first);
    delete_together(others, deadline).await.into_iter().collect()
}

/// Deletes one node of a hold.
pub(super) async fn delete_one(foothold: Foothold, deadline: Deadline) -> Result<(), ReleaseError> {
    let Foothold { entry, standing } = foothold;
    let node = Arc::clone(&entry.0);
    // Given up first: nobody that no longer finds the node may take that for a loss.
    drop(entry);
    read_release(&node, standing.delete(deadline).await)
}

fn read_release(node: &OwnNode, deleted: Result<bool, WireError>) -> Result<(), ReleaseError> {
    match deleted {
        Ok(true) => {
            debug!(path = node.path(), "released");
            Ok(())
        }
        Ok(false) => Err(ReleaseError::Lost(node.was_deleted_before())),
        Err(error) => match node.session().loss() {
            Some(reason) => Err(ReleaseError::Lost(node.loss_by(reason))),
            None => Err(ReleaseError::Unconfirmed { path: node.path().to_owned(), cause: error.to_string() }),
        },
    }
}

/// Deletes all of them by one transaction if that can be done, else one by one.
pub(super) async fn delete_together(
    footing: Vec<Foothold>,
    deadline: Deadline,
) -> Vec<Result<(), ReleaseError>> {
    let Some(session) = footing.first().map(|foothold| foothold.node().session().clone()) else {
        return Vec::new();
    };
    if footing.iter().all(|foothold| foothold.node().session().is_same_as(&session)) && footing.len() > 1 {
        let deletes: Vec<WriteOp> = footing
            .iter()
            .map(|foothold| WriteOp::Delete { path: foothold.node().path().to_owned(), version: None })
            .collect();
        for foothold in &footing {
            foothold.node().set_given_up();
        }
        // Dropped on the way, or without an answer, each is left to the janitor: deleting twice does no harm.
        match session.multi(&deletes, deadline).await {
            Ok(_) => {
                debug!(nodes = footing.len(), path = deletes.first().map(WriteOp::path), "released");
                return footing
                    .into_iter()
                    .map(|mut foothold| {
                        foothold.standing.is_gone();
                        Ok(())
                    })
                    .collect();
            }
            Err(MultiError::Operation { .. }) => {}
            Err(MultiError::Request(error)) => {
                return footing
                    .into_iter()
                    .map(|foothold| read_release(&Arc::clone(foothold.node()), Err(error.clone())))
                    .collect();
            }
        }
    }
    let mut results = Vec::new();
    for foothold in footing {
        results.push(delete_one(foothold, deadline).await);
    }
    results
}
