//! Taking a place in a line: one round trip when all goes well, and no node forgotten when it does not.

use tracing::{debug, warn};

use super::create_guard::{CreateGuard, NodeGuard};
use super::directory::{ParentLifetime, make_directory};
use super::fast_path::FastPath;
use super::local_queues::PendingCreate;
use super::prefetch::Prefetch;
use super::queued_node::{QueueState, QueuedNode};
use super::rule::ContenderKind;
use super::step_error::{StepError, backoff, time_left, timeout_error};
use super::ticket::Ticket;
use crate::config::limits::DIRECTORIES_MAX;
use crate::error::{Error, LossReason, Operation, Outcome, Phase, Refusal};
use crate::session::{Session, janitor};
use crate::time::deadline::Deadline;
use crate::wire::{Stat, WireError};

impl Ticket {
    /// Creates a node and looks at the line, in one go.
    pub(super) async fn create_node(&mut self, deadline: Deadline) -> Result<Box<QueuedNode>, StepError> {
        let directory = self.queue.directory().clone();
        let session = self.queue.manager().session_for_acquire(deadline, directory.as_str()).await?;
        session.mark_used();
        self.unresolved_creates.retain(|(of, _)| of.epoch() == session.epoch());
        let mut directories_made = 0;
        loop {
            let connection = session.connection();
            let send = || CreateGuard::send(&session, &directory, self.queue.label(), self.queue.data());
            let (mut create, pending_create) = match self.fast_path_kind_now().zip(connection) {
                Some((kind, connection)) => {
                    let (create, pending) =
                        PendingCreate::send(&session, directory.as_str(), kind, connection, send);
                    (create, Some(pending))
                }
                None => (send(), None),
            };
            let fast_path = pending_create.as_ref().map_or(FastPath::Unknown, PendingCreate::fast_path);
            let list = || session.read(|wire| wire.children(directory.as_str()));
            let list = (!fast_path.skips_list()).then(list);
            // Behind the list: if that grants the place, what is seen here is seen under the hold.
            let prefetched = || Box::new(Prefetch::send(self.queue.reads(), &session, connection));
            let prefetched = fast_path.may_grant_at_once().then(prefetched);
            let (node_guard, stat) = match create.wait_created(deadline).await {
                Ok(made) => made,
                Err(error @ WireError::Refused(Refusal::NoNode)) => {
                    if directories_made == DIRECTORIES_MAX {
                        return Err(
                            Error::of_wire(Operation::Create, directory.as_str(), &error, deadline).into()
                        );
                    }
                    directories_made += 1;
                    Box::pin(self.make_directory(&session, deadline)).await?;
                    continue;
                }
                Err(error) => {
                    match Box::pin(self.after_failed_create(&session, &mut create, error, deadline)).await? {
                        // The list that was sent with it may have been read before it was there: another is asked for.
                        Some((node_guard, stat)) => {
                            return Ok(Box::new(QueuedNode::new(
                                &session,
                                node_guard,
                                &self.queue,
                                stat,
                                None,
                            )));
                        }
                        None => continue,
                    }
                }
            };
            let mut queued_node =
                Box::new(QueuedNode::new(&session, node_guard, &self.queue, stat, connection));
            pending_create.iter().for_each(PendingCreate::mark_created);
            let Some(mut list) = list else {
                queued_node.judge_by_sequence(pending_create, prefetched, connection, deadline).await;
                return Ok(queued_node);
            };
            // If the list does not come, another is asked for.
            if let Ok(children) = session.await_reply(&mut list, deadline).await {
                self.delete_late_creates(&queued_node, &children);
                let is_told = queued_node.judge(&children, connection, &self.queue, deadline).await?;
                let is_held = matches!(queued_node.state, QueueState::Held);
                queued_node.prefetched = prefetched.filter(|_| is_told && is_held);
                pending_create.iter().for_each(|pending_create| pending_create.record_list(!is_held));
            }
            if matches!(queued_node.state, QueueState::Unknown) {
                queued_node.judge_by_sequence(pending_create, None, connection, deadline).await;
            } else if let (Some(pending_create), Some(entry)) = (pending_create, queued_node.entry()) {
                // A grant does not wait for the numbers of others.
                if !matches!(queued_node.state, QueueState::Held) {
                    pending_create.await_predecessor(entry, deadline).await;
                }
                pending_create.judged_by_list(entry);
            }
            return Ok(queued_node);
        }
    }

    /// Its kind, if its place may be judged by its number alone: there is nothing that only a list would show.
    fn fast_path_kind_now(&self) -> Option<ContenderKind> {
        self.queue.fast_path_kind().filter(|_| self.unresolved_creates.is_empty())
    }

    /// Deletes what an earlier attempt of this ticket turned out to have made after all.
    pub(super) fn delete_late_creates(&mut self, queued_node: &QueuedNode, children: &[String]) {
        let directory = self.queue.directory();
        for (session, create_id) in self.unresolved_creates.drain(..) {
            if let Some(child) =
                create_id.find(children).filter(|child| child.as_str() != queued_node.node_guard.name())
            {
                warn!(child, "a create without an answer took place after all; deleting its node");
                session.janitor().delete(&session, &directory.listed_child(child));
            }
        }
    }

    /// A create failed: says no, looks for its node, or asks for another try (`None`).
    async fn after_failed_create(
        &mut self,
        session: &Session,
        create: &mut CreateGuard,
        error: WireError,
        deadline: Deadline,
    ) -> Result<Option<(NodeGuard, Option<Stat>)>, StepError> {
        let path = self.queue.directory().as_str();
        match error {
            WireError::SessionEnded(LossReason::Closed) => Err(Error::Closed.into()),
            WireError::SessionEnded(_) => Err(StepError::Restart),
            WireError::Refused(refusal) if refusal.is_transient() => {
                backoff(session, deadline).await;
                time_left(deadline, path, Phase::Answer)?;
                Ok(None)
            }
            error if error.outcome() == Outcome::NotApplied => {
                Err(Error::of_wire(Operation::Create, path, &error, deadline).into())
            }
            WireError::Timeout => {
                time_left(deadline, path, Phase::Answer)?;
                // It may stand, or come to stand: the next list looks for it, and so does the janitor.
                self.unresolved_creates.push((session.clone(), create.create_id()));
                Err(StepError::Restart)
            }
            error => {
                debug!(path, %error, "a create without an answer; looking for its node");
                self.resolve_lost_create(session, create, deadline).await
            }
        }
    }

    /// Looks for the node of a create whose answer was lost.
    async fn resolve_lost_create(
        &mut self,
        session: &Session,
        create: &mut CreateGuard,
        deadline: Deadline,
    ) -> Result<Option<(NodeGuard, Option<Stat>)>, StepError> {
        let directory = self.queue.directory().clone();
        let find = janitor::find(session, &directory, create.create_id());
        let found = tokio::select! {
            biased;
            found = find => found,
            () = deadline.passed() => return Err(timeout_error(deadline, directory.as_str(), Phase::Answer).into()),
        };
        if session.loss().is_some() {
            return Err(StepError::Restart);
        }
        let Some(path) = found else {
            // Provisional: the list behind the next create looks again, and so does the janitor, later.
            self.unresolved_creates.push((session.clone(), create.create_id()));
            return Ok(None);
        };
        let mut reply = session.read(|wire| wire.data(&path));
        match session.await_reply(&mut reply, deadline).await {
            Ok((_, stat)) => {
                // A node of another session is not ours, whatever its name says.
                session.check_owner(&path, &stat).map_err(|_| StepError::Restart)?;
                Ok(Some((create.found(path), Some(stat))))
            }
            // Dropping the claim leaves it to the janitor.
            _ => {
                time_left(deadline, directory.as_str(), Phase::Answer)?;
                Err(StepError::Restart)
            }
        }
    }

    /// Makes the line's directory, and what is missing above it.
    async fn make_directory(&self, session: &Session, deadline: Deadline) -> Result<(), StepError> {
        make_directory(session, self.queue.directory(), ParentLifetime::WhileUsed, deadline).await.map_err(
            |error| {
                match error {
                    WireError::SessionEnded(LossReason::Closed) => Error::Closed.into(),
                    WireError::SessionEnded(_) => StepError::Restart,
                    // The create that follows meets it again, and rests then.
                    WireError::Refused(refusal) if refusal.is_transient() => StepError::Restart,
                    error if error.outcome() == Outcome::NotApplied => {
                        Error::of_wire(Operation::Create, self.queue.directory().as_str(), &error, deadline)
                            .into()
                    }
                    // Making a directory twice does no harm: try again until the time is up.
                    _ if deadline.has_passed() => {
                        timeout_error(deadline, self.queue.directory().as_str(), Phase::Answer).into()
                    }
                    _ => StepError::Restart,
                }
            },
        )
    }
}
