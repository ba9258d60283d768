use std::time::Duration;

/// The window of a [`RateLimiter`](crate::RateLimiter), as an inspection saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    pub(crate) limit: u32,
    pub(crate) window: Duration,
    pub(crate) used: u32,
    pub(crate) next_free: Duration,
}

impl WindowInfo {
    /// The number of starts that fit into a window.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The length of the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The number of starts that count now.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// The time until the next start is free, without regard to waiters. Zero if one is free now.
    #[must_use]
    pub fn next_free(&self) -> Duration {
        self.next_free
    }
}
