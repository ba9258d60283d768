//! The wait in line, behind a node of this session: the one in front tells in memory.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, info};

use super::lock_queue::LockQueue;
use super::predecessors::Predecessors;
use super::queued_node::{QueueState, QueuedNode};
use super::step_error::{StepError, timeout_error};
use crate::error::{Error, LossReason, Phase};
use crate::session::{LocalWake, OwnedNode, SharedWatch};
use crate::time::boot::BootInstant;
use crate::time::deadline::Deadline;
use crate::znode::name::{Kind, NodeName};
use crate::znode::node_data;

/// A wait that takes this long is told to whoever reads the log, and told again.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(30);

impl QueuedNode {
    /// Waits until something in front, or our own node, changes.
    pub(super) async fn wait_for_change(
        &mut self,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        if self.registration.0.has_hand_off() {
            self.state = QueueState::Held;
        }
        let QueueState::Waiting(predecessors) = &self.state else {
            return Ok(());
        };
        match self.local_predecessor(predecessors.predecessor()) {
            Some(predecessor) => self.wait_local(&predecessor, deadline).await,
            // Boxed: of the waiters of one process only the head of each run has to watch.
            None => Box::pin(self.wait_remote(queue, deadline)).await,
        }
    }

    /// The node of this name, if it is ours and its end is told in this process.
    fn local_predecessor(&self, predecessor: &NodeName) -> Option<Arc<OwnedNode>> {
        let sequence_key =
            self.registration.0.sequence_key().filter(|_| predecessor.has_ordered_sequence())?;
        let node = self.session().owned_node_at(&sequence_key.directory, predecessor.sequence())?;
        let is_it = node.name() == predecessor.as_str();
        (is_it && node.released().is_none()).then_some(node)
    }

    /// Waits for a node of this session: nobody needs to ask the server when it goes.
    async fn wait_local(
        &mut self,
        predecessor: &Arc<OwnedNode>,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let me = Arc::clone(&self.registration.0);
        match predecessor.add_successor(&me) {
            Ok(()) => {
                let who = || node_data::shown(predecessor.data());
                debug!(
                    path = me.path(),
                    behind = predecessor.name(),
                    who = who(),
                    ahead = me.ahead(),
                    "waiting in line"
                );
            }
            // Its delete was sent without a check of this node, be it as that of the head: a list tells.
            Err(_) => {
                self.advance_local_predecessor();
                return Ok(());
            }
        }
        let session = self.session().clone();
        // Who does not wait for long is told by the one in front.
        let mut own_watch_due = Some(self.own_watch_due());
        let (mut my_watch, mut predecessor_watch) = (None, None);
        loop {
            let asked_on = session.connection();
            // One timer for both: what is due, and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            let wake = tokio::select! {
                biased;
                // The end of the session is the node's end, too.
                wake = me.local_wake() => Some(wake),
                // What was written, and is there, is watched again.
                () = fired(&mut my_watch) => {
                    my_watch = None;
                    own_watch_due = Some(session.now());
                    continue;
                }
                () = fired(&mut predecessor_watch) => {
                    predecessor_watch = None;
                    if session.check_predecessor(predecessor) {
                        own_watch_due = Some(session.now());
                    }
                    continue;
                }
                () = session.reconnected(asked_on) => {
                    me.forget_watch();
                    own_watch_due = Some(session.now());
                    None
                }
                () = limit.passed() => {
                    if deadline.has_passed() {
                        return Err(still_behind(predecessor, &me, deadline).into());
                    }
                    if own_watch_due.take().is_none() {
                        let (who, waited) = (node_data::shown(predecessor.data()), deadline.waited());
                        info!(path = me.path(), behind = predecessor.name(), who, ?waited, "still waiting in line");
                    }
                    None
                }
            };
            match wake {
                Some(Ok(LocalWake::Head)) => {
                    self.state = QueueState::Held;
                    return Ok(());
                }
                Some(Ok(LocalWake::Recheck)) => {
                    self.advance_local_predecessor();
                    return Ok(());
                }
                Some(Err(_)) => {
                    return Err(match session.loss() {
                        Some(LossReason::Closed) => Error::Closed.into(),
                        Some(_) => StepError::Restart,
                        None => self.deleted(),
                    });
                }
                None if own_watch_due.is_none() => {
                    let own_watch = self.ask_own_watch();
                    Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
                    my_watch = me.watch();
                    predecessor_watch = Box::pin(session.watch_predecessor(predecessor, deadline)).await;
                }
                None => {}
            }
        }
    }

    /// The one in front is gone: a list tells what is left. As long as a writer has others of this session in front, it
    /// waits for those first.
    fn advance_local_predecessor(&mut self) {
        let sequence_key =
            self.registration.0.sequence_key().filter(|sequence_key| sequence_key.kind == Kind::Write);
        let predecessor =
            sequence_key.and_then(|sequence_key| self.session().owned_node_before(sequence_key));
        let name = predecessor.and_then(|predecessor| NodeName::parse(predecessor.name()));
        self.state =
            name.map_or(QueueState::Unknown, |name| QueueState::Waiting(Predecessors::behind(name, 1, None)));
    }

    /// Who waits for long wants to know if its own node goes.
    pub(super) fn own_watch_due(&self) -> BootInstant {
        let session = self.session();
        session.now().after(session.timeout() / 40)
    }
}

/// Resolves when the watch, if there is one, has told.
async fn fired(watch: &mut Option<SharedWatch>) {
    match watch {
        Some(watch) => drop(watch.await),
        None => std::future::pending().await,
    }
}

fn still_behind(predecessor: &OwnedNode, me: &OwnedNode, deadline: Deadline) -> Error {
    let (behind, who) = (predecessor.name().to_owned(), node_data::shown(predecessor.data()));
    let directory = me.sequence_key().map_or_else(|| me.path(), |sequence_key| &sequence_key.directory);
    timeout_error(deadline, directory, Phase::InLine { behind, who, ahead: me.ahead() })
}
