//! The wait behind a node of this session: the hand-off in memory ends it.

use tracing::debug;

use super::lock_queue::LockQueue;
use super::long_wait::log_long_wait;
use super::predecessors::Predecessors;
use super::queued_node::{QueueState, QueuedNode};
use super::step_error::{StepError, queued_timeout};
use crate::config::limits::LONG_WAIT;
use crate::local::{LocalNode, LocalWait, LocalWake, QueueEntry};
use crate::session::SharedWatch;
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::znode::name::NodeName;
use crate::znode::node_data;

impl QueuedNode {
    /// Waits until the predecessor, or the own node, changes.
    pub(super) async fn wait_for_change(
        &mut self,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let QueueState::Waiting(predecessors) = &self.state else {
            return Ok(());
        };
        let entry = self.entry().cloned();
        let wait = entry.as_ref().map(|entry| entry.record_predecessor(predecessors.predecessor()));
        match (entry, wait) {
            (Some(me), Some(LocalWait::Behind(predecessor))) => {
                self.wait_local(queue, &me, &predecessor, deadline).await
            }
            (_, Some(LocalWait::Over(wake))) => {
                self.end_local_wait(wake);
                Ok(())
            }
            // Boxed: of the waiters of one process, only the first of each run needs a watch.
            _ => Box::pin(self.wait_remote(queue, deadline)).await,
        }
    }

    /// Waits for a node of this session. Its delete is known without a watch.
    async fn wait_local(
        &mut self,
        queue: &LockQueue,
        me: &QueueEntry,
        predecessor: &LocalNode,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let (path, name) = (me.node.path(), predecessor.node.name());
        let owner = || node_data::shown(predecessor.node.data());
        debug!(path, predecessor = name, owner = owner(), ahead = me.ahead(), "waiting in the queue");
        let session = self.session().clone();
        // In a short wait, the predecessor's release ends the wait.
        let mut own_watch_due = Some(self.own_watch_due());
        let (mut my_watch, mut predecessor_watch) = (None, None);
        loop {
            let asked_on = session.connection();
            // One timer for the own watch and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            let wake = tokio::select! {
                biased;
                // The node ends with its session.
                wake = me.local_wake() => Some(wake),
                // A node whose data was written still exists, and is watched again.
                () = fired(&mut my_watch) => {
                    my_watch = None;
                    own_watch_due = Some(session.now());
                    continue;
                }
                () = fired(&mut predecessor_watch) => {
                    predecessor_watch = None;
                    if session.settle_predecessor(&predecessor.node) {
                        own_watch_due = Some(session.now());
                    }
                    continue;
                }
                () = session.reconnected(asked_on) => {
                    me.node.forget_watch();
                    // A clone that is kept would keep its room among the watches.
                    (my_watch, predecessor_watch, own_watch_due) = (None, None, Some(session.now()));
                    None
                }
                () = limit.passed() => {
                    if deadline.has_passed() {
                        return Err(queued_timeout(deadline, queue, name, owner(), me.ahead()));
                    }
                    if own_watch_due.take().is_none() {
                        log_long_wait(queue, path, name, &owner(), deadline);
                    }
                    None
                }
            };
            match wake {
                Some(Ok(wake)) => {
                    self.end_local_wait(wake);
                    return Ok(());
                }
                Some(Err(_)) => {
                    return Err(session.loss().map_or_else(|| self.deleted(), StepError::from));
                }
                None if own_watch_due.is_none() => {
                    let own_watch = self.ask_own_watch();
                    Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
                    my_watch = me.node.watch();
                    predecessor_watch =
                        Box::pin(session.watch_predecessor(&predecessor.node, deadline)).await;
                }
                None => {}
            }
        }
    }

    /// Before a list decides, a writer waits for the other nodes of this session that are ahead.
    fn end_local_wait(&mut self, wake: LocalWake) {
        let own = || self.entry().and_then(|entry| entry.own_before_writer());
        self.state = match wake {
            LocalWake::Head => QueueState::Held,
            LocalWake::Relist => own()
                .and_then(|own| NodeName::parse(own.node.name()))
                .map_or(QueueState::Unknown, |name| QueueState::Waiting(Predecessors::behind(name, 1, None))),
        };
    }

    /// A long waiter also watches its own node, to notice when it is deleted.
    pub(super) fn own_watch_due(&self) -> BootInstant {
        let session = self.session();
        session.now().after(fractions::own_watch_delay(session.timeout()))
    }
}

/// Resolves when the watch, if there is one, has fired.
async fn fired(watch: &mut Option<SharedWatch>) {
    match watch {
        Some(watch) => drop(watch.await),
        None => std::future::pending().await,
    }
}
