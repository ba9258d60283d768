//! Pictures of a terminal for the documentation: `docs/pictures/*.svg`.

use std::fmt::Write;
use std::path::Path;

use vt100::Screen;

/// The width and the height of a character, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;

/// Stands for the second column of a wide character.
const BEHIND_WIDE: char = '\0';

/// The space around the text.
const MARGIN: f32 = 20.0;

/// Whether `LOCKKEEPER_PICTURES` names a folder.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os("LOCKKEEPER_PICTURES").is_some()
}

/// Writes a picture of what the terminal shows, if `LOCKKEEPER_PICTURES` names a folder.
pub(crate) fn save(name: &str, screen: &Screen) {
    if let Some(folder) = std::env::var_os("LOCKKEEPER_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.svg")), svg(screen)).unwrap();
    }
}

/// Characters of one row with the same attributes. A wide one is alone: few fonts give it exactly two
/// columns.
#[derive(Default)]
struct Run {
    column: u16,
    text: String,
    is_bold: bool,
    is_inverse: bool,
}

fn svg(screen: &Screen) -> String {
    let rows: Vec<Vec<Run>> = (0..screen.size().0.get()).map(|row| runs(screen, row)).collect();
    let last = rows.iter().rposition(|runs| runs.iter().any(|run| !run.text.trim().is_empty()));
    let used = rows.iter().flatten().filter(|run| !run.text.trim().is_empty());
    let columns = used.map(|run| usize::from(run.column) + columns_of(run.text.trim_end())).max();
    let columns = columns.unwrap_or_default();
    let lines = last.map_or(0, |last| last + 1);
    let (width, height) = (WIDTH * columns as f32 + 2.0 * MARGIN, HEIGHT * lines as f32 + 2.0 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1d2021\"/>\n\
         <g font-family=\"monospace\" font-size=\"14\" fill=\"#ebdbb2\" xml:space=\"preserve\">\n",
    );
    for (row, runs) in rows.iter().enumerate().take(lines) {
        let y = MARGIN + HEIGHT * row as f32 + 14.0;
        for run in runs.iter().filter(|run| run.is_inverse || !run.text.trim().is_empty()) {
            draw(&mut text, run, y, columns);
        }
    }
    text.push_str("</g>\n</svg>\n");
    text
}

/// The columns of a text that the terminal has split into cells: the cell behind a wide character is empty.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// A run of a picture with this number of columns.
fn draw(text: &mut String, run: &Run, y: f32, columns: usize) {
    let shown = run.text.trim_end();
    let (x, length) = (WIDTH * f32::from(run.column) + MARGIN, WIDTH * columns_of(shown) as f32);
    // The cells behind wide characters have no text of their own.
    let shown = shown.replace(BEHIND_WIDE, "");
    let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if run.is_inverse {
        let top = y - 14.0;
        let marked = WIDTH * columns.saturating_sub(usize::from(run.column)) as f32;
        writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{marked:.1}\" height=\"{HEIGHT}\" fill=\"#ebdbb2\"/>"
        )
        .unwrap();
    }
    let fill = if run.is_inverse { " fill=\"#1d2021\"" } else { "" };
    let weight = if run.is_bold { " font-weight=\"bold\"" } else { "" };
    writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{fill}{weight}>{escaped}</text>"
    )
    .unwrap();
}

fn runs(screen: &Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column) else { continue };
        let (is_bold, is_inverse) = (cell.bold(), cell.inverse());
        let continues = |run: &Run| {
            let has_wide = run.text.ends_with(BEHIND_WIDE);
            let is_beside_wide = cell.is_wide() || (has_wide && !cell.is_wide_continuation());
            (run.is_bold, run.is_inverse) == (is_bold, is_inverse) && !is_beside_wide
        };
        if !runs.last().is_some_and(continues) {
            runs.push(Run { column, is_bold, is_inverse, text: String::new() });
        }
        if let Some(run) = runs.last_mut() {
            match cell.contents() {
                _ if cell.is_wide_continuation() => run.text.push(BEHIND_WIDE),
                "" => run.text.push(' '),
                contents => run.text.push_str(contents),
            }
        }
    }
    runs
}
