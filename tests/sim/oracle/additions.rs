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
