//! The room in the window: pure. All times are milliseconds by the servers' clock.

use std::collections::{HashMap, HashSet};

use lockkeeper_core::count_of;
use parking_lot::Mutex;

/// A recorded start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The time of the record.
    pub(super) at: i64,
    /// The time for which it counts, as its writer says.
    pub(super) span: i64,
}

impl Start {
    /// The first time at which it does not count. A time in whole milliseconds may be up to one more.
    pub(super) fn over_at(&self, span: i64) -> i64 {
        self.at.saturating_add(self.span.max(span)).saturating_add(1)
    }
}

/// The decision on a request for starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AdmitDecision {
    /// The starts are admitted. The starts at these indexes are over.
    Admit { over: Vec<usize> },
    /// The decision needs the servers' time.
    NeedServerTime,
    /// Wait for this number of milliseconds.
    Wait { millis: i64, free: u32 },
}

/// Decides on `asked` starts at `now` or later, with at most `limit` starts in a window.
pub(super) fn decide(starts: &[Start], limit: u32, asked: u32, span: i64, now: Option<i64>) -> AdmitDecision {
    if count_of(starts.len()).saturating_add(asked) <= limit {
        return AdmitDecision::Admit { over: Vec::new() };
    }
    let Some(now) = now else { return AdmitDecision::NeedServerTime };
    let is_over = |start: &Start| start.over_at(span) <= now;
    let over: Vec<usize> = (0..starts.len()).filter(|at| starts.get(*at).is_some_and(is_over)).collect();
    let mut ends: Vec<i64> =
        starts.iter().filter(|start| !is_over(start)).map(|start| start.over_at(span)).collect();
    let counting = count_of(ends.len());
    let free = limit.saturating_sub(counting);
    if asked <= free {
        return AdmitDecision::Admit { over };
    }
    ends.sort_unstable();
    // The number of starts that must be over first.
    let needed = counting.saturating_add(asked).saturating_sub(limit);
    let last = usize::try_from(needed.saturating_sub(1)).unwrap_or(usize::MAX);
    let millis = ends.get(last).map_or(1, |end| end.saturating_sub(now).max(1));
    AdmitDecision::Wait { millis, free }
}

/// The starts that were read, by the names of their nodes. They never change.
#[derive(Debug, Default)]
pub(super) struct StartCache(Mutex<HashMap<String, Start>>);

impl StartCache {
    pub(super) fn of(&self, name: &str) -> Option<Start> {
        self.0.lock().get(name).copied()
    }

    pub(super) fn enter(&self, name: String, start: Start) {
        self.0.lock().insert(name, start);
    }

    /// Forgets all other starts.
    pub(super) fn keep(&self, names: &[String]) {
        let mut cache = self.0.lock();
        if cache.len() > names.len() {
            let names: HashSet<&str> = names.iter().map(String::as_str).collect();
            cache.retain(|name, _| names.contains(name.as_str()));
        }
    }
}

/// The data of a start's node: the time for which it counts, and behind it the data for people.
pub(super) fn encode(span: i64, identity: &[u8]) -> Vec<u8> {
    [format!("counts={span} ").as_bytes(), identity].concat()
}

/// The time for which the start with this data counts. Zero if the data has none.
pub(super) fn decode(data: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(data);
    let number = text.strip_prefix("counts=").and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn starts(times: &[i64]) -> Vec<Start> {
        times.iter().map(|at| Start { at: *at, span: 100 }).collect()
    }

    #[test]
    fn a_start_takes_its_room_until_the_servers_clock_is_past_its_window() {
        let admit = |over: &[usize]| AdmitDecision::Admit { over: over.to_vec() };
        for (times, asked, now, step) in [
            (&[][..], 1, None, admit(&[])),
            (&[0, 10], 1, None, admit(&[])),
            (&[0, 10], 2, None, AdmitDecision::NeedServerTime),
            (&[0, 10, 20], 1, Some(50), AdmitDecision::Wait { millis: 51, free: 0 }),
            (&[0, 10, 20], 1, Some(100), AdmitDecision::Wait { millis: 1, free: 0 }),
            (&[0, 10, 20], 1, Some(101), admit(&[0])),
            (&[0, 10, 20], 2, Some(101), AdmitDecision::Wait { millis: 10, free: 1 }),
            (&[0, 10, 20], 3, Some(121), admit(&[0, 1, 2])),
            (&[20, 0, 10], 2, Some(111), admit(&[1, 2])),
            // More starts than the limit, after it was lowered.
            (&[0, 1, 2, 3, 4], 1, Some(50), AdmitDecision::Wait { millis: 53, free: 0 }),
        ] {
            assert_eq!(
                decide(&starts(times), 3, asked, 100, now),
                step,
                "{asked} more than {times:?} at {now:?}"
            );
        }
    }

    #[test]
    fn a_start_counts_for_as_long_as_the_longer_of_two_opinions() {
        let longer = [Start { at: 0, span: 500 }];
        assert_eq!(decide(&longer, 1, 1, 100, Some(200)), AdmitDecision::Wait { millis: 301, free: 0 });
        let shorter = [Start { at: 0, span: 0 }];
        assert_eq!(decide(&shorter, 1, 1, 100, Some(50)), AdmitDecision::Wait { millis: 51, free: 0 });
    }

    #[test]
    fn what_a_start_says_is_read_back() {
        assert_eq!(decode(&encode(1500, b"host=a pid=1")), 1500);
        assert_eq!(decode(b""), 0);
        assert_eq!(decode(b"counts=many"), 0);
    }

    proptest! {
        /// For any data of other clients, and any time of a server.
        #[test]
        fn no_record_and_no_time_panics(
            data in prop::collection::vec(any::<u8>(), 0..40),
            times in prop::collection::vec(any::<i64>(), 0..6),
            (span, now) in any::<(i64, Option<i64>)>(),
        ) {
            let counts = decode(&data);
            prop_assert_eq!(decode(&encode(span, &data)), span);
            let starts: Vec<Start> = times.into_iter().map(|at| Start { at, span: counts }).collect();
            let step = decide(&starts, 3, 2, span, now);
            let is_hasty = matches!(step, AdmitDecision::Wait { millis, .. } if millis < 1);
            prop_assert!(!is_hasty);
        }

        /// For any arrivals: `limit + 1` starts in a row take more than a window.
        #[test]
        fn no_window_has_more_than_the_limit(
            steps in prop::collection::vec((0i64..60, 1u32..4), 1..200),
            limit in 3u32..6,
        ) {
            let (mut now, mut written, mut admitted) = (0, Vec::new(), Vec::new());
            for (later, asked) in steps {
                now += later;
                let decision = decide(&starts(&written), limit, asked, 100, Some(now));
                if let AdmitDecision::Admit { over } = decision {
                    let mut place = 0;
                    written.retain(|_| { place += 1; !over.contains(&(place - 1)) });
                    written.extend((0..asked).map(|_| now));
                    admitted.extend((0..asked).map(|_| now));
                }
            }
            let limit = usize::try_from(limit).unwrap();
            for pair in admitted.windows(limit + 1) {
                prop_assert!(pair[limit] - pair[0] > 100, "{pair:?}");
            }
        }

        #[test]
        fn after_the_wait_there_is_room(times in prop::collection::vec(0i64..100, 3..8), asked in 1u32..4) {
            let starts = starts(&times);
            if let AdmitDecision::Wait { millis, .. } = decide(&starts, 3, asked, 100, Some(99)) {
                let later = decide(&starts, 3, asked, 100, Some(99 + millis));
                let is_room = matches!(later, AdmitDecision::Admit { .. });
                prop_assert!(is_room);
            }
        }
    }
}
