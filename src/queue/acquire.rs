use std::fmt::{self, Debug, Formatter};

use tracing::Span;

use super::lock_queue::{CallTelemetry, LockQueue};
use super::ticket::Ticket;
use crate::error::Error;
use crate::hold::Hold;
use crate::time::deadline::Deadline;

/// An acquire call of a recipe that has steps before the queue. Metrics and spans count one call from here
/// on.
///
/// The recipe reports how the call ended, or continues [in the queue](Self::acquire). A dropped span counts
/// as a cancelled call.
#[must_use = "a call that is dropped was cancelled"]
pub struct AcquireSpan {
    queue: LockQueue,
    deadline: Deadline,
    telemetry: CallTelemetry,
}

impl LockQueue {
    /// The same queue for a contender that already holds `own`. The node of `own` never blocks the contender,
    /// and neither do the nodes of earlier calls.
    #[must_use]
    pub fn ignoring(mut self, own: &Hold) -> Self {
        self.ignore(own.path().name());
        self
    }

    /// Creates a contender's node in the queue.
    ///
    /// One round trip: create and list are sent together. One or two more if the directory has to be created.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when `deadline` passes first, [`Error::Refused`] when the server refuses the node
    /// (access list, quota), [`Error::Unanswerable`] when it answers the create of the node again and again
    /// with the end of the connection, [`Error::ConflictingKind`] when the path is in use for another kind of
    /// lock, [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Starts over in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: a dropped future leaves no node behind.
    pub async fn enqueue(&self, deadline: Deadline) -> Result<Ticket, Error> {
        let mut ticket = Ticket::new(self.clone());
        tokio::select! {
            biased;
            () = self.manager().closing() => return Err(Error::Closed),
            enqueued = ticket.enqueue(deadline) => enqueued?,
        }
        Ok(ticket)
    }

    /// Enters the queue and waits for the hold: [`enqueue`](Self::enqueue), then [`Ticket::wait`].
    ///
    /// # Errors
    ///
    /// Those of both. With an immediate deadline the call tries once: [`Error::Timeout`] when a contender is
    /// ahead.
    ///
    /// # Session loss
    ///
    /// Starts over in the next session, at the end of the queue.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: the position in the queue is lost, and no node is left behind.
    pub async fn acquire(&self, deadline: Deadline) -> Result<Hold, Error> {
        // Kept in a variable: a value that is moved into a future takes its space twice.
        let mut ticket = Ticket::new(self.clone());
        ticket.wait_or_try(deadline).await
    }

    /// Enters the queue and stays only as the head. Returns `None` if any contender is ahead, including
    /// another `try_acquire` in progress.
    ///
    /// Costs what [`enqueue`](Self::enqueue) costs. After a failed try, the node is deleted in the
    /// background.
    ///
    /// # Errors
    ///
    /// As [`enqueue`](Self::enqueue). `deadline` bounds the wait for a connection and for replies.
    ///
    /// # Session loss
    ///
    /// Starts over in the next session, within the deadline.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: no node is left behind.
    pub async fn try_acquire(&self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        Ticket::new(self.clone()).try_wait(deadline).await
    }

    /// Starts an acquire call, or a try if the deadline is [immediate](Deadline::immediate).
    pub fn acquire_span(self, deadline: Deadline) -> AcquireSpan {
        let telemetry = self.start_telemetry(deadline.is_immediate());
        AcquireSpan { telemetry, queue: self, deadline }
    }
}

impl AcquireSpan {
    /// The queue that the call enters.
    #[must_use]
    pub fn queue(&self) -> &LockQueue {
        &self.queue
    }

    /// The span of this call.
    #[must_use]
    pub fn span(&self) -> Span {
        self.telemetry.span.clone()
    }

    /// Continues as [`LockQueue::acquire`], with the deadline of the call.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockQueue::acquire`].
    pub async fn acquire(self) -> Result<Hold, Error> {
        let deadline = self.deadline;
        self.ticket().wait_or_try(deadline).await
    }

    /// Continues as [`LockQueue::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`LockQueue::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockQueue::try_acquire`].
    pub async fn try_acquire(self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        self.ticket().try_wait(deadline).await
    }

    /// The call ended with this hold, without a wait in the queue.
    pub fn granted(self, hold: &Hold) {
        hold.start_span(Some(self.telemetry.timer.ended("granted")));
    }

    /// The call ended without a hold: another contender holds.
    pub fn busy(self) {
        self.telemetry.timer.ended("busy");
    }

    /// The call ended with this error.
    pub fn failed(self, error: &Error) {
        match error.is_timeout() && self.deadline.is_immediate() {
            true => self.busy(),
            false => _ = self.telemetry.timer.failed(error),
        }
    }

    fn ticket(self) -> Ticket {
        Ticket::with_telemetry(self.queue, self.telemetry)
    }
}

impl Debug for AcquireSpan {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcquireSpan")
            .field("queue", &self.queue)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
