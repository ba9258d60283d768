//! How many starts a batch takes, and how long the others wait: pure. All times are milliseconds by the
//! servers' clock.

/// A turn may take so many starts, if that is no more than an equal part of the limit. A turn costs requests,
/// whatever it takes.
const TURN_STARTS: u32 = 4;

/// So many records are kept: older ones are merged.
pub(super) const RECORDS_MAX: usize = 64;

/// Starts that one write recorded, or several writes whose records were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowRecord {
    /// The time of the write; of the latest one, if there were several.
    pub(super) at: i64,
    pub(super) starts: u32,
    /// The time after the write in which a caller may start.
    pub(super) grace: i64,
}

/// The numbers of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The starts in a window.
    pub(super) starts: u32,
    /// The length of the window.
    pub(super) window: i64,
}

/// The starts that may still count, by the time of their records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window(Vec<WindowRecord>);

/// What the head of the queue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimiterStep {
    /// Record so many starts, for so many of the first requests. The time of the write shows whether there
    /// was room.
    Admit { requests: usize, starts: u32 },
    /// Ask the servers for the time: there may be room.
    LearnTime,
    /// Wait for so many milliseconds: there is no room before.
    Wait(i64),
    /// Let the others have their turn: this one has had its share.
    HandOver,
}

/// The turn of a process, and the others that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TurnLimits {
    /// The processes in the queue, with this one.
    pub(super) contenders: u32,
    /// The starts that this turn has taken.
    pub(super) taken: u32,
    /// For so many milliseconds a turn that has taken starts waits for more.
    pub(super) patience: i64,
}

/// The servers' time, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Now {
    /// A write has shown this time. It is not later than the time of the next write.
    pub(super) proven: i64,
    /// It is about this time, and probably later. `None` if no answer has shown a time yet.
    pub(super) estimated: Option<i64>,
}

impl WindowRecord {
    /// The first time at which it does not count. A time in whole milliseconds may be up to one more.
    fn over_at(&self, window: i64) -> i64 {
        self.at.saturating_add(window).saturating_add(self.grace).saturating_add(1)
    }
}

impl Window {
    pub(super) fn records(&self) -> &[WindowRecord] {
        &self.0
    }

    /// Adds a record that is not earlier than the others. If there are too many, merges the two neighbours
    /// that lose least by it: the starts of the earlier one count for as long as those of the later one.
    pub(super) fn add(&mut self, record: WindowRecord) {
        let at = record.at.max(self.0.last().map_or(record.at, |last| last.at));
        self.0.push(WindowRecord { at, ..record });
        while self.0.len() > RECORDS_MAX {
            let cost = |pair: &[WindowRecord]| match pair {
                [one, next] => next.at.saturating_sub(one.at).saturating_mul(i64::from(one.starts)),
                _ => i64::MAX,
            };
            let costs = self.0.windows(2).map(cost).enumerate();
            let Some((place, _)) = costs.min_by_key(|(_, cost)| *cost) else { return };
            let one = self.0.remove(place);
            if let Some(next) = self.0.get_mut(place) {
                next.starts = next.starts.saturating_add(one.starts);
                next.grace = next.grace.max(one.grace);
            }
        }
    }

    /// Forgets the starts that are over at `now`.
    pub(super) fn forget_over(&mut self, window: i64, now: i64) {
        self.0.retain(|record| record.over_at(window) > now);
    }

    /// The number of starts that count at `now`.
    pub(super) fn used(&self, window: i64, now: i64) -> u32 {
        let counting = self.0.iter().filter(|record| record.over_at(window) > now);
        counting.fold(0, |sum, record| sum.saturating_add(record.starts))
    }

    /// The first time at which nothing counts. `None` if nothing is recorded.
    pub(super) fn over_at(&self, window: i64) -> Option<i64> {
        self.0.iter().map(|record| record.over_at(window)).max()
    }

    /// The first time at which there is room for `starts` more.
    pub(super) fn room_at(&self, limits: Limits, starts: u32) -> i64 {
        let mut ends: Vec<(i64, u32)> =
            self.0.iter().map(|record| (record.over_at(limits.window), record.starts)).collect();
        ends.sort_unstable();
        let recorded: u64 = ends.iter().map(|(_, starts)| u64::from(*starts)).sum();
        let mut above = recorded.saturating_add(starts.into()).saturating_sub(limits.starts.into());
        let mut at = i64::MIN;
        for (end, starts) in ends {
            if above == 0 {
                break;
            }
            above = above.saturating_sub(starts.into());
            at = end;
        }
        at
    }

    /// The time from `now` until there is room for `starts` more, behind `ahead` others that want to start.
    pub(super) fn wait(&self, limits: Limits, ahead: u64, starts: u32, now: i64) -> i64 {
        let limit = u64::from(limits.starts.max(1));
        let all = ahead.saturating_add(starts.into());
        // The starts of whole windows that come before.
        let whole = all.saturating_sub(1) / limit;
        let rest = u32::try_from(all - whole * limit).unwrap_or(limits.starts);
        let later = i64::try_from(whole).unwrap_or(i64::MAX).saturating_mul(limits.window);
        self.room_at(limits, rest).saturating_sub(now).max(0).saturating_add(later)
    }
}

/// Decides for the head of the queue, whose process asks for these numbers of starts, in the order of the
/// calls.
pub(super) fn next(
    window: &Window,
    limits: Limits,
    now: Now,
    asked: &[u32],
    turn: TurnLimits,
) -> LimiterStep {
    let first = asked.first().copied().unwrap_or_default();
    let goes_on = turn.taken > 0 && turn.contenders > 1;
    let room_at = window.room_at(limits, first);
    if room_at > now.proven {
        match now.estimated.map(|estimated| room_at.saturating_sub(estimated)) {
            Some(millis) if goes_on && millis > turn.patience => return LimiterStep::HandOver,
            Some(millis) if millis > 0 => return LimiterStep::Wait(millis),
            Some(_) => {}
            None => return LimiterStep::LearnTime,
        }
    }
    let probable = now.estimated.map_or(now.proven, |estimated| estimated.max(now.proven));
    let free = limits.starts.saturating_sub(window.used(limits.window, probable));
    let share = match turn.contenders {
        ..=1 => free,
        // The others get as much.
        others => free.div_ceil(others).max(limits.starts.div_ceil(others).min(TURN_STARTS)),
    };
    let share = if goes_on { share.saturating_sub(turn.taken) } else { share.max(first) };
    let (mut requests, mut starts) = (0, 0_u32);
    for asked in asked {
        let more = starts.saturating_add(*asked);
        if more > share || more > free {
            break;
        }
        (requests, starts) = (requests + 1, more);
    }
    if requests == 0 { LimiterStep::HandOver } else { LimiterStep::Admit { requests, starts } }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { starts: 3, window: 100 };

    fn window(records: &[(i64, u32)]) -> Window {
        Window(records.iter().map(|&(at, starts)| WindowRecord { at, starts, grace: 10 }).collect())
    }

    const ALONE: TurnLimits = TurnLimits { contenders: 1, taken: 0, patience: 20 };

    fn among(contenders: u32, taken: u32) -> TurnLimits {
        TurnLimits { contenders, taken, ..ALONE }
    }

    fn at(proven: i64, estimated: i64) -> Now {
        Now { proven, estimated: Some(estimated) }
    }

    #[test]
    fn starts_count_for_the_window_and_the_grace() {
        let window = window(&[(0, 2), (50, 1)]);
        assert_eq!(window.used(100, 110), 3);
        assert_eq!(window.used(100, 111), 1);
        assert_eq!(window.room_at(LIMITS, 1), 111);
        assert_eq!(window.room_at(LIMITS, 2), 111);
        assert_eq!(window.room_at(LIMITS, 3), 161);
        assert_eq!(window.over_at(100), Some(161));
    }

    #[test]
    fn room_is_waited_for_by_an_estimate_and_without_one_the_servers_are_asked() {
        let window = window(&[(0, 3)]);
        let admitted = LimiterStep::Admit { requests: 1, starts: 1 };
        assert_eq!(next(&window, LIMITS, at(50, 60), &[1], ALONE), LimiterStep::Wait(51));
        assert_eq!(next(&window, LIMITS, at(50, 111), &[1], ALONE), admitted);
        assert_eq!(next(&window, LIMITS, at(111, 60), &[1], ALONE), admitted);
        let unknown = |proven| Now { proven, estimated: None };
        assert_eq!(next(&window, LIMITS, unknown(50), &[1], ALONE), LimiterStep::LearnTime);
        assert_eq!(next(&window, LIMITS, unknown(111), &[1], ALONE), admitted);
    }

    #[test]
    fn a_batch_takes_what_fits_in_the_order_of_the_calls() {
        let next = |asked: &[u32]| next(&Window::default(), LIMITS, at(0, 0), asked, ALONE);
        assert_eq!(next(&[1, 1, 1, 1]), LimiterStep::Admit { requests: 3, starts: 3 });
        // A smaller request behind it does not overtake.
        assert_eq!(next(&[2, 2, 1]), LimiterStep::Admit { requests: 1, starts: 2 });
    }

    #[test]
    fn a_batch_takes_its_share_while_other_processes_wait_and_at_least_its_first_request() {
        let limits = Limits { starts: 100, window: 100 };
        let next = |asked: &[u32], turn| next(&Window::default(), limits, at(0, 0), asked, turn);
        assert_eq!(next(&[1; 200], ALONE), LimiterStep::Admit { requests: 100, starts: 100 });
        assert_eq!(next(&[1; 200], among(1, 60)), LimiterStep::Admit { requests: 100, starts: 100 });
        assert_eq!(next(&[1; 200], among(4, 0)), LimiterStep::Admit { requests: 25, starts: 25 });
        assert_eq!(next(&[80, 80], among(4, 0)), LimiterStep::Admit { requests: 1, starts: 80 });
        assert_eq!(next(&[80, 1], among(4, 1)), LimiterStep::HandOver);
        assert_eq!(next(&[1], among(4, 25)), LimiterStep::HandOver);
    }

    #[test]
    fn a_turn_takes_a_few_starts_although_there_is_little_room() {
        let limits = Limits { starts: 100, window: 1_000 };
        let next = |used, asked: &[u32], turn| next(&window(&[(0, used)]), limits, at(0, 0), asked, turn);
        assert_eq!(next(97, &[1; 9], among(20, 0)), LimiterStep::Admit { requests: 3, starts: 3 });
        assert_eq!(next(90, &[1; 9], among(20, 0)), LimiterStep::Admit { requests: 4, starts: 4 });
        assert_eq!(next(90, &[1; 9], among(20, 3)), LimiterStep::Admit { requests: 1, starts: 1 });
        assert_eq!(next(90, &[1; 9], among(20, 4)), LimiterStep::HandOver);
        assert_eq!(
            next(90, &[1; 9], among(50, 0)),
            LimiterStep::Admit { requests: 2, starts: 2 },
            "an equal part"
        );
    }

    #[test]
    fn a_turn_that_has_taken_starts_waits_for_more_as_long_as_its_patience_lasts() {
        let limits = Limits { starts: 100, window: 100 };
        let window = window(&[(0, 100)]);
        let next = |now, turn| next(&window, limits, at(0, now), &[1], turn);
        assert_eq!(next(90, among(2, 0)), LimiterStep::Wait(21));
        assert_eq!(next(90, among(2, 1)), LimiterStep::HandOver);
        assert_eq!(next(90, among(1, 1)), LimiterStep::Wait(21));
        assert_eq!(next(91, among(2, 1)), LimiterStep::Wait(20));
    }

    #[test]
    fn the_wait_behind_others_counts_whole_windows() {
        let window = window(&[(0, 3)]);
        assert_eq!(window.wait(LIMITS, 0, 1, 11), 100);
        assert_eq!(window.wait(LIMITS, 2, 1, 11), 100);
        assert_eq!(window.wait(LIMITS, 3, 1, 11), 200);
        assert_eq!(Window::default().wait(LIMITS, 0, 3, 11), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_no_start_early() {
        let mut window = window(&[(50, 2)]);
        window.add(WindowRecord { at: 20, starts: 1, grace: 10 });
        assert_eq!(window.room_at(LIMITS, 3), 161);
        assert_eq!(window.records().last().map(|last| last.at), Some(50));
    }

    proptest! {
        /// However many records are merged: when starts are admitted, no more than the limit count by the
        /// true times of their writes.
        #[test]
        fn merged_records_admit_no_more_than_the_limit(
            // Some three times as many batches in a window as there are records for.
            batches in prop::collection::vec((0_i64..8, 1_u32..6, 0_i64..30, any::<bool>()), 1..800),
        ) {
            let limits = Limits { starts: 500, window: 1_000 };
            let (mut window, mut true_records) = (Window::default(), Vec::<WindowRecord>::new());
            let mut now = 0_i64;
            for (pause, asked, grace, forgets) in batches {
                now += pause;
                let step = next(&window, limits, at(now, now), &[asked], ALONE);
                if let LimiterStep::Admit { starts, .. } = step {
                    let counting = true_records.iter().filter(|record| record.over_at(1_000) > now);
                    let used: u32 = counting.map(|record| record.starts).sum();
                    prop_assert!(used + starts <= limits.starts);
                    let record = WindowRecord { at: now, starts, grace };
                    true_records.push(record);
                    window.add(record);
                    prop_assert!(window.records().len() <= RECORDS_MAX);
                }
                if forgets {
                    window.forget_over(1_000, now);
                }
            }
        }

        /// The merged records leave little of the limit unused, if the starts come evenly.
        #[test]
        fn merged_records_of_even_starts_count_little_longer(gap in 1_i64..8) {
            let limits = Limits { starts: 1_000, window: 1_000 };
            let mut window = Window::default();
            for number in 0..1_000 {
                window.add(WindowRecord { at: number * gap, starts: 1, grace: 0 });
                window.forget_over(1_000, number * gap);
            }
            let now = 999 * gap;
            let true_used = (1_000 / gap + 1).min(1_000);
            let used = i64::from(window.used(limits.window, now));
            prop_assert!(used - true_used <= 2 * 1_000 / (gap * 64) + 2, "{used} for {true_used}");
        }
    }
}
