//! The words of the list, on a screen and in batch mode: pure.

use super::row::{Held, Row, Sort};
use crate::escape::printable;
use crate::inspect::print::age;

/// The number of columns.
pub(super) const COLUMNS: usize = 7;

/// The first line: `hidden` locks are not among these rows, and `more` is what else there is to say.
pub(super) fn headline(root: &str, rows: &[Row], hidden: usize, sort: Sort, more: &[String]) -> String {
    let waiting: usize = rows.iter().map(|row| row.waiting).sum();
    let locks = match hidden {
        0 => rows.len().to_string(),
        hidden => format!("{} of {}", rows.len(), rows.len().saturating_add(hidden)),
    };
    let mut line = format!("lockkeeper top {root}: {locks} locks, {waiting} waiting, by {}", sort.word());
    for part in more {
        line.push_str(", ");
        line.push_str(part);
    }
    printable(&line)
}

/// The names of the columns.
pub(super) fn head(sort: Sort) -> [String; COLUMNS] {
    let mark = |of: Sort, text: &str| if of == sort { format!("{text}*") } else { text.to_owned() };
    [
        mark(Sort::Path, "PATH"),
        "RECIPE".to_owned(),
        mark(Sort::Waiters, "WAITING"),
        mark(Sort::Age, "AGE"),
        "HELD".to_owned(),
        mark(Sort::Rate, "NEW/S"),
        "HOLDER".to_owned(),
    ]
}

pub(super) fn cells(row: &Row) -> [String; COLUMNS] {
    [
        printable(row.path.as_str()),
        row.recipe.to_owned(),
        row.waiting.to_string(),
        row.age().map_or_else(|| "-".to_owned(), age),
        row.held.map_or_else(|| "-".to_owned(), held),
        row.rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")),
        printable(&row.holder),
    ]
}

fn held(held: Held) -> String {
    format!("{}{}", if held.is_longer { ">" } else { "" }, age(held.since.elapsed()))
}

/// What is not seen, if not all is.
pub(super) fn partial(why: Option<&String>) -> Option<String> {
    Some(format!("PARTIAL: {}", why?))
}
