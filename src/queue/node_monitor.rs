use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use super::hold::Hold;
use super::revocation::wait_revoke_message;
use crate::error::{Error, Lost, Operation};
use crate::session::OwnedNode;
use crate::time::deadline::Deadline;
use crate::znode::name::{Label, NodeName};

/// What can be seen of a held place by who does not hold it: whether it is lost, and whether anybody else wants it.
///
/// Keeps neither the place nor the manager.
pub struct NodeMonitor {
    node: Arc<OwnedNode>,
    label: Label,
}

impl Hold {
    /// What can be seen of its place by who does not hold it.
    #[must_use]
    pub fn monitor(&self) -> NodeMonitor {
        NodeMonitor::on(self.node(), self.first.label)
    }
}

impl NodeMonitor {
    pub(super) fn on(node: &Arc<OwnedNode>, label: Label) -> Self {
        Self { node: Arc::clone(node), label }
    }

    /// Resolves when the place is lost, as [`Hold::lost`](super::Hold::lost). A place that was given up is not lost by its own
    /// delete, but only by the end of its session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a loss is told again to whoever asks later.
    pub async fn lost(&self) -> Lost {
        self.node.lost().await
    }

    /// Resolves once somebody wants the place: stands in its line, whatever process that is of, or
    /// [asks for it](super::Hold::revoke_requested). Also once that can be seen no more.
    ///
    /// For a line in which everyone waits for everyone in front, as that of [`Rule::MUTEX`](super::Rule::MUTEX). `is_alone` is told `true` when
    /// it was seen that nobody else is there, and `false` when that is known no more. Costs a list with a watch, and a read
    /// of the own node with a watch; again whenever one of them fires, or after a reconnect.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is lost.
    pub async fn contended(&self, is_alone: impl Fn(bool)) {
        let wait_revoke_message = async {
            // Who is not allowed to read the own node cannot be told so.
            if let Err(Error::Refused { .. }) = wait_revoke_message(&self.node).await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.until_rivals(&is_alone) => {}
            () = wait_revoke_message => {}
        }
        is_alone(false);
    }

    async fn until_rivals(&self, is_alone: &impl Fn(bool)) {
        let session = self.node.session();
        let Some((directory, mine)) = self.node.path().rsplit_once('/') else { return };
        let is_rival = |name: &String| {
            let kind = || NodeName::parse_with(name, &[self.label]).map(|name| name.kind());
            name != mine && kind() == Some(self.label.kind())
        };
        loop {
            let Some(_room) = session.watch_budget().reserve_spare(directory) else { return };
            let asked_on = session.connection();
            let mut list = session.read(|wire| wire.watch_children(directory));
            let changed = match session.await_reply(&mut list, Deadline::never()).await {
                Ok((names, _, _)) if names.iter().any(is_rival) => return,
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
                // Whoever comes meanwhile is not seen.
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
