//! Which slot is due: pure. All times are milliseconds since 1970, by the servers' clock.

use std::time::Duration;

/// The treatment of slots that began while no process was there to do them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// Only the newest slot that has begun is due, however late. Earlier ones are never due.
    #[default]
    Skip,
    /// Every slot that has begun since the last done one is due, the oldest first.
    CatchUp,
}

/// The slots of a schedule: one begins at `offset`, and one each `interval` after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    interval: u64,
    offset: u64,
}

/// The decision of the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotDecision {
    /// There is no record: the slots after this one count.
    Begin { slot: u64 },
    /// No slot is due for this number of milliseconds.
    Wait { millis: u64 },
    /// This slot is due. `missed` other slots have begun, and were not done.
    Due { slot: u64, missed: u64 },
}

impl Slots {
    /// `None` if the interval is no whole number of milliseconds, or zero.
    pub(super) fn every(interval: Duration) -> Option<Self> {
        let millis = u64::try_from(interval.as_millis()).ok()?;
        let is_whole = Duration::from_millis(millis) == interval;
        (is_whole && millis > 0).then_some(Self { interval: millis, offset: 0 })
    }

    pub(super) fn interval(self) -> u64 {
        self.interval
    }

    pub(super) fn with_offset(self, offset: Duration) -> Self {
        let offset = offset.as_millis().checked_rem(u128::from(self.interval)).unwrap_or_default();
        Self { offset: u64::try_from(offset).unwrap_or_default(), ..self }
    }

    /// The newest slot that has begun at `now`. `None` before the first one.
    fn newest(self, now: u64) -> Option<u64> {
        let since = now.checked_sub(self.offset)?;
        Some(now.saturating_sub(since.checked_rem(self.interval)?))
    }

    /// The first slot after `time`.
    pub(super) fn next(self, time: u64) -> u64 {
        self.newest(time).map_or(self.offset, |newest| newest.saturating_add(self.interval))
    }

    /// Decides what the head does at `now`, with the last recorded slot.
    pub(super) fn decide(self, last: Option<u64>, now: u64, missed: Missed) -> SlotDecision {
        let newest = self.newest(now);
        let Some(last) = last else {
            return SlotDecision::Begin { slot: newest.unwrap_or_default() };
        };
        let oldest = self.next(last);
        let Some(newest) = newest.filter(|newest| oldest <= *newest) else {
            return SlotDecision::Wait { millis: oldest.saturating_sub(now).max(1) };
        };
        let others = newest.saturating_sub(oldest).checked_div(self.interval).unwrap_or_default();
        match missed {
            Missed::Skip => SlotDecision::Due { slot: newest, missed: others },
            Missed::CatchUp => SlotDecision::Due { slot: oldest, missed: others },
        }
    }
}

/// The longest sleep between two looks at the servers' clock.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);
/// A wait that is not longer than this is one sleep.
const SLEEP_WHOLE: Duration = Duration::from_secs(10);

/// How long to sleep before the next look at the servers' clock, if the slot begins in `millis`.
///
/// A long wait is slept in parts, each nine tenths of the rest. So the error of the local clock counts only
/// for the last part of the sleep.
pub(super) fn sleep_for(millis: u64) -> Duration {
    let whole = Duration::from_millis(millis);
    match whole <= SLEEP_WHOLE {
        true => whole,
        false => (whole / 10 * 9).min(SLEEP_MAX),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slots(interval: u64, offset: u64) -> Slots {
        let slots = Slots::every(Duration::from_millis(interval)).unwrap();
        slots.with_offset(Duration::from_millis(offset))
    }

    #[test]
    fn a_slot_begins_at_the_offset_and_each_interval_after_it() {
        for (interval, offset, now, newest, next) in [
            (100, 0, 0, Some(0), 100),
            (100, 0, 99, Some(0), 100),
            (100, 0, 100, Some(100), 200),
            (100, 30, 29, None, 30),
            (100, 30, 30, Some(30), 130),
            (100, 30, 129, Some(30), 130),
            (100, 130, 129, Some(30), 130),
            (1, 0, 7, Some(7), 8),
            (u64::MAX, 0, u64::MAX - 1, Some(0), u64::MAX),
            (100, 0, u64::MAX, Some(u64::MAX / 100 * 100), u64::MAX),
        ] {
            let slots = slots(interval, offset);
            assert_eq!((slots.newest(now), slots.next(now)), (newest, next), "{slots:?} at {now}");
        }
    }

    #[test]
    fn an_interval_is_a_whole_number_of_milliseconds() {
        for refused in [Duration::ZERO, Duration::from_micros(1_500), Duration::MAX] {
            assert_eq!(Slots::every(refused), None, "{refused:?}");
        }
        assert_eq!(Slots::every(Duration::from_secs(1)).map(Slots::interval), Some(1_000));
    }

    #[test]
    fn a_slot_is_due_from_its_begin_until_a_later_one_is_done() {
        let due = |slot, missed| SlotDecision::Due { slot, missed };
        let wait = |millis| SlotDecision::Wait { millis };
        for (last, now, skip, catch_up) in [
            (None, 250, SlotDecision::Begin { slot: 200 }, SlotDecision::Begin { slot: 200 }),
            (Some(200), 200, wait(100), wait(100)),
            (Some(200), 299, wait(1), wait(1)),
            (Some(200), 300, due(300, 0), due(300, 0)),
            (Some(200), 399, due(300, 0), due(300, 0)),
            (Some(200), 555, due(500, 2), due(300, 2)),
            // The servers' clock was set back, or the last slot is of a shorter interval.
            (Some(900), 300, wait(700), wait(700)),
            (Some(250), 310, due(300, 0), due(300, 0)),
            (Some(250), 299, wait(1), wait(1)),
        ] {
            for (missed, decision) in [(Missed::Skip, skip), (Missed::CatchUp, catch_up)] {
                assert_eq!(
                    slots(100, 0).decide(last, now, missed),
                    decision,
                    "{last:?} at {now}, {missed:?}"
                );
            }
        }
        assert_eq!(slots(100, 30).decide(None, 20, Missed::Skip), SlotDecision::Begin { slot: 0 });
        assert_eq!(slots(100, 30).decide(Some(0), 20, Missed::Skip), wait(10));
    }

    #[test]
    fn a_long_wait_is_slept_in_parts() {
        let secs = Duration::from_secs;
        for (wait, sleep) in [
            (secs(1), secs(1)),
            (secs(10), secs(10)),
            (secs(11), Duration::from_millis(9_900)),
            (secs(1_000), secs(900)),
            (secs(86_400), secs(3_600)),
            (Duration::from_millis(u64::MAX), secs(3_600)),
        ] {
            assert_eq!(sleep_for(u64::try_from(wait.as_millis()).unwrap()), sleep, "{wait:?}");
        }
    }

    proptest! {
        /// For any times: no slot is due twice, none before it begins, and their order is that of time.
        #[test]
        fn no_slot_is_due_twice_and_none_before_it_begins(
            (interval, offset) in (1u64..5_000, 0u64..9_000),
            steps in prop::collection::vec((-20_000i64..20_000, any::<bool>(), any::<bool>()), 1..100),
        ) {
            let slots = slots(interval, offset);
            let (mut now, mut last) = (50_000u64, None);
            for (jump, is_done, is_catching_up) in steps {
                now = now.saturating_add_signed(jump);
                let missed = if is_catching_up { Missed::CatchUp } else { Missed::Skip };
                match slots.decide(last, now, missed) {
                    SlotDecision::Begin { slot } => {
                        prop_assert!(last.is_none() && slot <= now);
                        last = Some(slot);
                    }
                    SlotDecision::Wait { millis } => {
                        let at = now + millis;
                        let is_due = matches!(slots.decide(last, at, missed), SlotDecision::Due { .. });
                        prop_assert!(is_due && millis > 0);
                    }
                    SlotDecision::Due { slot, .. } => {
                        prop_assert!(slot <= now && last < Some(slot));
                        prop_assert_eq!(slot % interval, offset % interval);
                        last = if is_done { Some(slot) } else { last };
                    }
                }
            }
        }

        /// A process that catches up does every slot, and counts those that are left.
        #[test]
        fn catching_up_does_every_slot(interval in 1u64..500, last in 0u64..5_000, later in 0u64..20_000) {
            let slots = slots(interval, 0);
            let begun = slots.newest(last).unwrap();
            let (mut done, now) = (begun, last + later);
            while let SlotDecision::Due { slot, missed } = slots.decide(Some(done), now, Missed::CatchUp) {
                prop_assert_eq!(slot, done + interval);
                prop_assert_eq!(missed, (now / interval * interval - slot) / interval);
                done = slot;
            }
            prop_assert_eq!(done, now / interval * interval);
        }

        #[test]
        fn no_time_panics(
            (interval, offset, last, now) in (1u64.., any::<u64>(), any::<u64>(), any::<u64>()),
        ) {
            for missed in [Missed::Skip, Missed::CatchUp] {
                let decision = slots(interval, offset).decide(Some(last), now, missed);
                let is_hasty = matches!(decision, SlotDecision::Wait { millis: 0 });
                prop_assert!(!is_hasty);
            }
        }
    }
}
