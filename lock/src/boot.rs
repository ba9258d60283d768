use std::time::Duration;

/// An instant on a clock that also runs while the machine sleeps.
///
/// [`std::time::Instant`] is `CLOCK_MONOTONIC` on Linux, which stops during suspend, while a server keeps
/// counting. A deadline that must not be missed therefore uses `CLOCK_BOOTTIME`. Other systems use
/// their monotonic clock. If a hypervisor stops a virtual machine, none of its clocks advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// The present instant.
    #[must_use]
    pub fn now() -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let clock = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The time from `earlier` until this instant; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from now until this instant; zero when it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.since(Self::now())
    }

    /// This instant moved forward, at most to the end of time.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// This instant moved backward, at most to the boot of the machine.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    /// An instant `span` after the clock's zero, for simulations.
    #[doc(hidden)]
    #[must_use]
    pub fn at(span: Duration) -> Self {
        Self(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_and_arithmetic_saturates() {
        let first = BootInstant::now();
        let second = BootInstant::now();
        assert!(second >= first);
        assert_eq!(first.since(second.after(Duration::from_secs(1))), Duration::ZERO);
        assert!(first.after(Duration::MAX) > second);
        assert_eq!(first.before(Duration::MAX), BootInstant::at(Duration::ZERO));
    }
}
