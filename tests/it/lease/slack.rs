//! The time between the invalidity of a guard and the end of its session.

use std::fmt::{self, Display, Formatter};

use lockkeeper::BootInstant;

/// The measurements of one hold, in microseconds; a negative one is a broken promise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    /// From the end of the guard's validity until the leader expired the session.
    pub(super) clock: i128,
    /// From the notification of the holder until the next grant.
    pub(super) reported: i128,
    /// Whether the guard was still valid at that grant.
    pub(super) both_valid: bool,
}

/// Microseconds from one instant to another, negative if the second is earlier.
pub(super) fn micros(from: BootInstant, to: BootInstant) -> i128 {
    let forward = to.since(from).as_micros().cast_signed();
    forward - from.since(to).as_micros().cast_signed()
}

/// Prints the distribution of the slack over the runs of one case.
pub(super) fn print(case: &str, runs: &[Slack]) {
    let of = |pick: fn(&Slack) -> i128| Spread(runs.iter().map(pick).collect());
    eprintln!(
        "{case}: {} runs; clock {}; reported {}",
        runs.len(),
        of(|run| run.clock),
        of(|run| run.reported)
    );
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
