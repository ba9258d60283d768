//! The starts that were taken before a call asks for them: pure.

use std::collections::VecDeque;
use std::time::Duration;

use lockkeeper_core::BootInstant;

/// Starts that were recorded by a request that was not sent before `sent`. They are fresh for `grace` after
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedStarts {
    pub(super) sent: BootInstant,
    pub(super) grace: Duration,
}

/// The ready starts, by the time of their records.
#[derive(Debug, Default)]
pub(super) struct StartsAhead(VecDeque<(u32, RecordedStarts)>);

impl StartsAhead {
    pub(super) fn add(&mut self, starts: u32, admitted: RecordedStarts) {
        self.0.push_back((starts, admitted));
    }

    /// The number of starts that are fresh.
    pub(super) fn ready(&mut self, now: BootInstant) -> u32 {
        self.0.retain(|(_, admitted)| now < admitted.sent.after(admitted.grace));
        self.0.iter().fold(0, |sum, (starts, _)| sum.saturating_add(*starts))
    }

    /// Takes so many starts of one record: they are fresh until the same instant.
    pub(super) fn take(&mut self, starts: u32, now: BootInstant) -> Option<RecordedStarts> {
        if self.ready(now) < starts {
            return None;
        }
        let (ready, admitted) = self.0.iter_mut().find(|(ready, _)| *ready >= starts)?;
        *ready -= starts;
        let admitted = *admitted;
        self.0.retain(|(ready, _)| *ready > 0);
        Some(admitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::at(Duration::from_millis(millis))
    }

    fn admitted(millis: u64) -> RecordedStarts {
        RecordedStarts { sent: at(millis), grace: Duration::from_millis(10) }
    }

    #[test]
    fn starts_are_taken_once_while_they_are_fresh_and_the_older_ones_first() {
        let mut ahead = StartsAhead::default();
        ahead.add(2, admitted(0));
        ahead.add(3, admitted(5));
        assert_eq!(ahead.take(1, at(9)), Some(admitted(0)));
        assert_eq!(ahead.take(3, at(9)), Some(admitted(5)));
        assert_eq!(ahead.take(2, at(9)), None);
        assert_eq!(ahead.take(1, at(9)), Some(admitted(0)));
        assert_eq!(ahead.take(1, at(9)), None);
        ahead.add(2, admitted(10));
        assert_eq!((ahead.ready(at(19)), ahead.ready(at(20))), (2, 0));
        assert_eq!(ahead.take(1, at(19)), None, "forgotten");
    }
}
