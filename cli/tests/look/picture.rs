//! Pictures of a terminal for the documentation: `docs/pictures/*.svg`.

use std::fmt::Write;
use std::path::Path;

use vt100::{Cell, Screen};

/// The width and the height of a character, in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 18.0;

/// Writes a picture of what the terminal shows, if `LOCKKEEPER_PICTURES` names a folder.
pub(crate) fn save(name: &str, screen: &Screen) {
    if let Some(folder) = std::env::var_os("LOCKKEEPER_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.svg")), svg(screen)).unwrap();
    }
}

/// Characters of one row with the same attributes.
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
    let columns = used.map(|run| usize::from(run.column) + run.text.trim_end().chars().count()).max();
    let (width, height) = (
        WIDTH * columns.unwrap_or_default() as f32 + 20.0,
        HEIGHT * (last.unwrap_or_default() + 1) as f32 + 16.0,
    );
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1d2021\"/>\n\
         <g font-family=\"monospace\" font-size=\"14\" fill=\"#ebdbb2\" xml:space=\"preserve\">\n",
    );
    for (row, runs) in rows.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
        let y = HEIGHT * row as f32 + 22.0;
        for run in runs.iter().filter(|run| run.is_inverse || !run.text.trim().is_empty()) {
            draw(&mut text, run, y);
        }
    }
    text.push_str("</g>\n</svg>\n");
    text
}

fn draw(text: &mut String, run: &Run, y: f32) {
    let shown = if run.is_inverse { run.text.as_str() } else { run.text.trim_end() };
    let (x, length) = (WIDTH * f32::from(run.column) + 10.0, WIDTH * shown.chars().count() as f32);
    let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if run.is_inverse {
        let top = y - 14.0;
        writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{HEIGHT}\" fill=\"#ebdbb2\"/>"
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
        let attributes = |cell: &Cell| (cell.bold(), cell.inverse());
        let (is_bold, is_inverse) = attributes(cell);
        if runs.last().is_none_or(|run| (run.is_bold, run.is_inverse) != (is_bold, is_inverse)) {
            runs.push(Run { column, is_bold, is_inverse, text: String::new() });
        }
        if let Some(run) = runs.last_mut() {
            run.text.push_str(if cell.contents().is_empty() { " " } else { cell.contents() });
        }
    }
    runs
}
