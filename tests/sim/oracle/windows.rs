use std::collections::BTreeMap;

use lockkeeper_test_recipes::Starts;

/// Clocks of different rates measure the window and the time an admission is fresh, and both in whole
/// milliseconds.
const INEXACT: u64 = 50;

/// The promise of a rate limiter: at most `limit` starts in any window, by the true time.
#[derive(Default)]
pub(super) struct Windows {
    /// By path: when each start was.
    started: BTreeMap<String, Vec<u64>>,
}

impl Windows {
    /// Enters starts that are made now, and says what is wrong with them.
    pub(super) fn enter(&mut self, starts: &Starts, now: u64) -> Result<(), String> {
        let started = self.started.entry(starts.path.clone()).or_default();
        started.extend((0..starts.count).map(|_| now));
        let from = now.saturating_sub(starts.window - INEXACT);
        let within = started.iter().filter(|at| **at > from).count();
        match within <= starts.limit as usize {
            true => Ok(()),
            false => Err(format!("{}: {within} starts of {} within a window", starts.path, starts.limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_counted_in_any_window() {
        let mut windows = Windows::default();
        let mut enter = |count, now| {
            let starts = Starts { path: "/a".to_owned(), count, limit: 2, window: 1_000 };
            windows.enter(&starts, now).is_ok()
        };
        assert!(enter(1, 5_000));
        assert!(enter(1, 5_500));
        assert!(!enter(1, 5_900));
        assert!(enter(1, 7_000));
    }
}
