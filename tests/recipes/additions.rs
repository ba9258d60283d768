//! Histories of a counter to which ones are added. Each sum is the place of its addition in the order of all,
//! so the sums alone show whether the history is linearizable.

use std::collections::BTreeMap;

/// An addition of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addition {
    /// When its call began.
    pub begun: u64,
    /// How it ended.
    pub end: AdditionEnd,
}

/// How an addition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdditionEnd {
    /// The sum after it, and when the caller had the answer.
    Sum(i64, u64),
    /// It did not count.
    NotAdded,
    /// Nothing is known of it.
    Unknown,
}

/// Whether each addition counted once, or at most once if nothing is known of it. `last` is the number in the
/// end.
///
/// # Errors
///
/// What contradicts that.
pub fn judge_additions(additions: &[Addition], last: i64) -> Result<(), String> {
    let mut sums: Vec<(i64, u64, u64)> = Vec::new();
    let mut unknown = 0;
    for addition in additions {
        match addition.end {
            AdditionEnd::Sum(sum, ended) => sums.push((sum, addition.begun, ended)),
            AdditionEnd::NotAdded => {}
            AdditionEnd::Unknown => unknown += 1,
        }
    }
    sums.sort_unstable();
    let mut earlier = None;
    for (sum, ..) in &sums {
        if earlier.replace(*sum) == Some(*sum) {
            return Err(format!("two additions returned {sum}"));
        }
    }
    let known = i64::try_from(sums.len()).expect("a number of calls");
    if last < known || last > known + unknown {
        return Err(format!("{known} additions are known, {unknown} are not, and the sum is {last}"));
    }
    let mut first_end = u64::MAX;
    for (sum, begun, ended) in sums.into_iter().rev() {
        if first_end < begun {
            return Err(format!(
                "{sum} was returned by an addition that began after a greater sum was known"
            ));
        }
        if sum > last {
            return Err(format!("{sum} was returned, and the sum is {last}"));
        }
        first_end = first_end.min(ended);
    }
    Ok(())
}

/// As [`judge_additions`], if the counter was deleted and created again, without their order in time: each
/// sum is the place of its addition in one of the counters, and it is not known in which one. `numbers` are
/// those of the counters when they were deleted, and of the last one in the end.
///
/// # Errors
///
/// What contradicts that each addition counted once.
pub fn judge_additions_to_several(additions: &[Addition], numbers: &[i64]) -> Result<(), String> {
    let (mut sums, mut unknown) = (BTreeMap::<i64, usize>::new(), 0);
    for addition in additions {
        match addition.end {
            AdditionEnd::Sum(sum, _) => *sums.entry(sum).or_default() += 1,
            AdditionEnd::NotAdded => {}
            AdditionEnd::Unknown => unknown += 1,
        }
    }
    for (sum, returned) in &sums {
        let counters = numbers.iter().filter(|number| *number >= sum).count();
        if *returned > counters {
            return Err(format!("{returned} additions returned {sum}, of counters at {numbers:?}"));
        }
    }
    let known = i64::try_from(sums.values().sum::<usize>()).expect("a number of calls");
    let counted: i64 = numbers.iter().sum();
    match counted < known || counted > known + unknown {
        true => Err(format!("{known} additions are known, {unknown} are not, of counters at {numbers:?}")),
        false => Ok(()),
    }
}
