use lockkeeper_core::{BootInstant, ConnectionManager};

/// Permission to start, from a [`RateLimiter`](super::RateLimiter). It is used up, whether the caller starts
/// or not: it cannot be given back.
///
/// An admission does not depend on the session, and is not lost with it. But it becomes stale. It keeps the
/// manager alive.
#[derive(Debug)]
#[must_use = "the start is used up"]
pub struct Admission {
    starts: usize,
    fresh_until: BootInstant,
    /// The manager, for its clock.
    manager: ConnectionManager,
}

impl Admission {
    pub(super) fn new(manager: &ConnectionManager, starts: usize, fresh_until: BootInstant) -> Self {
        Self { starts, fresh_until, manager: manager.clone() }
    }

    /// The number of admitted starts.
    #[must_use]
    pub fn permits(&self) -> usize {
        self.starts
    }

    /// The instant until which the caller may start. A later start may fall into a window that is full.
    #[must_use]
    pub fn fresh_until(&self) -> BootInstant {
        self.fresh_until
    }

    /// Whether the caller may still start: check this directly before the start. After a pause that was too
    /// long it is false; ask for a new admission then.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.manager.now() < self.fresh_until
    }
}
