use lockkeeper_core::{BootInstant, ConnectionManager};

/// Leave to start, from a [`RateLimiter`](super::RateLimiter). It is used up, whether anything starts or not: there is no
/// way to give it back.
///
/// It does not rest on the session, and is not lost with it; but it gets stale. It keeps the manager alive.
#[derive(Debug)]
#[must_use = "the start is used up"]
pub struct Admission {
    starts: usize,
    fresh_until: BootInstant,
    /// For its clock.
    manager: ConnectionManager,
}

impl Admission {
    pub(super) fn new(manager: &ConnectionManager, starts: usize, fresh_until: BootInstant) -> Self {
        Self { starts, fresh_until, manager: manager.clone() }
    }

    /// How many starts it is.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.starts
    }

    /// Until when it may be used. What starts later may fall into a window that is full.
    #[must_use]
    pub fn fresh_until(&self) -> BootInstant {
        self.fresh_until
    }

    /// Whether it may still be used: ask right before you start. False at the first look after a pause that was too
    /// long; ask for another one then.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.manager.now() < self.fresh_until
    }
}
