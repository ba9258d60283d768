//! The wait for a watch: behind a node of another session, or in a queue where not all contenders exclude
//! each other.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{debug, warn};

use super::lock_queue::LockQueue;
use super::long_wait::log_long_wait;
use super::predecessors::OnDeleted;
use super::queued_node::{PendingWatch, QueueState, QueuedNode};
use super::step_error::{StepError, queued_timeout, time_left};
use crate::config::limits::LONG_WAIT;
use crate::error::{Operation, Phase, Refusal};
use crate::session::{NodeWatch, Reservation};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Stat, WatchEvent, WireError};
use crate::znode::name::NodeName;
use crate::znode::node_data;

/// What ended a wait.
enum WakeReason {
    Blocker(WatchEvent),
    Myself,
    SessionOver,
    Reconnected,
    Time,
}

impl QueuedNode {
    /// Waits for a watch.
    ///
    /// A waiter with two or more contenders ahead watches the second predecessor first. When that node is
    /// deleted, the predecessor is likely to be the head. Then the waiter lists, and sets its final watch
    /// while the head still holds. A waiter with [reads](crate::Read) for its grant lists in any case, so it
    /// watches its predecessor at once.
    pub(super) async fn wait_remote(
        &mut self,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let QueueState::Waiting(predecessors) = &self.state else { return Ok(()) };
        let (predecessor, ahead) = (predecessors.predecessor().clone(), predecessors.ahead());
        let reads_anyway = !queue.reads().is_empty();
        let second_predecessor =
            predecessors.second_predecessor().filter(|_| queue.is_exclusive() && !reads_anyway).cloned();
        let watched = second_predecessor.as_ref().unwrap_or(&predecessor);
        let on_deleted = predecessors.without_predecessor(queue.rule(), self.session().connection());
        let deletion_grants = second_predecessor.is_none() && !reads_anyway && on_deleted == OnDeleted::Held;
        let path = queue.full_directory().listed_child(watched.as_str());
        let early_watch = self.early_watch.take().filter(|pending| pending.path == path);
        let Some(mut pending) = early_watch.map(|pending| *pending).or_else(|| self.ask_watch(path.clone()))
        else {
            return Box::pin(self.poll_instead(&path, queue, deadline)).await;
        };
        let own_watch = if deletion_grants { self.ask_own_watch() } else { None };
        let answer = self.session().clone().await_reply(pending.reply.get_mut(), deadline).await;
        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
        let (owner, watch) = match answer {
            Ok((data, stat, watch)) => (self.owner_ahead(watched, &data, &stat), watch),
            Err(WireError::Refused(Refusal::NoNode)) => {
                return Box::pin(self.on_predecessor_deleted(
                    &predecessor,
                    second_predecessor.is_some(),
                    queue,
                    deadline,
                ))
                .await;
            }
            // Without an answer there is no watch: the waiter lists.
            Err(error) => {
                return Box::pin(self.retry_after(&error, Operation::Read, &path, deadline)).await;
            }
        };
        debug!(
            path = self.registration.0.path(), predecessor = %watched, owner, ahead, "waiting in the queue"
        );
        match self.sleep(queue, watched, &owner, watch, pending.connection, deadline).await? {
            // The server sends the event of the own node first, if that node was deleted first.
            _ if self.registration.0.settle().is_err() => Err(self.deleted()),
            WakeReason::Blocker(WatchEvent::Deleted) => {
                Box::pin(self.on_predecessor_deleted(
                    &predecessor,
                    second_predecessor.is_some(),
                    queue,
                    deadline,
                ))
                .await
            }
            WakeReason::Blocker(_) => {
                self.state = QueueState::Unknown;
                Ok(())
            }
            // The client sets its watches again after a reconnect, but does not report a refusal.
            WakeReason::Reconnected => {
                self.registration.0.forget_watch();
                Ok(())
            }
            WakeReason::Myself => Err(self.deleted()),
            WakeReason::SessionOver => Err(self.session().loss().map_or(StepError::Restart, StepError::from)),
            WakeReason::Time => Err(queued_timeout(deadline, queue, watched.as_str(), owner, ahead)),
        }
    }

    /// Who owns the node ahead, for messages. No crash removes a node that belongs to no session.
    fn owner_ahead(&self, ahead: &NodeName, data: &[u8], stat: &Stat) -> String {
        if stat.ephemeral_owner == 0 {
            let path = self.registration.0.path();
            warn!(path, predecessor = %ahead, "the node ahead belongs to no session: delete it");
        }
        node_data::shown_with_owner(data, stat.ephemeral_owner)
    }

    /// Waits for an event of `watch`. A long waiter also watches its own node, to notice when it is deleted.
    async fn sleep(
        &mut self,
        queue: &LockQueue,
        predecessor: &NodeName,
        owner: &str,
        mut watch: NodeWatch,
        asked_on: Option<u64>,
        deadline: Deadline,
    ) -> Result<WakeReason, StepError> {
        let session = self.session().clone();
        let me = Arc::clone(&self.registration.0);
        let mut reconnected = std::pin::pin!(session.reconnected(asked_on));
        let mut own_watch_due = (!me.has_watch()).then(|| self.own_watch_due());
        loop {
            // One timer for the own watch and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            tokio::select! {
                biased;
                // The node ends with its session.
                _ = me.lost() => {
                    let is_over = session.loss().is_some();
                    return Ok(if is_over { WakeReason::SessionOver } else { WakeReason::Myself });
                }
                event = &mut watch => return Ok(WakeReason::Blocker(event)),
                () = &mut reconnected => return Ok(WakeReason::Reconnected),
                () = limit.passed() => {
                    if deadline.has_passed() {
                        return Ok(WakeReason::Time);
                    }
                    if own_watch_due.take().is_some() {
                        let own_watch = self.ask_own_watch();
                        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
                    } else {
                        log_long_wait(queue, me.path(), predecessor.as_str(), owner, deadline);
                    }
                }
            }
        }
    }

    /// The watched node was deleted: the predecessor, or the second predecessor.
    async fn on_predecessor_deleted(
        &mut self,
        predecessor: &NodeName,
        is_second: bool,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        if is_second {
            return self.arm_final_watch(predecessor, queue, deadline).await;
        }
        let can_see_own_node = self.registration.0.has_watch();
        let connection = self.session().connection();
        let QueueState::Waiting(predecessors) = &self.state else {
            return Ok(());
        };
        self.state = match predecessors.without_predecessor(queue.rule(), connection) {
            OnDeleted::Held if can_see_own_node => QueueState::Held,
            OnDeleted::Held | OnDeleted::List => QueueState::Unknown,
        };
        Ok(())
    }

    /// Only the predecessor is likely to be left. Lists, and requests in the same round trip the watches that
    /// make its delete a grant without a read.
    async fn arm_final_watch(
        &mut self,
        predecessor: &NodeName,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let session = self.session().clone();
        let (directory, connection) = (queue.full_directory(), session.connection());
        let mut list = session.read(|wire| wire.children(directory.as_str()));
        let pending = self.ask_watch(directory.listed_child(predecessor.as_str()));
        let own_watch = self.ask_own_watch();
        let listed = session.await_reply(&mut list, deadline).await;
        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
        self.state = QueueState::Unknown;
        match listed {
            Ok(children) => {
                self.judge(&children, connection, queue, deadline).await?;
                self.early_watch = pending.map(Box::new);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(StepError::Restart),
            Err(error) => self.retry_after(&error, Operation::List, directory.as_str(), deadline).await,
        }
    }

    /// The watch budget is used up: polls the predecessor, and lists only when it is deleted.
    async fn poll_instead(
        &mut self,
        blocker: &str,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let timeout = self.session().timeout();
        let mut wait = fractions::predecessor_poll_min(timeout);
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep(wait) => {}
                _ = self.registration.0.lost() => return Err(StepError::Restart),
                () = deadline.passed() => {}
            }
            time_left(deadline, queue.full_directory().as_str(), Phase::Answer)?;
            let mut reply = self.session().read(|wire| wire.exists(blocker));
            match self.session().await_reply(&mut reply, deadline).await {
                Ok(Some(_)) => wait = (wait * 2).min(fractions::predecessor_poll_max(timeout)),
                Ok(None) => {
                    self.state = QueueState::Unknown;
                    return Ok(());
                }
                Err(error) => return self.retry_after(&error, Operation::Read, blocker, deadline).await,
            }
        }
    }

    fn ask_watch(&self, path: String) -> Option<PendingWatch> {
        let room = self.session().watch_budget().reserve(&path)?;
        Some(self.send_watch(path, room))
    }

    /// Requests a watch on the own node, unless there is one.
    pub(super) fn ask_own_watch(&self) -> Option<PendingWatch> {
        let (node, session) = (&self.registration.0, self.session());
        if node.has_watch() {
            return None;
        }
        let path = node.path().to_owned();
        let room = session.watch_budget().reserve_spare(&path)?;
        Some(self.send_watch(path, room))
    }

    fn send_watch(&self, path: String, room: Reservation) -> PendingWatch {
        let connection = self.session().connection();
        let reply = Mutex::new(self.session().watch_data(&path, room));
        PendingWatch { reply, connection, path }
    }

    pub(super) async fn keep_own_watch(
        &mut self,
        pending: Option<PendingWatch>,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let Some(mut pending) = pending else { return Ok(()) };
        match self.session().await_reply(pending.reply.get_mut(), deadline).await {
            Ok((_, _, watch)) => {
                self.registration.0.set_watch(watch);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(self.deleted()),
            // Without this watch, only a list grants.
            Err(_) => Ok(()),
        }
    }
}
