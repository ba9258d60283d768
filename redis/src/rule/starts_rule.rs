/// The recorded starts of a rate limiter. All times are milliseconds of the server.
#[derive(Clone, Debug, Default)]
pub struct StartsRule {
    limit: usize,
    /// The time for which a start counts.
    span: u64,
    /// In order; at most `limit`.
    starts: Vec<u64>,
}

impl StartsRule {
    /// No starts, of at most `limit` in a span.
    #[must_use]
    pub fn new(limit: usize, span: u64) -> Self {
        Self { limit, span, starts: Vec::new() }
    }

    /// Records `asked` starts, of at most `limit`, at the first time that has room behind all earlier ones.
    /// Returns the wait until then. Records nothing if the wait is longer than `longest`.
    pub fn admit(&mut self, at: u64, asked: usize, longest: Option<u64>) -> Result<u64, u64> {
        let mut begin = at.max(self.starts.last().copied().unwrap_or(0));
        let spare = self.limit.saturating_sub(asked);
        if let Some(index) = self.starts.len().checked_sub(spare + 1)
            && let Some(over) = self.starts.get(index)
        {
            begin = begin.max(over.saturating_add(self.span));
        }
        let wait = begin.saturating_sub(at);
        if longest.is_some_and(|longest| wait > longest) {
            return Err(wait);
        }
        self.starts.extend(std::iter::repeat_n(begin, asked));
        let surplus = self.starts.len().saturating_sub(self.limit);
        self.starts.drain(..surplus);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_window_has_more_starts_than_the_limit_however_late_each_one_starts(
            limit in 1..5_usize,
            calls in prop::collection::vec((0..40_u64, 1..5_usize, 0..10_u64, any::<bool>()), 1..60),
        ) {
            let (window, grace) = (100, 10);
            let mut rule = StartsRule::new(limit, window + grace);
            let (mut at, mut starts) = (1_000, Vec::new());
            for (pause, asked, delay, tries) in calls {
                at += pause;
                let asked = asked.min(limit);
                if let Ok(wait) = rule.admit(at, asked, tries.then_some(0)) {
                    // Each start is fresh for less than `grace`.
                    starts.extend(std::iter::repeat_n(at + wait + delay, asked));
                }
            }
            starts.sort_unstable();
            for pair in starts.windows(limit + 1) {
                prop_assert!(pair[limit] - pair[0] > window, "{starts:?}");
            }
        }
    }

    #[test]
    fn starts_are_first_in_first_out_and_a_try_records_nothing_without_room() {
        let mut rule = StartsRule::new(2, 100);
        assert_eq!(rule.admit(0, 1, None), Ok(0));
        assert_eq!(rule.admit(0, 2, None), Ok(100));
        // There would be room at once, but the earlier request is ahead.
        assert_eq!(rule.admit(50, 1, Some(0)), Err(150));
        assert_eq!(rule.admit(50, 1, None), Ok(150));
    }
}
