//! The table of an inspection, for a terminal.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use lockkeeper_core::{AgeClock, ContenderInfo, Identity, Kind, Role};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::contenders::Inspection;

/// The number of printed rows, unless all are asked for.
const ROWS: usize = 30;

/// The greatest width of a column with foreign text, in columns of a terminal: a host, a process, and a note
/// of 60 characters.
const HOLDER_COLUMNS: usize = 110;

const HEAD: [&str; 7] = ["ROLE", "POSITION", "AGE", "SESSION", "CZXID", "HOLDER", "NODE"];

impl Display for Inspection {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.headline(formatter)?;
        let shown = if formatter.alternate() { self.contenders.len() } else { ROWS };
        let mut position = 0;
        let rows: Vec<[String; 7]> = self
            .contenders
            .iter()
            .take(shown)
            .map(|of| {
                position += usize::from(of.role() == Role::Waiter);
                self.row(of, position)
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        let head = HEAD.map(str::to_owned);
        let width = |column: usize| {
            let cells = std::iter::once(&head).chain(&rows).filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        for row in std::iter::once(&head).chain(&rows) {
            let mut line = String::from("\n ");
            for (cell, width) in row.iter().zip(&widths) {
                line.push(' ');
                line.push_str(cell);
                line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 1));
            }
            formatter.write_str(line.trim_end_matches(' '))?;
        }
        match self.contenders.len().saturating_sub(shown) {
            0 => Ok(()),
            more => write!(formatter, "\n  … and {more} more"),
        }
    }
}

impl Inspection {
    fn headline(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (held, waiting) = (self.holders().count(), self.waiters().count());
        write!(formatter, "{} {}: ", self.recipe.name, self.whole)?;
        let of = |limit: Option<u32>| limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string());
        match self.recipe.counted {
            None if held == 0 => write!(formatter, "free")?,
            None => write!(formatter, "held by {held}")?,
            Some(counted) => {
                let used = self.used();
                write!(formatter, "{used} of {} {counted}, {} free", of(self.limit), of(self.free()))?;
            }
        }
        if let Some(window) = self.window {
            write!(formatter, ", window {}", age(window.window))?;
            if !window.next_free.is_zero() {
                write!(formatter, ", next free in {:.1?}", window.next_free)?;
            }
        }
        write!(formatter, ", {waiting} waiting")
    }

    fn row(&self, of: &ContenderInfo, position: usize) -> [String; 7] {
        let holder = match of.data() {
            None => "(may not be read)".to_owned(),
            Some(_) => shortened(&holder(&of.identity())),
        };
        let holder = match of.is_revoked() && of.identity().host().is_some() {
            true => format!("{holder} (asked to release)"),
            false => holder,
        };
        let holder = match of.session() {
            0 if holder.is_empty() => "(belongs to no session)".to_owned(),
            0 => format!("(belongs to no session) {holder}"),
            _ => holder,
        };
        let holder = match of.held_here() {
            Some(held_here) => format!("{holder} ({held_here})"),
            None => holder,
        };
        let approximate = if of.age_clock() == AgeClock::Local { "~" } else { "" };
        [
            self.role(of).to_owned(),
            if of.role() == Role::Waiter { position.to_string() } else { "-".to_owned() },
            format!("{approximate}{}", age(of.age())),
            if of.session() == 0 { "-".to_owned() } else { format!("{:#x}", of.session()) },
            of.czxid().to_string(),
            if holder.is_empty() { "(says nothing)".to_owned() } else { holder },
            of.name().escape_debug().to_string(),
        ]
    }

    fn role(&self, of: &ContenderInfo) -> &'static str {
        match (of.role(), of.kind()) {
            (Role::Holder, Some(Kind::READ)) => "reads",
            (Role::Holder, Some(Kind::WRITE)) => "writes",
            (Role::Waiter, Some(Kind::READ)) => "waits to read",
            (Role::Waiter, Some(Kind::WRITE)) => "waits to write",
            (Role::Holder, _) => "holds",
            (Role::Waiter, _) => "waits",
            (Role::Recipe(role), _) => role,
            (Role::Foreign, _) => "foreign",
            _ => "unknown",
        }
    }
}

/// The data, without what only the diagnosis of deadlocks needs: it would leave no room for the owner.
fn holder(identity: &Identity) -> String {
    let is_short = identity.holds().is_empty() && identity.until().is_none();
    let (Some(host), Some(pid), false) = (identity.host(), identity.pid(), is_short) else {
        return identity.to_string();
    };
    let mut holder = format!("host={host} pid={pid}");
    if let Some(note) = identity.note() {
        holder.push_str(&format!(" {note}"));
    }
    if let Some(owner) = identity.owner() {
        holder.push_str(&format!(" owner={owner}"));
    }
    holder
}

/// At most the columns of a terminal that a holder may have, and the ellipsis.
fn shortened(text: &str) -> String {
    let mut left = HOLDER_COLUMNS;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.width().unwrap_or_default()) {
            Some(rest) => left = rest,
            None => return format!("{}…", text.get(..at).unwrap_or_default()),
        }
    }
    text.to_owned()
}

/// Prints the two greatest units of an age.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..10 => format!("{}.{}s", seconds, age.subsec_millis() / 100),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_two_units_at_most() {
        for (millis, text) in [
            (0, "0.0s"),
            (950, "0.9s"),
            (9_999, "9.9s"),
            (59_000, "59s"),
            (61_000, "1m01s"),
            (3_661_000, "1h01m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(age(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn the_owner_is_shown_beside_its_process_and_its_holds_are_not() {
        let of = |data: &[u8]| holder(&Identity::read(data));
        assert_eq!(
            of(b"host=a pid=7 nightly holds=12,34 until=99 owner=b c"),
            "host=a pid=7 nightly owner=b c"
        );
        assert_eq!(of(b"host=a pid=7"), "host=a pid=7");
        assert_eq!(of(b"10.0.0.7"), "10.0.0.7");
    }

    #[test]
    fn foreign_text_keeps_within_its_column() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(200)), format!("{}…", "ä".repeat(HOLDER_COLUMNS)));
        // Each of these takes two columns.
        assert_eq!(shortened(&"漢".repeat(100)), format!("{}…", "漢".repeat(HOLDER_COLUMNS / 2)));
    }
}
