use std::time::Duration;

use lockkeeper_core::{ConfigError, ConnectionManager};

use crate::limits;

/// The bounds within which the guards of one process share nodes: see
/// [`Mutex::with_handoff`](crate::Mutex::with_handoff),
/// [`Semaphore::with_handoff`](crate::Semaphore::with_handoff) and
/// [`RwLock::with_handoff`](crate::RwLock::with_handoff).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lockkeeper::config::HandOffPolicy;
///
/// let hand_off = HandOffPolicy::default().max_handoffs(50).idle_time(Duration::from_millis(20));
/// # let _ = hand_off;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "it takes effect by with_handoff()"]
pub struct HandOffPolicy {
    pub(super) max_handoffs: u32,
    pub(super) max_time: Duration,
    pub(super) idle_time: Duration,
}

impl Default for HandOffPolicy {
    fn default() -> Self {
        Self { max_handoffs: 100, max_time: Duration::from_millis(100), idle_time: Duration::ZERO }
    }
}

impl HandOffPolicy {
    /// The number of hand-offs within the process while another process waits. Default: 100. At least 1.
    pub fn max_handoffs(self, times: u32) -> Self {
        Self { max_handoffs: times, ..self }
    }

    /// The time for which the process hands the lock off among its tasks while another process waits.
    /// Default: 100 milliseconds. Above zero, and at most a third of the session timeout.
    ///
    /// The hand-offs end at this time or after [`max_handoffs`](Self::max_handoffs), whichever is earlier.
    /// This setting does not end a guard that is held for longer.
    pub fn max_time(self, time: Duration) -> Self {
        Self { max_time: time, ..self }
    }

    /// The time for which the node stays after a release, if no contender waits. A task of the process that
    /// acquires the lock within this time sends no request. Default: zero, the node does not stay. At most a
    /// third of the session timeout.
    ///
    /// If another process queues, the idle node is deleted. That process waits for one event and one round
    /// trip longer than for a free lock.
    pub fn idle_time(self, time: Duration) -> Self {
        Self { idle_time: time, ..self }
    }

    /// The longest time for which other processes wait.
    pub(crate) fn longest(&self) -> Duration {
        self.max_time
    }

    pub(crate) fn check(&self, manager: &ConnectionManager) -> Result<(), ConfigError> {
        let refuse = |name, value, advice| Err(ConfigError::Setting { name, value, advice });
        if self.max_handoffs == 0 {
            return refuse(
                "max_handoffs",
                "0".to_owned(),
                "allow one hand-off or more, or do not use with_handoff()",
            );
        }
        if self.max_time.is_zero() {
            return refuse("max_time", "no time".to_owned(), "allow some time, or do not use with_handoff()");
        }
        let longest = limits::hand_off_max(manager.session_timeout());
        for (name, time) in [("max_time", self.max_time), ("idle_time", self.idle_time)] {
            if time > longest {
                return refuse(
                    name,
                    format!("{time:?}, above {longest:?}"),
                    "use at most a third of the session timeout: other processes wait for that long",
                );
            }
        }
        Ok(())
    }
}
