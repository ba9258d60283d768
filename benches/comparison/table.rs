//! Lines, tables and figures of the page.

use std::fmt::Write;

use crate::statistics::Spread;

/// A table below its head, unless it has no row.
pub(crate) fn table(page: &mut String, head: [&str; 5], rows: Vec<String>) {
    if rows.is_empty() {
        return;
    }
    line(page, "");
    head.into_iter().for_each(|text| line(page, text));
    rows.iter().for_each(|row| line(page, row));
}

pub(crate) fn line(page: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(page, "{text}");
}

pub(crate) fn figure(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.decimals$}"))
}

pub(crate) fn edges(spread: Option<Spread>, decimals: usize) -> String {
    let spread = spread.filter(|spread| spread.least < spread.greatest);
    spread.map_or_else(String::new, |all| format!(" ({:.decimals$}–{:.decimals$})", all.least, all.greatest))
}

pub(crate) fn spread(spread: Option<Spread>, decimals: usize) -> String {
    format!("{}{}", figure(spread.map(|all| all.median), decimals), edges(spread, decimals))
}
