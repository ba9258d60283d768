//! The instances that failed lately: pure.

use std::collections::HashMap;
use std::time::Duration;

use lockkeeper_core::BootInstant;
use lockkeeper_core::Zxid;

/// When an instance that fails is not chosen for a while.
///
/// As Curator's `DownInstancePolicy`, and with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailurePolicy {
    failures: u32,
    time: Duration,
}

impl FailurePolicy {
    /// An instance that fails `failures` times within `time` is not chosen until `time` after the first of
    /// these failures. Default: 2 within 30 seconds. With 0 as with 1 a single failure is enough.
    #[must_use]
    pub fn new(failures: u32, time: Duration) -> Self {
        Self { failures, time }
    }
}

impl Default for FailurePolicy {
    fn default() -> Self {
        Self::new(2, Duration::from_secs(30))
    }
}

/// The failures by id.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<String, Failed>);

#[derive(Debug)]
struct Failed {
    /// Of the node. An instance that was registered anew has not failed yet.
    czxid: Zxid,
    count: u32,
    since: BootInstant,
}

impl Failures {
    pub(super) fn report(&mut self, id: &str, czxid: Zxid, now: BootInstant, policy: FailurePolicy) {
        let fresh = || Failed { czxid, count: 0, since: now };
        let failed = self.0.entry(id.to_owned()).or_insert_with(fresh);
        if failed.czxid != czxid || is_over(failed, now, policy) {
            *failed = fresh();
        }
        failed.count = failed.count.saturating_add(1);
    }

    /// Forgets what is over. Returns whether nothing is left.
    pub(super) fn forget(&mut self, now: BootInstant, policy: FailurePolicy) -> bool {
        self.0.retain(|_, failed| !is_over(failed, now, policy));
        self.0.is_empty()
    }

    /// Whether the instance should not be chosen now. [`forget`](Self::forget) comes first.
    pub(super) fn is_down(&self, id: &str, czxid: Zxid, policy: FailurePolicy) -> bool {
        self.0.get(id).is_some_and(|failed| failed.czxid == czxid && failed.count >= policy.failures)
    }
}

fn is_over(failed: &Failed, now: BootInstant, policy: FailurePolicy) -> bool {
    now >= failed.since.after(policy.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: FailurePolicy = FailurePolicy { failures: 2, time: Duration::from_secs(30) };

    fn at(seconds: u64) -> BootInstant {
        BootInstant::at(Duration::from_secs(seconds))
    }

    #[test]
    fn an_instance_is_down_after_enough_failures_until_the_time_is_over() {
        let mut failures = Failures::default();
        failures.report("a", Zxid::new(1), at(0), POLICY);
        assert!(!failures.forget(at(0), POLICY) && !failures.is_down("a", Zxid::new(1), POLICY));
        failures.report("a", Zxid::new(1), at(29), POLICY);
        assert!(!failures.forget(at(29), POLICY) && failures.is_down("a", Zxid::new(1), POLICY));
        assert!(!failures.is_down("b", Zxid::new(1), POLICY));
        assert!(failures.forget(at(30), POLICY) && !failures.is_down("a", Zxid::new(1), POLICY));
        // Two failures, but not within the time.
        failures.report("a", Zxid::new(1), at(40), POLICY);
        failures.report("a", Zxid::new(1), at(70), POLICY);
        assert!(!failures.forget(at(70), POLICY) && !failures.is_down("a", Zxid::new(1), POLICY));
    }

    #[test]
    fn an_instance_that_registers_anew_has_not_failed() {
        let mut failures = Failures::default();
        failures.report("a", Zxid::new(1), at(0), POLICY);
        failures.report("a", Zxid::new(1), at(0), POLICY);
        assert!(failures.is_down("a", Zxid::new(1), POLICY) && !failures.is_down("a", Zxid::new(2), POLICY));
        failures.report("a", Zxid::new(2), at(1), POLICY);
        assert!(!failures.is_down("a", Zxid::new(2), POLICY));
    }

    #[test]
    fn a_single_failure_is_enough_if_the_policy_says_so() {
        for count in [0, 1] {
            let policy = FailurePolicy::new(count, Duration::from_secs(1));
            let mut failures = Failures::default();
            assert!(!failures.is_down("a", Zxid::new(1), policy));
            failures.report("a", Zxid::new(1), at(0), policy);
            assert!(failures.is_down("a", Zxid::new(1), policy));
        }
    }
}
