use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Milliseconds since the epoch, by a clock that only a test can move.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    start_millis: i64,
    moved: AtomicI64,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "server and clients share one machine: all pause together")]
    pub(super) fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_millis: millis(since_epoch), moved: AtomicI64::new(0) }
    }

    pub(super) fn now(&self) -> i64 {
        self.start_millis + millis(self.start.elapsed()) + self.moved.load(Ordering::Relaxed)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.moved.fetch_add(millis(by), Ordering::Relaxed);
    }

    pub(super) fn set_back(&self, by: Duration) {
        self.moved.fetch_sub(millis(by), Ordering::Relaxed);
    }
}

/// A duration as the machine counts time.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
