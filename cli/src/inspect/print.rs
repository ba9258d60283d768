//! How a contender and its times, and a work queue, are written.

use std::time::{Duration, SystemTime};

use lockkeeper::FencingToken;
use lockkeeper::inspect::{ContenderInfo, Identity, WorkQueueInspection};

/// The data of a node that was asked for a release.
pub(crate) const REVOKE: &str = "__REVOKE__";

/// The two greatest units of an age.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A contender in a few words: its process and its owner, or all that its node says.
pub(crate) fn name(of: &ContenderInfo) -> String {
    let identity = of.data().map(|_| of.identity());
    named(identity.as_ref(), of.session())
}

/// The same by what its node says, or `None` if that may not be read, and by its session.
pub(crate) fn named(identity: Option<&Identity>, session: i64) -> String {
    let Some(identity) = identity else { return format!("session={session:#x} (its data may not be read)") };
    match (identity.host(), identity.pid()) {
        (Some(host), Some(pid)) => {
            let note = identity.note().map_or_else(String::new, |note| format!(" {note}"));
            let owner = identity.owner().map_or_else(String::new, |owner| format!(" owner={owner}"));
            format!("host={host} pid={pid}{note}{owner}")
        }
        _ => match identity.to_string() {
            text if text.is_empty() => format!("session={session:#x}"),
            // The request overwrites the name.
            text if text == REVOKE => format!("session={session:#x} (asked to release)"),
            text => text,
        },
    }
}

/// A token as `LOCKKEEPER_TOKEN` has it.
pub(crate) fn token(of: &ContenderInfo) -> Option<u128> {
    of.fencing_token().map(FencingToken::as_u128)
}

/// What the resources have to do against the writes of these holders, and of all that their nodes were handed
/// over to.
pub(crate) fn fence<'a>(of: impl IntoIterator<Item = &'a ContenderInfo>) -> Option<String> {
    let newest = of.into_iter().filter_map(ContenderInfo::fencing_token).max()?;
    Some(format!("refuse every token below {}", newest.mark_above().as_u128()))
}

/// A work queue as a table.
pub(crate) fn queue(seen: &WorkQueueInspection) -> String {
    let shown = |count: u32, shown: usize| usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(shown);
    let mut table = seen.to_string().trim_end().to_owned();
    for (more, what) in [
        (shown(seen.item_count, seen.items.len()), "items"),
        (shown(seen.failed_count, seen.failed.len()), "failed items"),
    ] {
        if more > 0 {
            table.push_str(&format!("\n  and {more} more {what}"));
        }
    }
    table
}

/// The time of day of the machine, to the second.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (61, "1m01s"), (3_661, "1h01m"), (90_000, "1d01h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
