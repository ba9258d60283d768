//! How much other clients are in the way of the attempts: pure.

use std::time::Duration;

/// Above this level an attempt is preceded by a pause.
const PAUSELESS: u32 = 2;
/// Pauses are at most 64 round trips long.
const LEVEL_MAX: u32 = PAUSELESS + 6;

/// Rises with every attempt that another client's change refused, and falls with every one that was applied.
///
/// So about half of the attempts of a client that never rests are applied, however many such clients there
/// are: a pause costs less than the requests of an attempt that is refused.
#[derive(Debug, Default)]
pub(super) struct WriteContention {
    level: u32,
    /// The time from the last attempt to its answer.
    round_trip: Duration,
}

impl WriteContention {
    /// Records the time that an attempt took.
    pub(super) fn took(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// Records an attempt that was applied.
    pub(super) fn applied(&mut self) {
        self.level = self.level.saturating_sub(1);
    }

    /// Records an attempt that another client's change refused.
    pub(super) fn refused(&mut self) {
        self.level = (self.level + 1).min(LEVEL_MAX);
    }

    /// Whether the node is read behind the next attempt: the attempt is likely to be refused, and no pause
    /// would follow.
    pub(super) fn reads_behind(&self) -> bool {
        (1..PAUSELESS).contains(&self.level)
    }

    /// The pause before the node is read for the next attempt, by a random number.
    pub(super) fn pause(&self, drawn: u32) -> Duration {
        match self.level.checked_sub(PAUSELESS + 1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let longest = self.round_trip * (2 << doublings);
                longest.mul_f64(f64::from(drawn) / f64::from(u32::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_each_refusal_and_shrink_with_each_change_that_is_applied() {
        let trip = Duration::from_millis(10);
        let mut contention = WriteContention::default();
        contention.took(trip);
        let mut longest = Vec::new();
        for _ in 0..10 {
            contention.refused();
            assert_eq!(contention.pause(0), Duration::ZERO);
            longest.push(contention.pause(u32::MAX).as_millis() / trip.as_millis());
        }
        assert_eq!(longest, [0, 0, 2, 4, 8, 16, 32, 64, 64, 64], "in round trips");
        for longest in [32, 16, 8, 4, 2, 0, 0, 0] {
            contention.applied();
            assert_eq!(contention.pause(u32::MAX), trip * longest);
        }
        assert!(!contention.reads_behind());
    }

    #[test]
    fn a_read_is_sent_behind_an_attempt_only_if_its_answer_would_be_used_at_once() {
        let mut contention = WriteContention::default();
        let reads = std::iter::from_fn(|| {
            let reads = contention.reads_behind();
            contention.refused();
            Some(reads)
        });
        assert_eq!(reads.take(4).collect::<Vec<_>>(), [false, true, false, false]);
    }
}
