//! The rows of the list, and their order: pure.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use lockkeeper::ZnodePath;
use tokio::time::Instant;

/// A lock on the screen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) path: ZnodePath,
    pub(super) recipe: &'static str,
    pub(super) holder: String,
    /// When the node of the first holder was created.
    pub(super) since: Option<SystemTime>,
    /// Since when it is known to hold.
    pub(super) held: Option<Held>,
    pub(super) waiting: usize,
    /// New contenders a second, between the last two looks at this lock.
    pub(super) rate: Option<f64>,
}

/// Since when a node is known to hold. No node says when it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) since: Instant,
    /// Whether it may have held for longer: it was not looked at shortly before.
    pub(super) is_longer: bool,
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Waiters,
    Age,
    Rate,
    Path,
}

impl Row {
    /// The age of the node of the first holder.
    pub(super) fn age(&self) -> Option<Duration> {
        Some(SystemTime::now().duration_since(self.since?).unwrap_or_default())
    }
}

pub(super) fn per_second(count: i32, time: Duration) -> f64 {
    f64::from(count.max(0)) / time.as_secs_f64().max(0.001)
}

impl Sort {
    /// Sorts the rows: the greatest first, and equal ones by their paths.
    pub(super) fn arrange(self, rows: &mut [Row]) {
        rows.sort_by(|one, other| one.path.cmp(&other.path));
        match self {
            Self::Waiters => rows.sort_by_key(|row| Reverse(row.waiting)),
            Self::Age => rows.sort_by_key(|row| (row.since.is_none(), row.since)),
            Self::Rate => {
                rows.sort_by(|one, other| {
                    other.rate.unwrap_or_default().total_cmp(&one.rate.unwrap_or_default())
                });
            }
            Self::Path => {}
        }
    }

    pub(super) fn word(self) -> &'static str {
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
        assert_eq!(per_second(10, Duration::from_secs(2)), 5.0);
        assert_eq!(per_second(-5, Duration::from_secs(2)), 0.0);
    }
}
