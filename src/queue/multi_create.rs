//! The creates of a multi-queue: one node in each queue, by one transaction.

use parking_lot::Mutex;
use tracing::debug;

use super::lost_create::{FoundNode, LostCreates, guard_node, resolve_lost_create};
use super::multi_queue::MultiQueue;
use super::queued_node::{QueuedNode, czxid};
use super::step_error::StepError;
use super::ticket::Ticket;
use crate::config::limits::{self, DIRECTORIES_MAX};
use crate::error::{Error, Operation, Outcome, Refusal};
use crate::hold::Prefetch;
use crate::local::{LocalQueues, PendingCreate};
use crate::session::{Session, make_queue_directory};
use crate::time::deadline::Deadline;
use crate::wire::{Created, MultiError, Reply, Stat, WireError, WriteOp, WriteResult};
use crate::znode::name::NodeName;

/// A read of a node that the transaction before it is expected to create.
struct Early {
    path: String,
    // The lock only makes it possible to share a ticket between threads.
    reply: Mutex<Reply<Option<Stat>>>,
}

impl MultiQueue {
    /// Creates all nodes by one transaction, and lists all queues.
    pub(super) async fn create_nodes(
        &self,
        tickets: &mut [Ticket],
        deadline: Deadline,
    ) -> Result<(), StepError> {
        limits::check(
            self.queues.iter().map(|queue| queue.data().len() + queue.full_directory().as_str().len()).sum(),
        )
        .map_err(Error::Config)?;
        let session = self.manager.session_for_acquire(deadline, self.first_directory()).await?;
        session.mark_used();
        for ticket in &mut *tickets {
            ticket.unresolved_creates.retain(|(of, _)| of.epoch() == session.epoch());
        }
        let directories: Vec<String> =
            self.queues.iter().map(|queue| queue.full_directory().to_string()).collect();
        let (mut directories_made, mut lost_creates) = (0, LostCreates::default());
        loop {
            let connection = session.connection();
            let (mut creates_in_flight, creates): (Vec<PendingCreate>, Vec<WriteOp>) = self
                .queues
                .iter()
                .map(|queue| {
                    PendingCreate::in_multi(&session, queue.full_directory(), queue.label(), queue.data())
                })
                .unzip();
            let mut made = session.send_multi(&creates);
            let early = self.ask_early(&session, &creates);
            let mut lists = session.read(|wire| wire.children_of_all(&directories));
            // Sent behind the lists: if those grant, the answers to these reads were read under the hold.
            let prefetches: Vec<Prefetch> =
                self.queues.iter().map(|queue| Prefetch::send(queue.reads(), &session, connection)).collect();
            let made = session.await_reply(&mut made, deadline).await.map_err(MultiError::Request);
            let node_guards = match made.and_then(|committed| committed) {
                Ok(results) => Self::guards_of(&session, &mut creates_in_flight, results)?,
                Err(MultiError::Operation { index, refusal }) => {
                    creates_in_flight.iter_mut().for_each(PendingCreate::settle);
                    if refusal != Refusal::NoNode || directories_made == DIRECTORIES_MAX {
                        return Err(self.refused(index, refusal, deadline).into());
                    }
                    directories_made += 1;
                    let there = session.await_reply(&mut lists, deadline).await.unwrap_or_default();
                    self.make_directories(&session, &there, deadline).await?;
                    continue;
                }
                Err(MultiError::Request(error)) => {
                    let (sent, lost) = (&mut creates_in_flight, &mut lost_creates);
                    match self.after_failed_creates(&session, tickets, sent, error, lost, deadline).await? {
                        // The lists may be older than the nodes: the wait lists again.
                        Some(found) => {
                            Self::set_nodes(tickets, &session, found, None);
                            return Ok(());
                        }
                        None => continue,
                    }
                }
            };
            let lists = session.await_reply(&mut lists, deadline).await;
            Self::set_nodes(tickets, &session, node_guards, connection);
            Self::use_early_czxid(tickets, early, deadline).await;
            // Without these lists, the wait lists again.
            for ((ticket, list), prefetched) in
                tickets.iter_mut().zip(lists.unwrap_or_default()).zip(prefetches)
            {
                let list = list.ok_or(StepError::Restart)?;
                ticket.judge(&list, connection, prefetched, deadline).await?;
            }
            return Ok(());
        }
    }

    fn first_directory(&self) -> &str {
        self.queues.first().map(|queue| queue.full_directory().as_str()).unwrap_or_default()
    }

    /// The server refused the create in the queue with this index.
    fn refused(&self, index: usize, refusal: Refusal, deadline: Deadline) -> Error {
        let directory = self
            .queues
            .get(index)
            .map_or_else(|| self.first_directory(), |queue| queue.full_directory().as_str());
        Error::of_wire(Operation::Create, directory, &WireError::Refused(refusal), deadline)
    }

    /// `connection` is the one before the transaction was sent, unless the nodes were only found.
    fn set_nodes(tickets: &mut [Ticket], session: &Session, nodes: Vec<FoundNode>, connection: Option<u64>) {
        for (ticket, (node_guard, stat)) in tickets.iter_mut().zip(nodes) {
            let queued_node = QueuedNode::new(session, node_guard, &ticket.queue, stat, connection);
            ticket.set_node(queued_node);
        }
    }

    /// Reads the creation zxid of the node that the first queue is likely to get, if the transaction will not
    /// return it: behind the transaction, in the same round trip.
    fn ask_early(&self, session: &Session, creates: &[WriteOp]) -> Option<Early> {
        let (queue, create) = self.queues.first().zip(creates.first())?;
        let number = LocalQueues::of(session).sequence_to_prefetch(queue.full_directory().as_str())?;
        let path = format!("{}{number:010}", create.path());
        let reply = Mutex::new(session.read(|wire| wire.exists(&path)));
        Some(Early { path, reply })
    }

    /// Uses the early read if it was for the right node, and records that the next transaction needs one.
    async fn use_early_czxid(tickets: &mut [Ticket], early: Option<Early>, deadline: Deadline) {
        let Some(ticket) = tickets.first_mut() else { return };
        let (directory, label) = (ticket.queue.full_directory().to_string(), ticket.queue.label());
        let Some(queued_node) = ticket.queued_node_mut().filter(|queued_node| queued_node.czxid.is_none())
        else {
            return;
        };
        if let Some(name) = NodeName::parse_with(queued_node.node_guard.name(), &[label]) {
            let session = queued_node.session();
            LocalQueues::of(session).record_missing_czxid(&directory, name.sequence(), session.now());
        }
        let Some(mut early) = early.filter(|early| early.path == queued_node.node_guard.path()) else {
            return;
        };
        // Without this answer, the grant reads the node.
        if let Ok(Some(stat)) = queued_node.session().await_reply(early.reply.get_mut(), deadline).await {
            queued_node.czxid = czxid(Some(&stat));
        }
    }

    fn guards_of(
        session: &Session,
        creates_in_flight: &mut [PendingCreate],
        results: Vec<WriteResult>,
    ) -> Result<Vec<FoundNode>, StepError> {
        let mut node_guards = Vec::new();
        for (create, result) in creates_in_flight.iter_mut().zip(results) {
            let WriteResult::Created(Created { path, stat }) = result else {
                return Err(StepError::Restart);
            };
            if let Some(stat) = &stat {
                session.verify_owner(&path, stat).map_err(|_| StepError::Restart)?;
            }
            node_guards.push((guard_node(session, create, path), stat));
        }
        Ok(node_guards)
    }

    /// The creates failed as a whole. Returns their nodes if the search finds all, and `None` if another
    /// transaction is due.
    async fn after_failed_creates(
        &self,
        session: &Session,
        tickets: &mut [Ticket],
        creates_in_flight: &mut [PendingCreate],
        error: WireError,
        lost_creates: &mut LostCreates,
        deadline: Deadline,
    ) -> Result<Option<Vec<FoundNode>>, StepError> {
        let path = self.first_directory();
        match &error {
            WireError::SessionEnded(_) | WireError::Refused(_) => {
                if error.outcome() == Outcome::NotApplied {
                    creates_in_flight.iter_mut().for_each(PendingCreate::settle);
                }
                session.retry_after(&error, Operation::Create, path, deadline).await?;
                return Ok(None);
            }
            error => debug!(path, %error, "creates without an answer; searching for their nodes"),
        }
        let mut found = Vec::new();
        for (queue, create) in self.queues.iter().zip(&mut *creates_in_flight) {
            found.extend(resolve_lost_create(session, queue.full_directory(), create, deadline).await?);
        }
        match found.len() {
            all if all == self.queues.len() => Ok(Some(found)),
            0 => {
                // Not final: the lists behind the next try show the nodes, and the janitor searches again
                // later.
                for (ticket, create) in tickets.iter_mut().zip(creates_in_flight) {
                    ticket.unresolved_creates.push((session.clone(), create.create_id()));
                }
                lost_creates.add(session, path, &error, deadline).await?;
                Ok(None)
            }
            // Some were deleted by hand. The others are deleted, too.
            _ => Err(StepError::Restart),
        }
    }

    /// Creates the directories that the lists did not find.
    async fn make_directories(
        &self,
        session: &Session,
        existing: &[Option<Vec<String>>],
        deadline: Deadline,
    ) -> Result<(), StepError> {
        for (number, queue) in self.queues.iter().enumerate() {
            if !existing.get(number).is_some_and(Option::is_some) {
                make_queue_directory(session, queue.full_directory(), queue.directory_lifetime(), deadline)
                    .await?;
            }
        }
        Ok(())
    }
}
