use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::time::boot::BootInstant;

/// The time on the servers, as far as their answers show it. It serves to display ages, and to choose how
/// long to wait. No grant rests on it.
///
/// Only a write shows it. The time of its transaction is before its answer, so the time that is extrapolated
/// from there by the steady clock is never later than the servers' own. Another leader may have another
/// clock: the last answer counts.
#[derive(Debug, Default)]
pub(crate) struct ServerClock(Mutex<Option<(i64, BootInstant)>>);

impl ServerClock {
    /// An answer that was received at `observed` has this transaction time, in milliseconds since 1970.
    pub(crate) fn observe(&self, millis: i64, observed: BootInstant) {
        *self.0.lock() = Some((millis, observed));
    }

    /// The earliest present time, in milliseconds since 1970; `None` before the first answer.
    pub(crate) fn now(&self, now: BootInstant) -> Option<i64> {
        let (millis, observed) = (*self.0.lock())?;
        let passed: Duration = now.since(observed);
        Some(millis.saturating_add(i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// An instant by the servers' clock, from milliseconds since 1970.
pub(crate) fn instant(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_is_extrapolated() {
        let clock = ServerClock::default();
        let at = |seconds| BootInstant::at(Duration::from_secs(seconds));
        assert_eq!(clock.now(at(1)), None);
        clock.observe(5_000, at(1));
        assert_eq!(clock.now(at(3)), Some(7_000));
        // A leader whose clock is behind.
        clock.observe(4_000, at(3));
        assert_eq!(clock.now(at(3)), Some(4_000));
    }
}
