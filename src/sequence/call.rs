use std::fmt::{self, Debug, Formatter};

use tracing::{Span, debug_span, field};

use super::hold::Hold;
use super::line::Line;
use super::ticket::Ticket;
use crate::deadline::Deadline;
use crate::error::Error;
use crate::meter::Wait;

/// A call of acquire, for a recipe in which something comes before the line: metrics and spans count it from here on, as one.
///
/// Tell how it ended, or go on [in the line](Self::acquire). Dropped, it was cancelled.
#[must_use = "a call that is dropped was cancelled"]
pub struct Call {
    line: Line,
    is_try: bool,
    begun: Begun,
}

/// What times a call, and shows it.
pub(super) struct Begun {
    pub(super) meter: Wait,
    pub(super) span: Span,
}

impl Line {
    /// Begins a call of acquire; of no time at all, a try.
    pub fn call(self, deadline: Deadline) -> Call {
        Call::begin(self, deadline.is_immediate())
    }

    /// Begins a try.
    pub fn try_call(self) -> Call {
        Call::begin(self, true)
    }

    pub(super) fn begin(&self, is_try: bool) -> Begun {
        let (path, recipe) = (self.directory(), self.recipe_name());
        let (outcome, waited) = (field::Empty, field::Empty);
        let span = match is_try {
            true => debug_span!("try_acquire", %path, recipe, outcome, waited),
            false => debug_span!("acquire", %path, recipe, outcome, waited),
        };
        Begun { meter: self.meter(span.clone()), span }
    }
}

impl Call {
    fn begin(line: Line, is_try: bool) -> Self {
        Self { begun: line.begin(is_try), line, is_try }
    }

    /// Where it goes on.
    #[must_use]
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// What shows it.
    #[must_use]
    pub fn span(&self) -> Span {
        self.begun.span.clone()
    }

    /// Goes on as [`Line::acquire`].
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn acquire(self, deadline: Deadline) -> Result<Hold, Error> {
        self.ticket().wait_or_try(deadline).await
    }

    /// Goes on as [`Line::try_acquire`].
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
        hold.shown(Some(self.begun.meter.ended("granted")));
    }

    /// Somebody else has it.
    pub fn busy(self) {
        self.begun.meter.ended("busy");
    }

    /// It came to nothing.
    pub fn failed(self, error: &Error) {
        match error.is_timeout() && self.is_try {
            true => self.busy(),
            false => _ = self.begun.meter.failed(error),
        }
    }

    fn ticket(self) -> Ticket {
        Ticket::begun(self.line, self.begun)
    }
}

impl Debug for Call {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Call")
            .field("line", &self.line)
            .field("is_try", &self.is_try)
            .finish_non_exhaustive()
    }
}
