//! The wait in line, for a watch: behind a node of another session, or where not everyone waits for everyone in front.

use std::sync::Arc;

use parking_lot::Mutex;
use tracing::{debug, info};

use super::lock_queue::LockQueue;
use super::pending_watch::PendingWatch;
use super::predecessors::OnDeleted;
use super::queued_node::{QueueState, QueuedNode};
use super::step_error::{StepError, queued_timeout, time_left};
use crate::config::limits::LONG_WAIT;
use crate::error::{Operation, Phase, Refusal};
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::{Watch, WatchEvent, WireError};
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
    /// Who has two or more in front waits for the last but one of them. When that goes, the last one is likely to have
    /// become the head: the line is read again, and the watch set that tells the turn, while nobody waits for it. Who has
    /// something [to look at](super::Read) when the turn comes reads the line in the same go, and waits for the nearest.
    pub(super) async fn wait_remote(
        &mut self,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let QueueState::Waiting(predecessors) = &self.state else {
            return Ok(());
        };
        let (predecessor, ahead) = (predecessors.predecessor().clone(), predecessors.ahead());
        let reads_anyway = !queue.reads().is_empty();
        let second_predecessor =
            predecessors.second_predecessor().filter(|_| queue.is_exclusive() && !reads_anyway).cloned();
        let watched = second_predecessor.as_ref().unwrap_or(&predecessor);
        let tells = predecessors.without_predecessor(queue.rule(), self.session().connection());
        let is_told_by_event = second_predecessor.is_none() && !reads_anyway && tells == OnDeleted::Held;
        let path = queue.directory().listed_child(watched.as_str());
        let early_watch = self.early_watch.take().filter(|pending| pending.path == path);
        let Some(mut pending) = early_watch.map(|pending| *pending).or_else(|| self.ask_watch(path.clone()))
        else {
            return Box::pin(self.poll_instead(&path, queue, deadline)).await;
        };
        let own_watch = if is_told_by_event { self.ask_own_watch() } else { None };
        let answer = self.session().clone().await_reply(pending.reply.get_mut(), deadline).await;
        Box::pin(self.keep_own_watch(own_watch, deadline)).await?;
        let (who, watch) = match answer {
            Ok((data, _, watch)) => (node_data::shown(&data), watch),
            Err(WireError::Refused(Refusal::NoNode)) => {
                return Box::pin(self.on_predecessor_deleted(
                    &predecessor,
                    second_predecessor.is_some(),
                    queue,
                    deadline,
                ))
                .await;
            }
            // Without an answer there is no watch either: judge anew.
            Err(error) => {
                return Box::pin(self.retry_after(&error, Operation::Read, &path, deadline)).await;
            }
        };
        debug!(path = self.registration.0.path(), behind = %watched, who, ahead, "waiting in line");
        let PendingWatch { room: _room, connection, .. } = pending;
        match self.sleep(watched, &who, watch, connection, deadline).await? {
            // Server order delivers the end of our own node first, if it came first.
            _ if self.registration.0.check().is_err() => Err(self.deleted()),
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
            // The client sets its watches again by itself, but says nothing when the server refuses that.
            WakeReason::Reconnected => {
                self.registration.0.forget_watch();
                Ok(())
            }
            WakeReason::Myself => Err(self.deleted()),
            WakeReason::SessionOver => Err(self.session().loss().map_or(StepError::Restart, StepError::from)),
            WakeReason::Time => {
                Err(queued_timeout(deadline, queue.directory().as_str(), watched.as_str(), who, ahead))
            }
        }
    }

    /// Waits for the node that `watch` watches. Who waits for long wants to know if its own node goes.
    async fn sleep(
        &mut self,
        behind: &NodeName,
        who: &str,
        mut watch: Watch,
        asked_on: Option<u64>,
        deadline: Deadline,
    ) -> Result<WakeReason, StepError> {
        let session = self.session().clone();
        let me = Arc::clone(&self.registration.0);
        let mut reconnected = std::pin::pin!(session.reconnected(asked_on));
        let mut own_watch_due = (!me.has_watch()).then(|| self.own_watch_due());
        loop {
            // One timer for both: what is due, and the deadline.
            let limit = deadline.or_after(own_watch_due.map_or(LONG_WAIT, |due| due.since(session.now())));
            tokio::select! {
                biased;
                // The end of the session is the node's end, too.
                _ = me.lost() => {
                    return Ok(if session.loss().is_some() { WakeReason::SessionOver } else { WakeReason::Myself });
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
                        let waited = deadline.waited();
                        info!(path = me.path(), %behind, who, ?waited, "still waiting in line");
                    }
                }
            }
        }
    }

    /// The node that was waited for is gone: the nearest blocker, or the one before it.
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

    /// Only the nearest is likely to be left: reads the line, and asks in the same go for the watches with which its
    /// going grants without a read.
    async fn arm_final_watch(
        &mut self,
        predecessor: &NodeName,
        queue: &LockQueue,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let session = self.session().clone();
        let (directory, connection) = (queue.directory(), session.connection());
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

    /// No room for another watch: looks at the blocker now and then, and reads the line only once it is gone.
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
            time_left(deadline, queue.directory().as_str(), Phase::Answer)?;
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
        let session = self.session();
        let room = session.watch_budget().reserve(&path)?;
        let connection = session.connection();
        let reply = Mutex::new(session.read(|wire| wire.watch_data(&path)));
        Some(PendingWatch { reply, room, connection, path })
    }

    /// Asks for a watch on our own node, unless there is one.
    pub(super) fn ask_own_watch(&self) -> Option<PendingWatch> {
        let (node, session) = (&self.registration.0, self.session());
        if node.has_watch() {
            return None;
        }
        let path = node.path().to_owned();
        let room = session.watch_budget().reserve_spare(&path)?;
        let connection = session.connection();
        let reply = Mutex::new(session.read(|wire| wire.watch_data(&path)));
        Some(PendingWatch { reply, room, connection, path })
    }

    pub(super) async fn keep_own_watch(
        &mut self,
        pending: Option<PendingWatch>,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let Some(PendingWatch { mut reply, room, .. }) = pending else {
            return Ok(());
        };
        match self.session().await_reply(reply.get_mut(), deadline).await {
            Ok((_, _, watch)) => {
                self.registration.0.set_watch(watch, room);
                Ok(())
            }
            Err(WireError::Refused(Refusal::NoNode)) => Err(self.deleted()),
            // Without it, no grant without a list.
            Err(_) => Ok(()),
        }
    }
}
