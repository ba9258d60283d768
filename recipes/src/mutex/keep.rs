use std::time::Duration;

use lockkeeper_core::{ConfigError, ConnectionManager};

/// For how long a [`Mutex`](super::Mutex) may keep its node from one guard to the next: see
/// [`Mutex::keeping`](super::Mutex::keeping).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use lockkeeper::Keep;
///
/// let keep = Keep::default().at_most(50).linger(Duration::from_millis(20));
/// # let _ = keep;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it takes effect by Mutex::keeping()"]
pub struct Keep {
    pub(super) at_most: u32,
    pub(super) for_at_most: Duration,
    pub(super) linger: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Self { at_most: 100, for_at_most: Duration::from_millis(100), linger: Duration::ZERO }
    }
}

impl Keep {
    /// How often the lock is passed on within the process while another one waits. Default: 100 times. At least once.
    pub fn at_most(self, times: u32) -> Self {
        Self { at_most: times, ..self }
    }

    /// For how long the lock is passed on within the process while another one waits. Default: 100 milliseconds. More than
    /// nothing, and at most a third of the session timeout.
    ///
    /// Whichever comes first, this or [`at_most`](Self::at_most). A guard that is held for longer is not ended by it.
    pub fn for_at_most(self, time: Duration) -> Self {
        Self { for_at_most: time, ..self }
    }

    /// For how long the node stands when the lock is released and nobody waits: who takes it within the process meanwhile
    /// needs no request. Default: not at all. At most a third of the session timeout.
    ///
    /// Another process that comes meanwhile ends it, and waits for one event and one round trip longer than for a free lock.
    pub fn linger(self, time: Duration) -> Self {
        Self { linger: time, ..self }
    }

    pub(super) fn check(&self, manager: &ConnectionManager) -> Result<(), ConfigError> {
        let refuse = |name, value, advice| Err(ConfigError::Setting { name, value, advice });
        if self.at_most == 0 {
            return refuse("at_most", "0".to_owned(), "pass it on at least once, or do not keep it");
        }
        if self.for_at_most.is_zero() {
            return refuse("for_at_most", "no time".to_owned(), "give some time, or do not keep it");
        }
        let longest = manager.session_timeout() / 3;
        for (name, time) in [("for_at_most", self.for_at_most), ("linger", self.linger)] {
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
