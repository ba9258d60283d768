//! The rows of the list, and their order: pure.

use std::cmp::Reverse;
use std::time::Duration;

use lockkeeper::Inspection;
use lockkeeper::inspect::ContenderInfo;

use crate::inspect::print::name;

/// A lock on the screen.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) lock: Inspection,
    pub(crate) holder: String,
    pub(crate) age: Option<Duration>,
    pub(crate) waiting: usize,
    /// New contenders a second, since the last look.
    pub(crate) rate: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Waiters,
    Age,
    Rate,
    Path,
}

impl Row {
    pub(super) fn of(lock: Inspection, rate: Option<f64>) -> Self {
        let (holders, waiting) = (lock.holders().count(), lock.waiters().count());
        let first = lock.holders().next();
        let holder = match first {
            None => "-".to_owned(),
            Some(first) if holders > 1 => format!("{} and {} more", name(first), holders - 1),
            Some(first) => name(first),
        };
        let age = first.map(ContenderInfo::age);
        Self { holder, age, waiting, rate, lock }
    }
}

pub(super) fn per_second(count: i64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64().max(0.001);
    f64::from(i32::try_from(count.max(0)).unwrap_or(i32::MAX)) / seconds
}

/// The number that the server appended to the name.
pub(super) fn sequence(name: &str) -> Option<i64> {
    name.get(name.len().checked_sub(10)?..)?.parse().ok().filter(|number| *number >= 0)
}

impl Sort {
    /// Sorts the rows: the greatest first, and equal ones by their paths.
    pub(super) fn arrange(self, rows: &mut [Row]) {
        rows.sort_by(|one, other| one.lock.path().cmp(other.lock.path()));
        match self {
            Self::Waiters => rows.sort_by_key(|row| Reverse(row.waiting)),
            Self::Age => rows.sort_by_key(|row| Reverse(row.age)),
            Self::Rate => {
                rows.sort_by(|one, other| {
                    other.rate.unwrap_or_default().total_cmp(&one.rate.unwrap_or_default())
                });
            }
            Self::Path => {}
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Waiters => "waiters",
            Self::Age => "age",
            Self::Rate => "rate",
            Self::Path => "path",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_new_contenders() {
        assert_eq!(sequence("_c_x-lock-0000000041"), Some(41));
        assert_eq!(sequence("readme"), None);
        assert_eq!(per_second(10, Duration::from_secs(2)), 5.0);
        assert_eq!(per_second(-5, Duration::from_secs(2)), 0.0);
    }
}
