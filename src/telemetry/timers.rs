//! Timers of waits and holds, which also count those in progress.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::{Span, debug_span, field};

use crate::environment::Environment;
use crate::error::{Error, LossReason, TxnError};
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

/// A view in progress.
pub(crate) struct ViewCount(());

impl ViewCount {
    pub(crate) fn new() -> Self {
        metrics::views(1.0);
        Self(())
    }
}

impl Drop for ViewCount {
    fn drop(&mut self) {
        metrics::views(-1.0);
    }
}

/// A change or a read of a register in progress. If it is dropped before it ends, the call was cancelled.
pub(crate) struct UpdateTimer {
    recipe: &'static str,
    environment: Arc<dyn Environment>,
    begun: BootInstant,
    span: Span,
    outcome: &'static str,
}

impl UpdateTimer {
    pub(crate) fn begin(
        environment: &Arc<dyn Environment>,
        recipe: &'static str,
        path: &str,
        is_read: bool,
    ) -> Self {
        let outcome = field::Empty;
        let span = match is_read {
            true => debug_span!("read", path, recipe, outcome, waited = field::Empty),
            false => debug_span!("update", path, recipe, outcome, waited = field::Empty),
        };
        let environment = Arc::clone(environment);
        Self { recipe, begun: environment.now(), environment, span, outcome: "cancelled" }
    }

    pub(crate) fn end<T>(mut self, result: &Result<T, Error>) {
        self.outcome = match result {
            Ok(_) => "done",
            Err(error) if error.outcome_unknown() => "unknown",
            Err(error) if error.is_timeout() => "timeout",
            Err(_) => "error",
        };
    }
}

impl Drop for UpdateTimer {
    fn drop(&mut self) {
        let waited = self.environment.now().since(self.begun);
        self.span.record("outcome", self.outcome).record("waited", field::debug(waited));
        metrics::updated(self.recipe, self.outcome, waited);
    }
}

/// A commit of a transaction in progress. If it is dropped before it ends, the call was cancelled.
pub(crate) struct TxnTimer {
    environment: Arc<dyn Environment>,
    begun: BootInstant,
    span: Span,
    outcome: &'static str,
}

impl TxnTimer {
    /// `path` is that of the hold's node.
    pub(crate) fn begin(environment: &Arc<dyn Environment>, path: &str) -> Self {
        let span = debug_span!("commit", path, outcome = field::Empty, waited = field::Empty);
        let environment = Arc::clone(environment);
        Self { begun: environment.now(), environment, span, outcome: "cancelled" }
    }

    /// `done` names the result of a success.
    pub(crate) fn end<T>(mut self, result: &Result<T, TxnError>, done: impl FnOnce(&T) -> &'static str) {
        self.outcome = match result {
            Ok(committed) => done(committed),
            Err(error) if error.outcome_unknown() => {
                metrics::txn_unknown();
                "unknown"
            }
            Err(error) if error.is_lost() => "lost",
            Err(TxnError::Refused { .. }) => "refused",
            Err(TxnError::Failed(error)) if error.is_timeout() => "timeout",
            Err(_) => "error",
        };
    }
}

impl Drop for TxnTimer {
    fn drop(&mut self) {
        let waited = self.environment.now().since(self.begun);
        self.span.record("outcome", self.outcome).record("waited", field::debug(waited));
        metrics::txn(self.outcome, waited);
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
            Some(_) => "lost",
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
