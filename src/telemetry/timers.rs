//! Timers of waits and holds, which also count those in progress.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::{Span, field};

use crate::environment::Environment;
use crate::error::{Error, LossReason};
use crate::telemetry::metrics;
use crate::time::boot::BootInstant;

/// A wait in progress. If it is dropped before it ends, the wait was cancelled.
pub(crate) struct WaitTimer {
    recipe: &'static str,
    environment: Arc<dyn Environment>,
    begun: BootInstant,
    span: Span,
    outcome: &'static str,
}

impl WaitTimer {
    /// `span` has the empty fields `outcome` and `waited`.
    pub(crate) fn begin(environment: &Arc<dyn Environment>, recipe: &'static str, span: Span) -> Self {
        metrics::waiting(recipe, 1.0);
        Self {
            recipe,
            environment: Arc::clone(environment),
            begun: environment.now(),
            span,
            outcome: "cancelled",
        }
    }

    /// Ends the wait; `got` tells whether a success is a grant. Returns how long the wait took.
    pub(crate) fn end<T>(self, result: &Result<T, Error>, got: impl FnOnce(&T) -> bool) -> Duration {
        match result {
            Ok(answer) if got(answer) => self.ended("granted"),
            Ok(_) => self.ended("busy"),
            Err(error) => self.failed(error),
        }
    }

    pub(crate) fn failed(self, error: &Error) -> Duration {
        self.ended(if error.is_timeout() { "timeout" } else { "error" })
    }

    pub(crate) fn ended(mut self, outcome: &'static str) -> Duration {
        self.outcome = outcome;
        self.waited()
    }

    fn waited(&self) -> Duration {
        self.environment.now().since(self.begun)
    }
}

impl Drop for WaitTimer {
    fn drop(&mut self) {
        let waited = self.waited();
        self.span.record("outcome", self.outcome).record("waited", field::debug(waited));
        metrics::waiting(self.recipe, -1.0);
        metrics::waited(self.recipe, self.outcome, waited);
    }
}

/// A hold in progress. It ends once.
pub(crate) struct HoldTimer {
    recipe: &'static str,
    environment: Arc<dyn Environment>,
    begun: BootInstant,
    /// How the hold ends if it is not lost. Empty if it is only dropped.
    ending: OnceLock<&'static str>,
    span: OnceLock<Span>,
}

impl HoldTimer {
    pub(crate) fn begin(environment: &Arc<dyn Environment>, recipe: &'static str) -> Self {
        metrics::held(recipe, 1.0);
        Self {
            recipe,
            environment: Arc::clone(environment),
            begun: environment.now(),
            ending: OnceLock::new(),
            span: OnceLock::new(),
        }
    }

    pub(crate) fn recipe(&self) -> &'static str {
        self.recipe
    }

    /// Sets the span that lasts as long as the hold. It has the empty field `outcome`.
    pub(crate) fn show(&self, span: Span) {
        let _ = self.span.set(span);
    }

    pub(crate) fn ends_by(&self, ending: &'static str) {
        let _ = self.ending.set(ending);
    }

    pub(crate) fn end(&self, lost: Option<LossReason>) {
        let outcome = match lost {
            Some(reason) => {
                metrics::lost(self.recipe, reason);
                "lost"
            }
            None => self.ending.get().copied().unwrap_or("dropped"),
        };
        metrics::held(self.recipe, -1.0);
        metrics::held_for(self.recipe, outcome, self.environment.now().since(self.begun));
        if let Some(span) = self.span.get() {
            span.record("outcome", outcome);
            if let Some(reason) = lost {
                span.in_scope(|| tracing::debug!(%reason, "lost"));
            }
        }
    }
}

impl Debug for HoldTimer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HoldTimer").field("recipe", &self.recipe).finish_non_exhaustive()
    }
}
