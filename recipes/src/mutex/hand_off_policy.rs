use std::time::Duration;

use lockkeeper_core::{ConfigError, ConnectionManager};

/// For how long a [`Mutex`](super::Mutex) may keep its node from one guard to the next: see
/// [`Mutex::with_handoff`](super::Mutex::with_handoff).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lockkeeper::HandOffPolicy;
///
/// let hand_off = HandOffPolicy::default().max_handoffs(50).idle_time(Duration::from_millis(20));
/// # let _ = hand_off;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it takes effect by Mutex::keeping()"]
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
    /// How often the lock is passed on within the process while another one waits. Default: 100 times. At least once.
    pub fn max_handoffs(self, times: u32) -> Self {
        Self { max_handoffs: times, ..self }
    }

    /// For how long the lock is passed on within the process while another one waits. Default: 100 milliseconds. More than
    /// nothing, and at most a third of the session timeout.
    ///
    /// Whichever comes first, this or [`max_handoffs`](Self::max_handoffs). A guard that is held for longer is not ended by it.
    pub fn max_time(self, time: Duration) -> Self {
        Self { max_time: time, ..self }
    }

    /// For how long the node stands when the lock is released and nobody waits: who takes it within the process meanwhile
    /// needs no request. Default: not at all. At most a third of the session timeout.
    ///
    /// Another process that comes meanwhile ends it, and waits for one event and one round trip longer than for a free lock.
    pub fn idle_time(self, time: Duration) -> Self {
        Self { idle_time: time, ..self }
    }

    pub(super) fn check(&self, manager: &ConnectionManager) -> Result<(), ConfigError> {
        let refuse = |name, value, advice| Err(ConfigError::Setting { name, value, advice });
        if self.max_handoffs == 0 {
            return refuse("max_handoffs", "0".to_owned(), "pass it on at least once, or do not keep it");
        }
        if self.max_time.is_zero() {
            return refuse("max_time", "no time".to_owned(), "give some time, or do not keep it");
        }
        let longest = manager.session_timeout() / 3;
        for (name, time) in [("max_time", self.max_time), ("idle_time", self.idle_time)] {
            if time > longest {
                return refuse(
                    name,
                    format!("{time:?}"),
                    "others wait for so long: at most a third of the session timeout",
                );
            }
        }
        Ok(())
    }
}
