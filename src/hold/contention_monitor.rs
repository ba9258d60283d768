use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::held::Hold;
use super::reads::{Changes, Prefetch, Read, ReadResult};
use super::revocation::wait_revoke_message;
use crate::error::{Error, Lost, Operation};
use crate::session::OwnedNode;
use crate::time::deadline::Deadline;
use crate::znode::name::{Kind, Label, NodeName};

/// Observes a held node without holding it: whether the node is lost, and whether another contender wants it.
///
/// Keeps neither the node nor the manager alive.
#[derive(Clone)]
pub struct NodeMonitor {
    node: Arc<OwnedNode>,
    label: Label,
}

impl Hold {
    pub(crate) fn monitor(&self) -> NodeMonitor {
        NodeMonitor::on(self.node(), self.first.label)
    }
}

impl NodeMonitor {
    pub(crate) fn on(node: &Arc<OwnedNode>, label: Label) -> Self {
        Self { node: Arc::clone(node), label }
    }

    /// Whether the node is not lost, by the clock of this instant. Costs no request.
    ///
    /// # Errors
    ///
    /// [`Lost`], with the reason. After a release, the node's own delete is no loss.
    pub fn check(&self) -> Result<(), Lost> {
        self.node.verdict()
    }

    /// Resolves when the node is lost, as [`Hold::lost`](crate::Hold::lost). After a release, the node's own
    /// delete is no loss; only the end of its session is.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call returns the same loss.
    pub async fn lost(&self) -> Lost {
        self.node.lost().await
    }

    /// Resolves once the node is contended: another contender of any process is in the queue, or a process
    /// [requested revocation](crate::Hold::revoke_requested). Also resolves once contention can no longer be
    /// observed.
    ///
    /// For a queue in which every contender waits for all contenders ahead, as that of
    /// [`Rule::MUTEX`](crate::Rule::MUTEX), and for a reader's node, where only a writer is another
    /// contender. `is_alone` is called with `true` when a list shows no other contender, and with `false`
    /// when that is no longer known. Costs a list with a watch and a read of the own node with a watch, and
    /// both again whenever a watch fires or the client reconnects.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn contended(&self, is_alone: impl Fn(bool)) {
        let wait_revoke_message = async {
            // A contender that may not read its own node cannot receive a revoke request.
            if let Err(Error::Refused { .. }) = wait_revoke_message(&self.node).await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.until_contended(&is_alone) => {}
            () = wait_revoke_message => {}
        }
        is_alone(false);
    }

    /// Resolves when a process [requests that the holder release](crate::Hold::revoke_requested), and never
    /// once the node is lost or given up, or may not be read.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call reports the same request.
    pub async fn revoke_requested(&self) {
        if wait_revoke_message(&self.node).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) async fn watch(&self, reads: &Arc<[Read]>) -> Result<(Vec<ReadResult>, Changes), Error> {
        Prefetch::new(reads).watch(&self.node, Deadline::never()).await
    }

    async fn until_contended(&self, is_alone: &impl Fn(bool)) {
        let session = self.node.session();
        let Some((directory, mine)) = self.node.path().rsplit_once('/') else { return };
        // Readers hold beside each other.
        let excluded = match self.label.kind() {
            Kind::READ => Kind::WRITE,
            kind => kind,
        };
        let is_contender = |name: &String| {
            let kind = || NodeName::parse_with(name, &[self.label]).map(|name| name.kind());
            name != mine && kind() == Some(excluded)
        };
        loop {
            let Some(room) = session.watch_budget().reserve_spare(directory) else { return };
            let asked_on = session.connection();
            let mut list = session.watch_children(directory, room);
            let changed = match session.await_reply(&mut list, Deadline::never()).await {
                Ok((names, _, _)) if names.iter().any(is_contender) => return,
                Ok((_, _, changed)) => changed,
                Err(error) => {
                    let retry = session.retry_after(&error, Operation::List, directory, Deadline::never());
                    match retry.await {
                        Ok(()) => continue,
                        Err(_) => return,
                    }
                }
            };
            is_alone(true);
            tokio::select! {
                biased;
                _ = changed => {}
                // Contenders that enter the queue during the disconnect are not seen.
                () = session.interrupted(asked_on) => {}
                _ = session.ended() => return,
            }
            is_alone(false);
        }
    }
}

impl Debug for NodeMonitor {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("NodeMonitor").field(&self.node.path()).finish()
    }
}
