use std::time::Duration;

use lockkeeper_core::{BootInstant, ConnectionManager};

/// Permission to start, from a [`RateLimiter`](super::RateLimiter). It is used up, whether the caller starts
/// or not: it cannot be given back.
///
/// An admission does not depend on the session, and is not lost with it. But it becomes stale. It keeps the
/// manager alive.
#[derive(Debug)]
#[must_use = "the start is used up"]
pub struct Admission {
    starts: u32,
    fresh_until: BootInstant,
    /// The manager, for its clock.
    manager: ConnectionManager,
}

impl Admission {
    pub(super) fn new(manager: &ConnectionManager, starts: u32, fresh_until: BootInstant) -> Self {
        Self { starts, fresh_until, manager: manager.clone() }
    }

    /// The number of admitted starts.
    #[must_use]
    pub fn starts(&self) -> u32 {
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

/// The answer of [`RateLimiter::try_admit`](super::RateLimiter::try_admit).
#[derive(Debug)]
#[must_use = "an admission that is dropped is used up"]
pub enum TryAdmit {
    /// The start is admitted.
    Admitted(Admission),
    /// There is no room now. Nothing is used up.
    Later {
        /// The time after which another try can succeed. There is no room earlier if no recorded start is
        /// deleted by hand. Another contender may take the room first.
        ///
        /// If contenders are ahead in the queue, it is an estimate: the time in which the limiter admits one
        /// start for each of them.
        retry_after: Duration,
    },
}

impl TryAdmit {
    /// The admission, if there is one.
    #[must_use]
    pub fn admitted(self) -> Option<Admission> {
        match self {
            Self::Admitted(admission) => Some(admission),
            Self::Later { .. } => None,
        }
    }

    /// The time after which another try can succeed; `None` if the start is admitted.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Admitted(_) => None,
            Self::Later { retry_after } => Some(*retry_after),
        }
    }
}
