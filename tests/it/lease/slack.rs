//! How long before the end of its session a guard turned invalid.

use std::fmt::{self, Display, Formatter};

use lockkeeper::BootInstant;

/// What was seen of one hold, in microseconds; below zero is a broken promise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    /// From the end of the guard's validity until the leader expired the session.
    pub(super) clock: i128,
    /// From the moment the holder was told until the next one was granted.
    pub(super) told: i128,
    /// Whether the guard said at that grant that it was still valid.
    pub(super) both_valid: bool,
}

/// Microseconds from one instant to another, backward too.
pub(super) fn micros(from: BootInstant, to: BootInstant) -> i128 {
    let forward = to.since(from).as_micros().cast_signed();
    forward - from.since(to).as_micros().cast_signed()
}

/// Prints how the slack was distributed over the runs of one case.
pub(super) fn print(case: &str, runs: &[Slack]) {
    let of = |pick: fn(&Slack) -> i128| Spread(runs.iter().map(pick).collect());
    eprintln!("{case}: {} runs; clock {}; told {}", runs.len(), of(|run| run.clock), of(|run| run.told));
}

struct Spread(Vec<i128>);

impl Display for Spread {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |hundredths: usize| sorted.get((sorted.len().saturating_sub(1)) * hundredths / 100);
        for (name, hundredths) in [("min", 0), ("p10", 10), ("median", 50), ("max", 100)] {
            let value = at(hundredths).copied().unwrap_or_default() / 1000;
            write!(formatter, "{name} {value} ms ")?;
        }
        Ok(())
    }
}
