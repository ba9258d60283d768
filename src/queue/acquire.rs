use std::fmt::{self, Debug, Formatter};

use tracing::Span;

use super::call_telemetry::CallTelemetry;
use super::hold::Hold;
use super::lock_queue::LockQueue;
use super::ticket::Ticket;
use crate::error::Error;
use crate::time::deadline::Deadline;

/// A call of acquire, for a recipe in which something comes before the line: metrics and spans count it from here on, as one.
///
/// Tell how it ended, or go on [in the line](Self::acquire). Dropped, it was cancelled.
#[must_use = "a call that is dropped was cancelled"]
pub struct AcquireSpan {
    queue: LockQueue,
    deadline: Deadline,
    telemetry: CallTelemetry,
}

impl LockQueue {
    /// The same queue for a contender that already holds `own`. Its node never blocks the contender, and neither
    /// do the nodes of earlier calls.
    #[must_use]
    pub fn ignoring(mut self, own: &Hold) -> Self {
        own.path().rsplit('/').next().into_iter().for_each(|name| self.ignore(name));
        self
    }

    /// Takes a place in the line.
    ///
    /// One round trip: create and list are sent together. A further one or two when the directory has to be made.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when `deadline` passes first, [`Error::Refused`] when the server will not have the node
    /// (access list, quota), [`Error::ConflictingKind`] when the path is in use for another kind of lock,
    /// [`Error::Closed`] after a shutdown.
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

    /// Takes a place and waits in it: [`enqueue`](Self::enqueue), then [`Ticket::wait`].
    ///
    /// # Errors
    ///
    /// Those of both. A deadline of no time at all tries once: [`Error::Timeout`] when someone is in front.
    ///
    /// # Session loss
    ///
    /// Starts over in the next session, at the end of the line.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe at every await: your place in the line is lost, and no node is left behind.
    pub async fn acquire(&self, deadline: Deadline) -> Result<Hold, Error> {
        // Kept here: what is moved into a future stands in it twice.
        let mut ticket = Ticket::new(self.clone());
        ticket.wait_or_try(deadline).await
    }

    /// Takes a place and keeps it only if it is the first: `None` when someone is in front, be it with a try of its
    /// own.
    ///
    /// Costs what [`enqueue`](Self::enqueue) costs; the node of a try in vain is deleted without waiting for it.
    ///
    /// # Errors
    ///
    /// As [`enqueue`](Self::enqueue). `deadline` bounds the wait for a connection and for answers.
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

    /// Begins a call of acquire; a try, if the deadline is [immediate](Deadline::immediate).
    pub fn acquire_span(self, deadline: Deadline) -> AcquireSpan {
        let telemetry = self.start_telemetry(deadline.is_immediate());
        AcquireSpan { telemetry, queue: self, deadline }
    }
}

impl AcquireSpan {
    /// Where it goes on.
    #[must_use]
    pub fn queue(&self) -> &LockQueue {
        &self.queue
    }

    /// What shows it.
    #[must_use]
    pub fn span(&self) -> Span {
        self.telemetry.span.clone()
    }

    /// Goes on as [`LockQueue::acquire`], with the deadline of the call.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn acquire(self) -> Result<Hold, Error> {
        let deadline = self.deadline;
        self.ticket().wait_or_try(deadline).await
    }

    /// Goes on as [`LockQueue::try_acquire`].
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn try_acquire(self, deadline: Deadline) -> Result<Option<Hold>, Error> {
        self.ticket().try_wait(deadline).await
    }

    /// It got this without standing in the line.
    pub fn granted(self, hold: &Hold) {
        hold.start_span(Some(self.telemetry.timer.ended("granted")));
    }

    /// Somebody else has it.
    pub fn busy(self) {
        self.telemetry.timer.ended("busy");
    }

    /// It came to nothing.
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
