//! How a contender and its times, and a work queue, are written.

use std::time::{Duration, SystemTime};

use lockkeeper::inspect::{ContenderInfo, Identity, WorkQueueInspection};
use lockkeeper::{FencingToken, Inspection};

/// What is said of a holder that was asked for a release.
pub(crate) const ASKED: &str = "(asked to release)";

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

/// A contender in a few words: its process, its note and its owner, or all that its node says.
pub(crate) fn name(of: &ContenderInfo) -> String {
    named(of.data(), of.session())
}

/// The same by the data of its node, or `None` if that may not be read, and by its session.
pub(crate) fn named(data: Option<&[u8]>, session: i64) -> String {
    let Some(data) = data else { return format!("session={session:#x} (its data may not be read)") };
    let identity = Identity::read(data);
    match (identity.host(), identity.pid()) {
        (Some(host), Some(pid)) => {
            let note = identity.note().map_or_else(String::new, |note| format!(" {note}"));
            // A command lockkeeper says it in its note.
            let asked = match is_request(data) && !note.ends_with(ASKED) {
                true => format!(" {ASKED}"),
                false => String::new(),
            };
            let owner = identity.owner().map_or_else(String::new, |owner| format!(" owner={owner}"));
            format!("host={host} pid={pid}{note}{asked}{owner}")
        }
        _ => match identity.to_string() {
            text if text.is_empty() => format!("session={session:#x}"),
            // The request has overwritten the name.
            text if text == REVOKE => format!("session={session:#x} {ASKED}"),
            text => text,
        },
    }
}

/// Whether the data of a node is a request to release, alone or with what the node said behind it.
pub(crate) fn is_request(data: &[u8]) -> bool {
    data.strip_prefix(REVOKE.as_bytes()).is_some_and(|rest| matches!(rest.first(), None | Some(b' ')))
}

/// Who holds a lock, or is the first to wait for it.
pub(crate) fn who(lock: &Inspection) -> Option<String> {
    let (first, verb, count) = match lock.holders().next() {
        Some(first) => (first, "holds", lock.holders().count()),
        None => (lock.waiters().next()?, "waits", lock.waiters().count()),
    };
    let more = if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
    Some(format!("{} {verb}  [{}]  for {}{more}", name(first), first.czxid(), age(first.age())))
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
    fn a_holder_that_was_asked_is_named_with_its_note_and_the_request_is_said_once() {
        for (data, expected) in [
            (&b"host=a pid=7 ticket 9"[..], "host=a pid=7 ticket 9"),
            (b"__REVOKE__ host=a pid=7 ticket 9 owner=b", "host=a pid=7 ticket 9 (asked to release) owner=b"),
            (b"__REVOKE__ host=a pid=7 (asked to release)", "host=a pid=7 (asked to release)"),
            (b"__REVOKE__", "session=0x2a (asked to release)"),
            (b"10.0.0.7", "10.0.0.7"),
            (b"", "session=0x2a"),
        ] {
            assert_eq!(named(Some(data), 42), expected);
        }
        assert_eq!(named(None, 42), "session=0x2a (its data may not be read)");
    }

    #[test]
    fn an_age_has_two_units_at_most() {
        for (seconds, text) in [(0, "0s"), (59, "59s"), (61, "1m01s"), (3_661, "1h01m"), (90_000, "1d01h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
