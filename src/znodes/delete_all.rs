use futures::{StreamExt, TryStreamExt, stream};

use super::handle::{Znodes, read_in_sync};
use super::list::IN_FLIGHT_MAX;
use crate::error::{ConfigError, Error, Operation, Refusal};
use crate::session::Stop;
use crate::time::deadline::Deadline;
use crate::wire::{WireError, existing};
use crate::znode::path::{IntoPath, ZnodePath};

/// What one call of [`Znodes::delete_all`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeletedNodes {
    /// The number of nodes that it deleted. Nodes whose delete had no answer may be missing.
    pub nodes: u32,
    /// Whether the node and everything below it is deleted. If not, the next call goes on.
    pub is_complete: bool,
}

/// What has become of one node.
enum DeleteStep {
    Now,
    Before,
    HasChildren,
}

impl Znodes {
    /// Deletes a node with everything below it: at most `nodes_max` nodes, children before their parents,
    /// many at once. What is left after a call that was cut off, or that has reached `nodes_max`, is a tree
    /// that the next call deletes. A node that does not exist is complete.
    ///
    /// A node that another client creates below the path meanwhile is deleted as well, as long as the path
    /// itself exists. Afterwards another client may create the path anew: keep writers away first, by their
    /// lock or by an access list. A reader may see the tree in parts.
    ///
    /// A delete without an answer is repeated, also in the next session.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for the root; [`Error::Refused`] without the right to list a node or to delete it;
    /// [`Error::Timeout`] if one request has no answer within the operation timeout, and [`Error::Closed`].
    /// After each of them a part may be deleted: call again.
    ///
    /// # Cancel safety
    ///
    /// What was deleted stays deleted. The next call goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// let znodes = manager.znodes();
    /// for name in ["a", "b", "b/c"] {
    ///     znodes.ensure(format!("/old/{name}")).await?;
    /// }
    /// let first = znodes.delete_all("/old", 2).await?;
    /// assert_eq!((first.nodes, first.is_complete), (2, false));
    /// let rest = znodes.delete_all("/old", 1_000).await?;
    /// assert_eq!((rest.nodes, rest.is_complete), (2, true));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_all(&self, path: impl IntoPath, nodes_max: u32) -> Result<DeletedNodes, Error> {
        let root = self.manager.full_path(&path.into_path()?)?;
        if root.is_root() {
            let advice = "name the node below the root whose tree is to be deleted";
            return Err(ConfigError::Setting { name: "path", value: "/".to_owned(), advice }.into());
        }
        let (mut nodes, mut open) = (0, vec![root]);
        while let Some(path) = open.last().cloned() {
            if nodes >= nodes_max {
                return Ok(DeletedNodes { nodes, is_complete: false });
            }
            match self.delete_one(&path).await? {
                DeleteStep::HasChildren => {
                    let room = nodes_max - nodes;
                    let (deleted, with_children) = self.delete_children(&path, room).await?;
                    nodes += deleted;
                    open.extend(with_children);
                }
                gone => {
                    nodes += u32::from(matches!(gone, DeleteStep::Now));
                    open.pop();
                }
            }
        }
        Ok(DeletedNodes { nodes, is_complete: true })
    }

    /// Deletes the children that have none, at most `max` of them. Returns their number, and the others.
    async fn delete_children(&self, path: &ZnodePath, max: u32) -> Result<(u32, Vec<ZnodePath>), Error> {
        let names = self.names_below(path).await?;
        let child = |name: &String| ZnodePath::of_node(&path.listed_child(name));
        let children: Vec<ZnodePath> =
            names.iter().map(child).take(usize::try_from(max).unwrap_or(usize::MAX)).collect();
        let deleted = stream::iter(children).map(|child| async move {
            let deleted = self.delete_one(&child).await?;
            Ok::<_, Error>((child, deleted))
        });
        let (mut count, mut with_children) = (0, Vec::new());
        let mut deleted = deleted.buffer_unordered(IN_FLIGHT_MAX);
        while let Some((child, deleted)) = deleted.try_next().await? {
            match deleted {
                DeleteStep::Now => count += 1,
                DeleteStep::Before => {}
                DeleteStep::HasChildren => with_children.push(child),
            }
        }
        Ok((count, with_children))
    }

    async fn delete_one(&self, path: &ZnodePath) -> Result<DeleteStep, Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        loop {
            let session = self.manager.session(deadline, path).await?;
            let mut reply = session.write(|wire| wire.delete(path, None));
            let failed = match session.await_reply(&mut reply, deadline).await {
                Ok(()) => return Ok(DeleteStep::Now),
                Err(WireError::Refused(Refusal::NoNode)) => return Ok(DeleteStep::Before),
                Err(WireError::Refused(Refusal::NotEmpty)) => return Ok(DeleteStep::HasChildren),
                Err(error) => error,
            };
            let retried = session.retry_after(&failed, Operation::Delete, path, deadline).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }

    async fn names_below(&self, path: &ZnodePath) -> Result<Vec<String>, Error> {
        let deadline = Deadline::after(self.manager.operation_timeout());
        loop {
            let session = self.manager.session(deadline, path).await?;
            let list = || session.read(|wire| wire.children(path));
            let failed = match existing(read_in_sync(&session, list, deadline).await) {
                Ok(names) => return Ok(names.unwrap_or_default()),
                Err(error) => error,
            };
            let retried = session.retry_after(&failed, Operation::List, path, deadline).await;
            retried.or_else(Stop::or_next_session)?;
        }
    }
}
