use tracing::{Span, debug_span, field};

use super::lock_queue::LockQueue;
use crate::telemetry::timers::WaitTimer;

/// The timer and the span of one acquire.
pub(super) struct CallTelemetry {
    pub(super) timer: WaitTimer,
    pub(super) span: Span,
}

impl LockQueue {
    pub(super) fn start_telemetry(&self, is_try: bool) -> CallTelemetry {
        let (path, recipe) = (self.full_directory(), self.metric_name());
        let (outcome, waited) = (field::Empty, field::Empty);
        let span = match is_try {
            true => debug_span!("try_acquire", %path, recipe, outcome, waited),
            false => debug_span!("acquire", %path, recipe, outcome, waited),
        };
        CallTelemetry { timer: self.timer(span.clone()), span }
    }
}
