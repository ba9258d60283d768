//! Enqueueing: one round trip if nothing fails, and no node is left behind if something does.

use tracing::{debug, warn};

use super::lost_create::{FoundNode, LostCreates, guard_node, resolve_lost_create};
use super::queued_node::{QueueState, QueuedNode};
use super::step_error::{StepError, time_left};
use super::ticket::Ticket;
use crate::config::limits::DIRECTORIES_MAX;
use crate::error::{Error, Operation, Phase, Refusal};
use crate::hold::Prefetch;
use crate::local::PendingCreate;
use crate::local::decide::ContenderKind;
use crate::session::{Session, janitor, make_queue_directory};
use crate::time::deadline::Deadline;
use crate::wire::{Created, Reply, WireError};

/// The requests that were sent with a create, over the connection of that moment.
struct SentWithCreate {
    list: Option<Reply<Vec<String>>>,
    prefetched: Option<Box<Prefetch>>,
    connection: Option<u64>,
}

impl Ticket {
    /// Creates a node, and lists the queue in the same round trip.
    pub(super) async fn create_node(&mut self, deadline: Deadline) -> Result<Box<QueuedNode>, StepError> {
        let directory = self.queue.full_directory().clone();
        let session = self.queue.manager().session_for_acquire(deadline, directory.as_str()).await?;
        session.mark_used();
        self.unresolved_creates.retain(|(of, _)| of.epoch() == session.epoch());
        let (mut directories_made, mut lost_creates) = (0, LostCreates::default());
        loop {
            let connection = session.connection();
            let (label, data, kind) = (self.queue.label(), self.queue.data(), self.predicted_kind_now());
            let mut create = PendingCreate::send(&session, &directory, label, data, kind, connection);
            let prediction = create.prediction();
            let list = || session.read(|wire| wire.children(directory.as_str()));
            let list = (!prediction.skips_list()).then(list);
            // Sent behind the list: if that grants, the answers to these reads were read under the hold.
            let prefetched = || Box::new(Prefetch::send(self.queue.reads(), &session, connection));
            let prefetched = prediction.may_grant_at_once().then(prefetched);
            let (node_guard, stat) = match create.wait_created(deadline).await {
                Ok(Created { path, stat }) => (guard_node(&session, &mut create, path), stat),
                Err(error @ WireError::Refused(Refusal::NoNode)) => {
                    if directories_made == DIRECTORIES_MAX {
                        return Err(
                            Error::of_wire(Operation::Create, directory.as_str(), &error, deadline).into()
                        );
                    }
                    directories_made += 1;
                    Box::pin(make_queue_directory(
                        &session,
                        &directory,
                        self.queue.directory_lifetime(),
                        deadline,
                    ))
                    .await?;
                    continue;
                }
                Err(error) => {
                    let lost = &mut lost_creates;
                    match Box::pin(self.after_failed_create(&session, &mut create, error, lost, deadline))
                        .await?
                    {
                        // The list may be older than the node: the wait lists again.
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
            let queued_node = Box::new(QueuedNode::new(&session, node_guard, &self.queue, stat, connection));
            let sent = SentWithCreate { list, prefetched, connection };
            return self.judge_created(queued_node, create, sent, deadline).await;
        }
    }

    /// Judges a created node by its sequence number, or by the list that was sent with the create.
    async fn judge_created(
        &mut self,
        mut queued_node: Box<QueuedNode>,
        mut create: PendingCreate,
        sent: SentWithCreate,
        deadline: Deadline,
    ) -> Result<Box<QueuedNode>, StepError> {
        let SentWithCreate { list, prefetched, connection } = sent;
        create.mark_created();
        let Some(mut list) = list else {
            queued_node.judge_by_sequence(create, prefetched, connection, deadline).await;
            return Ok(queued_node);
        };
        // Without this list, the wait lists again.
        if let Ok(children) = queued_node.session().await_reply(&mut list, deadline).await {
            self.delete_late_creates(&queued_node, &children);
            let decided_by_list_alone =
                queued_node.judge(&children, connection, &self.queue, deadline).await?;
            let is_held = matches!(queued_node.state, QueueState::Held);
            queued_node.prefetched = prefetched.filter(|_| decided_by_list_alone && is_held);
            create.record_list(!is_held);
        }
        if matches!(queued_node.state, QueueState::Unknown) {
            queued_node.judge_by_sequence(create, None, connection, deadline).await;
        } else if let Some(entry) = queued_node.entry() {
            // A grant does not wait for the sequence numbers of others.
            if !matches!(queued_node.state, QueueState::Held) {
                create.await_predecessor(entry, deadline).await;
            }
            create.judged_by_list(entry);
        }
        Ok(queued_node)
    }

    /// The kind of the contender if its sequence number alone may decide: there is nothing that only a list
    /// would show.
    fn predicted_kind_now(&self) -> Option<ContenderKind> {
        self.queue.predicted_kind().filter(|_| self.unresolved_creates.is_empty())
    }

    /// Deletes the nodes of this ticket's earlier attempts that a list shows after all.
    pub(super) fn delete_late_creates(&mut self, queued_node: &QueuedNode, children: &[String]) {
        let directory = self.queue.full_directory();
        for (session, create_id) in self.unresolved_creates.drain(..) {
            if let Some(child) =
                create_id.find(children).filter(|child| child.as_str() != queued_node.node_guard.name())
            {
                warn!(child, "a create without an answer was executed after all; deleting its node");
                janitor::delete(&session, &directory.listed_child(child));
            }
        }
    }

    /// A create failed. Returns its node if the search for it finds it, and `None` if another create is due.
    async fn after_failed_create(
        &mut self,
        session: &Session,
        create: &mut PendingCreate,
        error: WireError,
        lost_creates: &mut LostCreates,
        deadline: Deadline,
    ) -> Result<Option<FoundNode>, StepError> {
        let directory = self.queue.full_directory();
        match &error {
            WireError::SessionEnded(_) | WireError::Refused(_) => {
                session.retry_after(&error, Operation::Create, directory.as_str(), deadline).await?;
                return Ok(None);
            }
            WireError::Timeout => {
                time_left(deadline, directory.as_str(), Phase::Answer)?;
                // The node may exist now or later: the next list shows it, and the janitor searches for it.
                self.unresolved_creates.push((session.clone(), create.create_id()));
                return Err(StepError::Restart);
            }
            error => debug!(path = %directory, %error, "a create without an answer; searching for its node"),
        }
        let found = resolve_lost_create(session, directory, create, deadline).await?;
        if found.is_none() {
            // Not final: the list behind the next create shows the node, and the janitor searches again
            // later.
            self.unresolved_creates.push((session.clone(), create.create_id()));
            lost_creates.add(session, directory.as_str(), &error, deadline).await?;
        }
        Ok(found)
    }
}
