use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;

use tracing::{Instrument, Span, debug, debug_span};

use super::lock_queue::{CallTelemetry, LockQueue};
use super::queued_node::{QueueState, QueuedNode};
use super::step_error::{Restarts, StepError};
use crate::config::limits;
use crate::error::{Error, Phase};
use crate::hold::{HeldNode, Hold, Prefetch};
use crate::manager::ConnectionManager;
use crate::session::Session;
use crate::time::deadline::Deadline;
use crate::znode::fencing_token::from_czxid;
use crate::znode::name::CreateId;

/// A position in a [`LockQueue`].
///
/// Dropping the ticket gives up the position and leaves no node behind. While the ticket is kept, the
/// position is kept: a wait that timed out or was cancelled can be continued.
pub struct Ticket {
    pub(super) queue: LockQueue,
    // Boxed: a contender that waits for the reply to its create has none yet.
    queued_node: Option<Box<QueuedNode>>,
    /// Creates of this ticket with an unknown outcome: their nodes may still be created.
    pub(super) unresolved_creates: Vec<(Session, CreateId)>,
    /// The acquire call that its first wait is part of.
    telemetry: Option<Box<CallTelemetry>>,
}

impl Ticket {
    pub(super) fn new(queue: LockQueue) -> Self {
        Self { queue, queued_node: None, unresolved_creates: Vec::new(), telemetry: None }
    }

    pub(super) fn with_telemetry(queue: LockQueue, telemetry: CallTelemetry) -> Self {
        Self { telemetry: Some(Box::new(telemetry)), ..Self::new(queue) }
    }

    fn start_telemetry(&mut self, is_try: bool) -> CallTelemetry {
        self.telemetry.take().map_or_else(|| self.queue.start_telemetry(is_try), |telemetry| *telemetry)
    }

    /// How many contenders the last list showed ahead. `None` if there was no list yet.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        match &self.queued_node.as_ref()?.state {
            QueueState::Unknown => None,
            QueueState::Held => Some(0),
            QueueState::Waiting(predecessors) => Some(predecessors.ahead()),
        }
    }

    /// The manager of the queue.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        self.queue.manager()
    }

    /// The name of the contender's node in the queue's directory.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.queued_node.as_ref().map(|queued_node| queued_node.node_guard.name())
    }

    /// Lists the directory now, and returns how many contenders are ahead. One round trip.
    ///
    /// Changes nothing. If the list shows that the node is lost, the contender enters the queue again at the
    /// end, and the result is its new position.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait). The position is kept.
    ///
    /// # Session loss
    ///
    /// Enters the queue again in the next session, at the end.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the position is kept as long as the ticket is.
    pub async fn refresh(&mut self, deadline: Deadline) -> Result<u32, Error> {
        let mut restarts = Restarts::default();
        loop {
            self.enqueue(deadline).await?;
            let listed = match &mut self.queued_node {
                Some(queued_node) => queued_node.list(&self.queue, deadline).await,
                None => Err(StepError::Restart),
            };
            match listed {
                // After a disconnect, the list is requested again.
                Ok(()) => {
                    if let Some(ahead) = self.position() {
                        return Ok(ahead);
                    }
                }
                Err(StepError::Restart) => self.start_over(&mut restarts).await,
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
    }

    /// Waits until no contender ahead blocks, and takes the hold. A ticket that has returned its hold enters
    /// the queue again when it is waited on again.
    ///
    /// # Ordering and fairness
    ///
    /// First in, first out, by the order in which the server committed the creates.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when `deadline` passes first: the error names the predecessor. The position is
    /// kept: wait again, or drop the ticket. [`Error::Refused`], [`Error::ConflictingKind`] and
    /// [`Error::Closed`] as for [`LockQueue::enqueue`].
    ///
    /// # Session loss
    ///
    /// Enters the queue again in the next session, at the end, within the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position is kept as long as the ticket is.
    pub async fn wait(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        let CallTelemetry { timer, span } = self.start_telemetry(false);
        let mut closing = self.closing();
        let waited = tokio::select! {
            biased;
            // Polled first at each step: once the shutdown has begun, nothing is granted.
            () = &mut closing => Err(Error::Closed),
            waited = self.wait_on(deadline).instrument(span) => waited,
        };
        let time = timer.end(&waited, |_| true);
        waited.inspect(|held| held.start_span(Some(time)))
    }

    /// Resolves once a shutdown has begun. Boxed, so that it takes no space in every task that waits.
    fn closing(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let manager = self.manager().clone();
        Box::pin(async move { manager.closing().await })
    }

    async fn wait_on(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        let mut restarts = Restarts::default();
        loop {
            // Boxed like other short steps, so that they take no space in every task that waits.
            Box::pin(self.enqueue(deadline)).await?;
            let held = async {
                self.wait_for_turn(deadline).await?;
                Box::pin(self.grant(deadline)).await
            };
            match held.await {
                Ok(held) => return Ok(held),
                Err(StepError::Restart) => {
                    debug!(
                        directory = %self.queue.full_directory(),
                        "the position in the queue is lost; starting over"
                    );
                }
                Err(StepError::Fail(error)) => return Err(error),
            }
            // Behind the match, whose result would otherwise take space in every task that waits.
            Box::pin(self.start_over(&mut restarts)).await;
        }
    }

    /// Waits, or only tries if the deadline is immediate.
    pub(super) async fn wait_or_try(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        match deadline.is_immediate() {
            true => Box::pin(self.try_now(deadline)).await,
            false => self.wait(deadline).await,
        }
    }

    /// Tries once, since the deadline leaves no time to wait. The connection and the replies still get the
    /// operation timeout.
    async fn try_now(&mut self, deadline: Deadline) -> Result<Hold, Error> {
        let limit = Deadline::after(self.queue.manager().operation_timeout());
        if let Some(held) = self.try_wait(limit).await? {
            return Ok(held);
        }
        let phase = match self.queued_node.as_ref().map(|queued_node| &queued_node.state) {
            Some(QueueState::Waiting(predecessors)) => Phase::Queued {
                predecessor: predecessors.predecessor().to_string(),
                predecessor_data: "not read".to_owned(),
                ahead: predecessors.ahead(),
                held_here: self.queue.held_here().map(Box::new),
            },
            _ => Phase::Answer,
        };
        Err(Error::timed_out(deadline, self.queue.full_directory().as_str(), phase))
    }

    /// Takes the hold if no contender ahead blocks now.
    pub(super) async fn try_wait(&mut self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        let CallTelemetry { timer, span } = self.start_telemetry(true);
        let mut closing = self.closing();
        let tried = tokio::select! {
            biased;
            () = &mut closing => Err(Error::Closed),
            tried = self.try_on(deadline).instrument(span) => tried,
        };
        let time = timer.end(&tried, Option::is_some);
        tried.inspect(|held| held.iter().for_each(|held| held.start_span(Some(time))))
    }

    async fn try_on(&mut self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        let mut restarts = Restarts::default();
        loop {
            self.enqueue(deadline).await?;
            let tried = match self.judge_turn(deadline).await {
                Ok(true) => self.grant(deadline).await.map(Some),
                Ok(false) => Ok(None),
                Err(step_error) => Err(step_error),
            };
            match tried {
                Ok(held) => return Ok(held),
                Err(StepError::Restart) => {}
                Err(StepError::Fail(error)) => return Err(error),
            }
            self.start_over(&mut restarts).await;
        }
    }

    /// Creates the node, if there is none yet.
    pub(super) async fn enqueue(&mut self, deadline: Deadline) -> Result<(), Error> {
        limits::check(self.queue.data().len())?;
        let mut restarts = Restarts::default();
        while self.queued_node.is_none() {
            match self.create_node(deadline).await {
                Ok(queued_node) => self.queued_node = Some(queued_node),
                Err(StepError::Restart) => {
                    debug!(directory = %self.queue.full_directory(), "entering the queue again");
                    Box::pin(restarts.pace(self.manager())).await;
                }
                Err(StepError::Fail(error)) => return Err(error),
            }
        }
        Ok(())
    }

    async fn start_over(&mut self, restarts: &mut Restarts) {
        self.reset();
        restarts.pace(self.manager()).await;
    }

    pub(super) fn reset(&mut self) {
        self.queued_node = None;
        self.queue.report_position(None);
    }

    pub(super) fn queued_node(&self) -> Option<&QueuedNode> {
        self.queued_node.as_deref()
    }

    pub(super) fn queued_node_mut(&mut self) -> Option<&mut QueuedNode> {
        self.queued_node.as_deref_mut()
    }

    /// Takes over a node that was created together with others.
    pub(super) fn set_node(&mut self, queued_node: QueuedNode) {
        self.queued_node = Some(Box::new(queued_node));
    }

    /// Judges the node by a list that was read behind its create. `prefetched` was sent behind that list.
    pub(super) async fn judge(
        &mut self,
        children: &[String],
        connection: Option<u64>,
        prefetched: Prefetch,
        deadline: Deadline,
    ) -> Result<(), StepError> {
        let Some(mut queued_node) = self.queued_node.take() else {
            return Err(StepError::Restart);
        };
        self.delete_late_creates(&queued_node, children);
        let decided_by_list_alone = queued_node.judge(children, connection, &self.queue, deadline).await?;
        if decided_by_list_alone && matches!(queued_node.state, QueueState::Held) {
            queued_node.prefetched = Some(Box::new(prefetched));
        }
        self.queued_node = Some(queued_node);
        Ok(())
    }

    /// Lists the directory if needed. Returns `true` when no contender ahead blocks.
    pub(super) async fn judge_turn(&mut self, deadline: Deadline) -> Result<bool, StepError> {
        let Some(queued_node) = &mut self.queued_node else {
            return Err(StepError::Restart);
        };
        if matches!(queued_node.state, QueueState::Unknown) {
            Box::pin(queued_node.ensure_judged(&self.queue, deadline)).await?;
        }
        Ok(matches!(queued_node.state, QueueState::Held))
    }

    /// Waits until no contender ahead blocks.
    pub(super) async fn wait_for_turn(&mut self, deadline: Deadline) -> Result<(), StepError> {
        if self.judge_turn(deadline).await? {
            return Ok(());
        }
        let span = self.queued_node.as_ref().map_or_else(Span::none, |queued_node| {
            debug_span!(
                "wait",
                path = queued_node.registration.0.path(),
                recipe = self.queue.metric_name(),
                sequence = self.queue.parse(queued_node.node_guard.name()).map(|name| name.sequence()),
                session = format_args!("{:#x}", queued_node.session().id()),
                epoch = queued_node.session().epoch().as_u64(),
            )
        });
        let turn = async {
            while !self.judge_turn(deadline).await? {
                self.queue.report_position(self.position());
                let Some(queued_node) = &mut self.queued_node else {
                    return Err(StepError::Restart);
                };
                queued_node.wait_for_change(&self.queue, deadline).await?;
            }
            Ok(())
        };
        // Boxed, so that a task that acquires is not as large as its wait.
        Box::pin(turn.instrument(span)).await
    }

    /// The last step: the lease is valid now, the node is not known to be deleted, and the token is known.
    pub(super) async fn grant(&mut self, deadline: Deadline) -> Result<Hold, StepError> {
        let Some(queued_node) = &mut self.queued_node else {
            return Err(StepError::Restart);
        };
        let directory = self.queue.full_directory().as_str();
        let session = queued_node.registration.0.session().clone();
        let czxid = queued_node.token_zxid(deadline, directory).await?;
        while !session.try_grant(&queued_node.registration.0).map_err(|reset| reset.error(directory))? {
            let confirmed = tokio::select! {
                biased;
                confirmed = session.until_lease_is_valid(deadline) => confirmed,
                _ = queued_node.registration.0.lost() => return Err(StepError::Restart),
            };
            match confirmed {
                Ok(true) => {}
                Ok(false) => return Err(Error::timed_out(deadline, directory, Phase::Confirmation).into()),
                Err(reason) => return Err(reason.into()),
            }
        }
        queued_node.entry().into_iter().for_each(|entry| entry.mark_held());
        if queued_node.registration.0.settle().is_err() {
            return Err(StepError::Restart);
        }
        let Some(queued_node) = self.queued_node.take() else {
            return Err(StepError::Restart);
        };
        let token = from_czxid(czxid, queued_node.registration.0.session().settings().token_generation);
        debug!(path = queued_node.registration.0.path(), %token, waited = ?deadline.waited(), "acquired");
        let QueuedNode { registration, node_guard, prefetched, .. } = *queued_node;
        let reads = prefetched.map_or_else(|| Prefetch::new(self.queue.reads()), |prefetched| *prefetched);
        let held_node = HeldNode { registration, node_guard, label: self.queue.label() };
        let manager = self.queue.manager().clone();
        let recipe = Some(self.queue.metric_name());
        let held = Hold::new(manager, held_node, Vec::new(), token, recipe).with_reads(reads);
        // Checked after the hold is counted: a shutdown that has not begun at this point waits for this hold.
        match self.queue.manager().is_closing() {
            true => Err(Error::Closed.into()),
            false => Ok(held),
        }
    }
}

impl Debug for Ticket {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Ticket")
            .field("directory", self.queue.full_directory())
            .field("name", &self.name())
            .field("ahead", &self.position())
            .finish_non_exhaustive()
    }
}
