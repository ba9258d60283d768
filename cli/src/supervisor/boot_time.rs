use std::time::Duration;

use lockkeeper::BootInstant;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// An instant of the boot clock, as a number that two processes of one machine can exchange.
///
/// It is the clock of [`BootInstant`]: it also runs while the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct BootTime(Duration);

impl BootTime {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The same instant, or one shortly before it, if this process was interrupted in between.
    pub(crate) fn of(instant: BootInstant) -> Self {
        let now = Self::now();
        now.after(instant.remaining())
    }

    pub(crate) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    pub(crate) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    #[cfg(test)]
    pub(crate) fn at(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// The time from the zero of the clock.
    pub(crate) fn since_boot(self) -> Duration {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_converted_instant_is_never_later_than_the_original() {
        let instant = BootInstant::now().after(Duration::from_secs(5));
        let converted = BootTime::of(instant);
        assert!(converted <= BootTime::now().after(instant.remaining()));
    }
}
