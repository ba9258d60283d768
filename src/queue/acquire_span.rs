use std::fmt::{self, Debug, Formatter};

use tracing::{Span, debug_span, field};

use super::hold::Hold;
use super::lock_queue::LockQueue;
use super::ticket::Ticket;
use crate::error::Error;
use crate::telemetry::timers::WaitTimer;
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

/// What times a call, and shows it.
pub(super) struct CallTelemetry {
    pub(super) timer: WaitTimer,
    pub(super) span: Span,
}

impl LockQueue {
    /// Begins a call of acquire; a try, if the deadline is [immediate](Deadline::immediate).
    pub fn acquire_span(self, deadline: Deadline) -> AcquireSpan {
        let telemetry = self.start_telemetry(deadline.is_immediate());
        AcquireSpan { telemetry, queue: self, deadline }
    }

    pub(super) fn start_telemetry(&self, is_try: bool) -> CallTelemetry {
        let (path, recipe) = (self.directory(), self.metric_name());
        let (outcome, waited) = (field::Empty, field::Empty);
        let span = match is_try {
            true => debug_span!("try_acquire", %path, recipe, outcome, waited),
            false => debug_span!("acquire", %path, recipe, outcome, waited),
        };
        CallTelemetry { timer: self.timer(span.clone()), span }
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
