use std::sync::Arc;

use lockkeeper::BootInstant;
use lockkeeper_core::simulation::Environment;
use lockkeeper_test_recipes::{Claim, Granted};

use crate::environment::{Process, SimulatedHost};

/// One hold, and the beliefs of its holder.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) process: Arc<Process>,
    grant: Arc<Granted>,
    pub(super) claims: Vec<Claim>,
    /// `lost()` has resolved.
    pub(super) is_told: bool,
    /// The servers no longer have one of its nodes.
    pub(super) is_gone: bool,
    /// The end of the lease when the process was paused.
    frozen_until: Option<BootInstant>,
}

impl Held {
    pub(super) fn new(process: &Arc<Process>, grant: &Arc<Granted>) -> Self {
        Self {
            process: Arc::clone(process),
            grant: Arc::clone(grant),
            claims: grant.claims(),
            is_told: false,
            is_gone: false,
            frozen_until: None,
        }
    }

    /// Whether the hold is valid by the lease clock; for a paused process, without waking it.
    pub(super) fn is_valid(&self) -> bool {
        match self.frozen_until {
            Some(until) => SimulatedHost(Arc::clone(&self.process)).now() < until,
            None => self.grant.is_valid(),
        }
    }

    pub(super) fn has_frozen_or_thawed(&self) -> bool {
        self.process.is_frozen() != self.frozen_until.is_some()
    }

    pub(super) fn note_freeze(&mut self) {
        if self.has_frozen_or_thawed() {
            self.frozen_until = self.process.is_frozen().then(|| self.grant.valid_until());
        }
    }
}
