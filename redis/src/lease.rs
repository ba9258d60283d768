use std::time::Duration;

use lockkeeper_lock::BootInstant;

/// How long a hold is valid: pure.
///
/// The server counts the lease from the time at which it processes a request. The base is the instant before
/// that request was sent, so the lease ends here first. It ends one per cent and two milliseconds earlier,
/// because clock rates differ and the server counts whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseClock {
    base: BootInstant,
    lease: Duration,
}

impl LeaseClock {
    /// A lease that a request confirmed, which was sent at `base`.
    pub(crate) fn new(base: BootInstant, lease: Duration) -> Self {
        Self { base, lease }
    }

    /// A later request confirms the lease anew.
    pub(crate) fn confirm(&mut self, sent: BootInstant) {
        self.base = self.base.max(sent);
    }

    pub(crate) fn valid_until(&self) -> BootInstant {
        let margin = (self.lease / 100).saturating_add(Duration::from_millis(2));
        self.base.after(self.lease.saturating_sub(margin))
    }

    pub(crate) fn is_valid(&self, now: BootInstant) -> bool {
        now < self.valid_until()
    }

    /// Whether a third of the lease has passed: two more requests can fail before it ends.
    pub(crate) fn is_renewal_due(&self, now: BootInstant) -> bool {
        now.since(self.base) >= self.lease / 3
    }

    /// Whether less than half of the lease is left.
    pub(crate) fn is_half_over(&self, now: BootInstant) -> bool {
        now.since(self.base) >= self.lease / 2
    }
}

/// The interval at which a waiter tells the server that it is alive: three in a lease.
pub(crate) fn refresh_interval(lease: Duration) -> Duration {
    lease / 3
}

/// The interval at which the head of the queue looks at a lock that another program holds: nothing else tells
/// of its release.
pub(crate) fn foreign_interval(lease: Duration) -> Duration {
    (lease / 40).clamp(Duration::from_millis(10), Duration::from_millis(250))
}

/// The time limit of one request: several fit into a lease.
pub(crate) fn request_limit(lease: Duration) -> Duration {
    lease / 4
}

/// The interval at which the holds are searched for renewals that are due.
pub(crate) fn renewal_check(lease: Duration) -> Duration {
    (lease / 24).max(Duration::from_millis(2))
}

/// The interval at which a wait for a loss reads the clock: timers do not run while the machine sleeps.
pub(crate) fn clock_check(lease: Duration) -> Duration {
    (lease / 400).clamp(Duration::from_millis(2), Duration::from_millis(250))
}

/// How long a waiter rests before it asks again.
pub(crate) fn next_look(
    lease: Duration,
    ahead: u32,
    holder_ends: Option<Duration>,
    is_foreign: bool,
) -> Duration {
    let refresh = refresh_interval(lease);
    if ahead > 0 {
        return refresh;
    }
    // Only the head looks when the lease of the holder ends, just after it.
    let at_end = holder_ends.map_or(refresh, |ends| ends.saturating_add(Duration::from_millis(2)));
    let own = refresh.min(at_end);
    if is_foreign { own.min(foreign_interval(lease)) } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_lease_ends_before_that_of_the_server_and_a_confirmation_never_shortens_it() {
        let mut clock = LeaseClock::new(at(1_000), Duration::from_secs(10));
        assert_eq!(clock.valid_until(), at(1_000 + 10_000 - 102));
        assert!(clock.is_valid(at(10_897)) && !clock.is_valid(at(10_898)));
        clock.confirm(at(500));
        assert_eq!(clock, LeaseClock::new(at(1_000), Duration::from_secs(10)));
        clock.confirm(at(5_000));
        assert!(clock.is_valid(at(14_000)));
    }

    #[test]
    fn renewals_leave_time_for_two_failures() {
        for lease in [Duration::from_millis(100), Duration::from_secs(15), Duration::from_secs(3_600)] {
            let latest = lease / 3 + renewal_check(lease);
            assert!(latest + 2 * request_limit(lease) < lease - lease / 100 - Duration::from_millis(2));
            assert!(refresh_interval(lease) + request_limit(lease) < lease);
        }
    }

    #[test]
    fn only_the_head_looks_when_the_holders_lease_ends_and_only_behind_a_foreign_holder_more_often() {
        let lease = Duration::from_secs(15);
        let soon = Some(Duration::from_millis(300));
        assert_eq!(next_look(lease, 1, soon, true), Duration::from_secs(5));
        assert_eq!(next_look(lease, 0, soon, false), Duration::from_millis(302));
        assert_eq!(next_look(lease, 0, None, true), Duration::from_millis(250));
        assert_eq!(next_look(lease, 0, Some(Duration::from_secs(9)), false), Duration::from_secs(5));
    }
}
