use std::time::Duration;

use lockkeeper_core::ZnodePath;

use super::decide::Limits;

/// The shortest time from a request to a start.
const GRACE_MIN: Duration = Duration::from_millis(10);

/// The time from a request to a start while no round trip was measured, at least.
const GRACE_UNMEASURED: Duration = Duration::from_millis(50);

/// A turn may last so long.
const PATIENCE_MIN: Duration = Duration::from_millis(20);

/// How many starts a window has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StartsLimit {
    /// Every user of the limiter gives this number.
    Fixed(u32),
    /// The node at this path has the number, which can change.
    Shared(ZnodePath),
}

/// The path and the numbers of a limiter: limiters of one manager in which they are equal share a contender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LimiterKey {
    path: ZnodePath,
    starts: StartsLimit,
    window: Duration,
    grace: Option<Duration>,
}

impl LimiterKey {
    pub(super) fn new(path: ZnodePath, starts: StartsLimit, window: Duration) -> Self {
        Self { path, starts, window, grace: None }
    }

    pub(super) fn with_grace(self, grace: Duration) -> Self {
        Self { grace: Some(grace), ..self }
    }

    pub(super) fn path(&self) -> &ZnodePath {
        &self.path
    }

    pub(super) fn starts(&self) -> &StartsLimit {
        &self.starts
    }

    /// The number that every user gives.
    pub(super) fn fixed_starts(&self) -> Option<u32> {
        match self.starts {
            StartsLimit::Fixed(starts) => Some(starts),
            StartsLimit::Shared(_) => None,
        }
    }

    /// The path of the node with the number.
    pub(super) fn shared_path(&self) -> Option<&ZnodePath> {
        match &self.starts {
            StartsLimit::Fixed(_) => None,
            StartsLimit::Shared(path) => Some(path),
        }
    }

    pub(super) fn window(&self) -> Duration {
        self.window
    }

    /// The window in milliseconds. Rounded up, so that no start comes a part of a millisecond too early.
    pub(super) fn window_millis(&self) -> i64 {
        let window = i64::try_from(self.window.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX / 4);
        window.min(i64::MAX / 4)
    }

    /// The numbers of the limiter, with so many starts in a window.
    pub(super) fn limits(&self, starts: u32) -> Limits {
        Limits { starts, window: self.window_millis() }
    }

    /// The time for which an admission is fresh, if the last request took so long.
    pub(super) fn grace(&self, round_trip: Option<Duration>) -> Duration {
        self.grace.unwrap_or_else(|| {
            let (least, most) = (GRACE_MIN.max(self.window / 100), GRACE_UNMEASURED.max(self.window / 10));
            round_trip.map_or(most, |round_trip| round_trip.saturating_mul(4)).clamp(least, most)
        })
    }

    /// The time in which a process takes starts in one turn, although others wait: no longer than it takes to
    /// let them have it, unless that is short. All of them have a turn in a window.
    pub(super) fn patience(&self, round_trip: Option<Duration>, contenders: u32) -> Duration {
        let hand_over = round_trip.unwrap_or_default().saturating_mul(4).max(PATIENCE_MIN);
        hand_over.min(self.window / contenders.max(1))
    }

    /// The set grace, for people.
    pub(super) fn set_grace(&self) -> Option<Duration> {
        self.grace
    }

    /// The time in which the limiter admits this many starts, in the long run, with `limit` in a window.
    pub(super) fn time_of(&self, starts: u32, limit: u32) -> Duration {
        let window = self.window.saturating_add(self.grace(None));
        window.saturating_mul(starts.max(1)) / limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admission_is_fresh_for_some_round_trips_and_for_a_part_of_the_window() {
        let starts = || StartsLimit::Fixed(1);
        let key = |window| LimiterKey::new("/a".parse().unwrap(), starts(), Duration::from_millis(window));
        let grace =
            |window, millis: Option<u64>| key(window).grace(millis.map(Duration::from_millis)).as_millis();
        assert_eq!(grace(1_000, None), 100);
        assert_eq!(grace(1_000, Some(1)), 10);
        assert_eq!(grace(1_000, Some(9)), 36);
        assert_eq!(grace(1_000, Some(90)), 100);
        assert_eq!(grace(60_000, Some(1)), 600);
        assert_eq!(grace(5, Some(1)), 10);
        assert_eq!(key(1_000).with_grace(Duration::ZERO).grace(None), Duration::ZERO);
    }
}
