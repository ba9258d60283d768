use tracing::{Instrument, Span, debug, debug_span};

use super::lock_queue::LockQueue;
use super::queued_node::QueuedNode;
use super::step_error::{Restarts, StepError};
use super::ticket::Ticket;
use crate::error::{ConfigError, Error, Operation};
use crate::hold::Hold;
use crate::manager::ConnectionManager;
use crate::telemetry::timers::WaitTimer;
use crate::time::deadline::Deadline;
use crate::wire::{MultiError, WriteOp};
use crate::znode::path::ZnodePath;

/// Several queues, entered by one transaction: the contender has a node in each of them, or in none.
///
/// All nodes of one entry have one creation time. Among contenders that enter all their queues this way, a
/// waiter entered later than its predecessor in every queue that both use. So no deadlock is possible,
/// whatever queues they name, in whatever order. Beside contenders that enter the same queues one after
/// another, this does *not* hold.
#[derive(Clone, Debug)]
pub struct MultiQueue {
    /// The one manager of all queues.
    pub(super) manager: ConnectionManager,
    pub(super) queues: Vec<LockQueue>,
}

impl MultiQueue {
    /// These queues, which have one manager, and a directory each.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if there is no queue, if two have one directory, or if they have different managers.
    pub fn new(queues: Vec<LockQueue>) -> Result<Self, Error> {
        let mut directories: Vec<&ZnodePath> = queues.iter().map(LockQueue::directory).collect();
        directories.sort();
        let twice = directories.windows(2).find_map(|pair| match pair {
            [one, other] if one == other => Some(one.to_string()),
            _ => None,
        });
        let refused =
            |value, advice| Err(Error::Config(ConfigError::Setting { name: "queues", value, advice }));
        if let Some(path) = twice {
            return refused(format!("{path} twice"), "name each queue once");
        }
        let Some(manager) = queues.first().map(|queue| queue.manager().clone()) else {
            return refused("empty".to_owned(), "name at least one queue");
        };
        if !queues.iter().all(|queue| queue.manager().is_same_as(&manager)) {
            return refused("of several managers".to_owned(), "make all queues with one connection manager");
        }
        Ok(Self { manager, queues })
    }

    /// Enters all queues, and stays only as the head of each. Returns `None` if any contender is ahead in any
    /// of them.
    ///
    /// One round trip: a transaction and one list of all queues are sent together. (Servers before 3.8.2 do
    /// not return the creation time, ZOOKEEPER-4026. Then one more read is sent with them, if the sequence
    /// number of the first node can be predicted, or after them.) The call never waits for another contender.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::enqueue`](super::LockQueue::enqueue).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn try_acquire(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let timers = self.timers();
        let span = debug_span!("try_acquire", queues = self.queues.len());
        let tried = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            tried = self.try_on(deadline).instrument(span) => tried,
        };
        for (index, timer) in timers.into_iter().enumerate() {
            let time = timer.end(&tried, Option::is_some);
            if let Ok(Some(hold)) =
                tried.as_ref().map(|holds| holds.as_ref().and_then(|holds| holds.get(index)))
            {
                hold.start_span(Some(time));
            }
        }
        tried
    }

    async fn try_on(&self, deadline: Deadline) -> Result<Option<Vec<Hold>>, Error> {
        let (mut tickets, mut restarts) = (self.tickets(), Restarts::default());
        loop {
            let tried = match self.create_nodes(&mut tickets, deadline).await {
                Ok(()) => Self::grant_if_free(&mut tickets, deadline).await,
                Err(step_error) => Err(step_error),
            };
            match tried {
                Ok(holds) => return Ok(holds),
                Err(StepError::Restart) => self.start_over(&mut tickets, &mut restarts).await,
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
    }

    /// Enters all queues, and waits until the contender is the head of each.
    ///
    /// # Errors
    ///
    /// As [`Ticket::wait`](super::Ticket::wait). After an error, the contender has left all queues.
    ///
    /// # Session loss
    ///
    /// Enters all queues again in the next session, within the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the positions are lost, and no node is left behind.
    pub async fn acquire(&self, deadline: Deadline) -> Result<Vec<Hold>, Error> {
        let timers = self.timers();
        let span = debug_span!("acquire", queues = self.queues.len());
        let waited = tokio::select! {
            biased;
            () = self.closing() => Err(Error::Closed),
            waited = self.wait_on(deadline).instrument(span) => waited,
        };
        for (index, timer) in timers.into_iter().enumerate() {
            let time = timer.end(&waited, |_| true);
            if let Some(hold) = waited.as_ref().ok().and_then(|holds| holds.get(index)) {
                hold.start_span(Some(time));
            }
        }
        waited
    }

    async fn wait_on(&self, deadline: Deadline) -> Result<Vec<Hold>, Error> {
        let (mut tickets, mut restarts) = (self.tickets(), Restarts::default());
        loop {
            let waited = match self.create_nodes(&mut tickets, deadline).await {
                Ok(()) => Self::wait(&mut tickets, deadline).await,
                Err(step_error) => Err(step_error),
            };
            match waited {
                Ok(holds) => return Ok(holds),
                Err(StepError::Restart) => {
                    debug!("the positions in the queues are lost; starting over");
                    self.start_over(&mut tickets, &mut restarts).await;
                }
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
    }

    async fn closing(&self) {
        self.manager.closing().await;
    }

    /// One timer for each queue.
    fn timers(&self) -> Vec<WaitTimer> {
        self.queues.iter().map(|queue| queue.timer(Span::none())).collect()
    }

    fn tickets(&self) -> Vec<Ticket> {
        self.queues.iter().cloned().map(Ticket::new).collect()
    }

    async fn start_over(&self, tickets: &mut [Ticket], restarts: &mut Restarts) {
        tickets.iter_mut().for_each(Ticket::reset);
        restarts.pace(&self.manager).await;
    }

    async fn grant_if_free(
        tickets: &mut [Ticket],
        deadline: Deadline,
    ) -> Result<Option<Vec<Hold>>, StepError> {
        for ticket in &mut *tickets {
            if !ticket.judge_turn(deadline).await? {
                return Ok(None);
            }
        }
        Self::grant(tickets, deadline).await.map(Some)
    }

    async fn wait(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, StepError> {
        let mut has_waited = false;
        for ticket in &mut *tickets {
            has_waited |= !ticket.judge_turn(deadline).await?;
            ticket.wait_for_turn(deadline).await?;
        }
        if has_waited {
            // Reads that were sent before the wait are out of date.
            for queued_node in tickets.iter_mut().filter_map(Ticket::queued_node_mut) {
                queued_node.prefetched = None;
            }
            Self::verify_nodes(tickets, deadline).await?;
        }
        Self::grant(tickets, deadline).await
    }

    /// During the wait in one queue, the node in another one may have been deleted by hand.
    async fn verify_nodes(tickets: &[Ticket], deadline: Deadline) -> Result<(), StepError> {
        let queued_nodes = tickets.iter().filter_map(Ticket::queued_node);
        let checks: Vec<WriteOp> = queued_nodes
            .map(|queued_node| WriteOp::Check {
                path: queued_node.node_guard.path().to_owned(),
                version: None,
            })
            .collect();
        let Some(session) = tickets.first().and_then(Ticket::queued_node).map(QueuedNode::session) else {
            return Err(StepError::Restart);
        };
        loop {
            match session.multi(&checks, deadline).await {
                Ok(_) => return Ok(()),
                Err(MultiError::Operation { .. }) => return Err(StepError::Restart),
                Err(MultiError::Request(error)) => {
                    let path = checks.first().map_or("", WriteOp::path);
                    session.retry_after(&error, Operation::Commit, path, deadline).await?;
                }
            }
        }
    }

    /// The contender is the head of all queues.
    async fn grant(tickets: &mut [Ticket], deadline: Deadline) -> Result<Vec<Hold>, StepError> {
        // One transaction created the nodes, so all of them have the same creation zxid.
        let mut czxid =
            tickets.iter().filter_map(Ticket::queued_node).find_map(|queued_node| queued_node.czxid);
        for queued_node in tickets.iter_mut().filter_map(Ticket::queued_node_mut) {
            match czxid {
                None => {
                    let path = queued_node.node_guard.path().to_owned();
                    czxid = Some(queued_node.token_zxid(deadline, &path).await?);
                }
                known => queued_node.czxid = known,
            }
        }
        let mut holds = Vec::new();
        for ticket in tickets {
            holds.push(ticket.grant(deadline).await?);
        }
        match holds.iter().all(Hold::is_valid) {
            true => Ok(holds),
            false => Err(StepError::Restart),
        }
    }
}
