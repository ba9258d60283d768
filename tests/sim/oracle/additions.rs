use lockkeeper::Error;
use lockkeeper::error::Outcome;
use lockkeeper_test_recipes::{Addition, AdditionEnd, judge_additions, judge_additions_to_several};

/// The additions of all processes. Their times are the order in which calls begin and end.
#[derive(Default)]
pub(super) struct Additions {
    now: u64,
    calls: Vec<Addition>,
}

impl Additions {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Returns the number of the call.
    pub(super) fn begin(&mut self) -> usize {
        let begun = self.tick();
        self.calls.push(Addition { begun, end: AdditionEnd::Unknown });
        self.calls.len() - 1
    }

    pub(super) fn end(&mut self, call: usize, added: &Result<i64, Error>) {
        let now = self.tick();
        self.calls[call].end = match added {
            Ok(sum) => AdditionEnd::Sum(*sum, now),
            Err(error) if error.outcome() == Outcome::NotApplied => AdditionEnd::NotAdded,
            Err(_) => AdditionEnd::Unknown,
        };
    }

    /// How many additions returned their sum.
    pub(super) fn count(&self) -> u64 {
        self.calls.iter().filter(|call| matches!(call.end, AdditionEnd::Sum(..))).count() as u64
    }

    /// `numbers` are those of all counters that were deleted, and of the last one.
    pub(super) fn judge(&self, numbers: &[i64]) -> Result<(), String> {
        match numbers {
            [last] => judge_additions(&self.calls, *last),
            numbers => judge_additions_to_several(&self.calls, numbers),
        }
    }
}

#[test]
fn an_addition_to_one_of_several_counters_that_is_lost_or_counts_twice_is_found() {
    let addition = |end| Addition { begun: 0, end };
    let sum = |sum| addition(AdditionEnd::Sum(sum, 0));
    let unknown = addition(AdditionEnd::Unknown);
    for (additions, numbers, is_right) in [
        (&[sum(1), sum(2), sum(1)][..], &[2, 1][..], true),
        (&[sum(1), sum(2), sum(1)], &[2, 2], false),
        (&[sum(1), sum(2), sum(1), unknown], &[2, 2], true),
        (&[sum(1), sum(1)], &[2, 0], false),
        (&[sum(1), sum(2)], &[1, 1], false),
        (&[sum(1), sum(1)], &[1, 0], false),
    ] {
        assert_eq!(
            judge_additions_to_several(additions, numbers).is_ok(),
            is_right,
            "{additions:?} {numbers:?}"
        );
    }
}

#[test]
fn an_addition_that_is_lost_or_counts_twice_is_found() {
    use AdditionEnd::{NotAdded, Unknown};
    let sum = |sum| move |now| AdditionEnd::Sum(sum, now);
    let unknown = |_| Unknown;
    let not_added = |_| NotAdded;
    type End<'a> = &'a dyn Fn(u64) -> AdditionEnd;
    let cases: [(&[End<'_>], i64, bool); 8] = [
        (&[&sum(1), &sum(2)], 2, true),
        (&[&sum(1), &sum(3)], 3, false),
        (&[&sum(1), &sum(1)], 2, false),
        (&[&sum(2), &sum(1)], 2, false),
        (&[&sum(1), &sum(2)], 1, false),
        (&[&sum(1), &unknown, &sum(3)], 3, true),
        (&[&sum(1), &unknown, &sum(2)], 2, true),
        (&[&sum(1), &not_added, &sum(3)], 3, false),
    ];
    for (ends, last, is_right) in cases {
        let additions = (0..).zip(ends).map(|(at, end)| Addition { begun: 2 * at, end: end(2 * at + 1) });
        let additions: Vec<Addition> = additions.collect();
        assert_eq!(judge_additions(&additions, last).is_ok(), is_right, "{additions:?} {last}");
    }
}
