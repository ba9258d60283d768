//! What is known of contenders in other processes, and how often the node may be handed off: pure.

use std::time::Duration;

use super::hand_off_policy::HandOffPolicy;

/// The contenders of other processes, by what the watching task has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum KnownContenders {
    /// The task does not watch yet.
    Unwatched,
    /// The watch has no answer yet: there may be contenders.
    Pending(HandOffBudget),
    /// There is no other contender.
    Alone,
    /// There are other contenders.
    Contended(HandOffBudget),
    /// No contender is watched for any more, or the node has to end: nothing is handed off.
    Ended,
}

/// The hand-offs that are left to this process, once other contenders wait or may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HandOffBudget {
    handoffs_left: u32,
    until: Duration,
}

impl HandOffBudget {
    fn new(policy: HandOffPolicy, now: Duration) -> Self {
        Self { handoffs_left: policy.max_handoffs, until: now.saturating_add(policy.max_time) }
    }

    /// Takes one hand-off. Returns false if none is left.
    fn take(&mut self, now: Duration) -> bool {
        let left = self.handoffs_left.checked_sub(1).filter(|_| now < self.until);
        self.handoffs_left = left.unwrap_or(self.handoffs_left);
        left.is_some()
    }
}

impl KnownContenders {
    /// A second guard needs the node. Returns true if the watch has to start.
    pub(super) fn ask(&mut self, policy: HandOffPolicy, now: Duration) -> bool {
        let is_first = *self == Self::Unwatched;
        if is_first {
            *self = Self::Pending(HandOffBudget::new(policy, now));
        }
        is_first
    }

    /// Takes one hand-off. Returns false if none is left.
    pub(super) fn take_handoff(&mut self, now: Duration) -> bool {
        match self {
            Self::Alone => true,
            Self::Unwatched | Self::Ended => false,
            Self::Pending(budget) | Self::Contended(budget) => budget.take(now),
        }
    }

    /// Whether the node may be idle: no other contender is known.
    pub(super) fn may_idle(self) -> bool {
        matches!(self, Self::Alone | Self::Pending(_))
    }

    pub(super) fn set_alone(&mut self, is_alone: bool, policy: HandOffPolicy, now: Duration) {
        *self = match *self {
            Self::Pending(_) | Self::Contended(_) if is_alone => Self::Alone,
            Self::Alone if !is_alone => Self::Pending(HandOffBudget::new(policy, now)),
            other => other,
        };
    }

    pub(super) fn mark_contended(&mut self, policy: HandOffPolicy, now: Duration) {
        *self = match *self {
            // The hand-offs of which it was not known whether another contender waited count.
            Self::Pending(budget) | Self::Contended(budget) => Self::Contended(budget),
            Self::Unwatched | Self::Alone => Self::Contended(HandOffBudget::new(policy, now)),
            Self::Ended => Self::Ended,
        };
    }

    /// Learns what a watch shows that began earlier. The hand-offs of this node are counted from now on.
    pub(super) fn learn(&mut self, known: Self, policy: HandOffPolicy, now: Duration) {
        match known {
            Self::Alone => self.set_alone(true, policy, now),
            Self::Contended(_) => self.mark_contended(policy, now),
            Self::Unwatched | Self::Pending(_) | Self::Ended => {}
        }
    }

    /// No hand-off is left.
    pub(super) fn end_handoffs(&mut self, now: Duration) {
        if *self != Self::Ended {
            *self = Self::Contended(HandOffBudget { handoffs_left: 0, until: now });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_before_another_contender_is_seen_count() {
        let policy = HandOffPolicy::default().max_handoffs(2).max_time(Duration::from_secs(3600));
        let (mut contenders, now) = (KnownContenders::Unwatched, Duration::ZERO);
        assert!(contenders.ask(policy, now));
        assert!(contenders.take_handoff(now), "another contender may wait already");
        contenders.mark_contended(policy, now);
        assert!(contenders.take_handoff(now));
        assert!(!contenders.take_handoff(now), "more than the policy allows");
    }

    #[test]
    fn hand_offs_end_with_the_time_of_the_policy() {
        let policy = HandOffPolicy::default().max_time(Duration::from_secs(3));
        let mut contenders = KnownContenders::Unwatched;
        contenders.ask(policy, Duration::from_secs(10));
        assert!(contenders.take_handoff(Duration::from_millis(12_999)));
        assert!(!contenders.take_handoff(Duration::from_secs(13)));
        // A later answer that there is none ends the limit.
        contenders.set_alone(true, policy, Duration::from_secs(13));
        assert!(contenders.take_handoff(Duration::from_secs(100)));
    }

    #[test]
    fn only_the_answer_that_there_is_none_ends_the_limit_and_only_until_another_contender_may_wait() {
        let policy = HandOffPolicy::default().max_handoffs(1);
        let now = Duration::ZERO;
        let is_limited = |mut contenders: KnownContenders| {
            contenders.take_handoff(now);
            !contenders.take_handoff(now)
        };
        let mut contenders = KnownContenders::Unwatched;
        contenders.ask(policy, now);
        contenders.set_alone(false, policy, now);
        assert!(is_limited(contenders), "no answer yet");
        for _ in 0..2 {
            contenders.set_alone(true, policy, now);
            assert!(!is_limited(contenders) && contenders.may_idle());
        }
        let mut contended = contenders;
        contenders.set_alone(false, policy, now);
        assert!(is_limited(contenders) && contenders.may_idle());
        contended.mark_contended(policy, now);
        assert!(is_limited(contended) && !contended.may_idle());
        assert!(contended.take_handoff(now), "the limit allows one");
    }
}
