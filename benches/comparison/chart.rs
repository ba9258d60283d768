//! `docs/benchmarks.svg`: operations per second as multiples of Curator's.

use std::fmt::Write;

use crate::plan::{ROWS, Row};
use crate::results::Results;
use crate::servers::Kind;

const LABELS: f64 = 220.0;
const SCALE: f64 = 560.0;
const WIDTH: f64 = LABELS + SCALE + 60.0;
const TOP: f64 = 60.0;
const BAR: f64 = 9.0;
const GAP: f64 = 12.0;

/// The ends of the scale, which is logarithmic: half and twice are as far away.
const LEAST: f64 = 0.25;
const GREATEST: f64 = 16.0;
const MARKS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

/// Readable on white and on black alike.
const STYLE: &str = "text{font:12px sans-serif;fill:#7a7f87}.title{font-size:14px;font-weight:bold}\
    .tmpfs{fill:#3b82c4}.disk{fill:#d08a2e}.three{fill:#4f9d69}.grid{stroke:#8884;stroke-width:1}\
    .one{stroke:#888;stroke-width:2}.spread{stroke:#888;stroke-width:1.5}\
    .aim{stroke:#c0504d;stroke-width:2.5}";

fn across(ratio: f64) -> f64 {
    let share = (ratio.clamp(LEAST, GREATEST) / LEAST).ln() / (GREATEST / LEAST).ln();
    LABELS + SCALE * share
}

pub(crate) fn draw(results: &Results) -> String {
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| results.has(*kind)).collect();
    let mut body = String::new();
    let mut y = TOP;
    for row in ROWS {
        let begun = y;
        bars(&mut body, results, row, &kinds, &mut y);
        if y > begun {
            let middle = f64::midpoint(begun, y) + 4.0;
            add(
                &mut body,
                &format!(
                    r#"<text x="{}" y="{middle:.1}" text-anchor="end">{}</text>"#,
                    LABELS - 8.0,
                    row.name
                ),
            );
            stroke(&mut body, "aim", (across(row.target), begun - 2.0), (across(row.target), y + 1.0));
            y += GAP;
        }
    }
    let head = head(&kinds, y);
    let height = y + 24.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {WIDTH} {height:.0}\">\n\
         <style>{STYLE}</style>\n{head}{body}</svg>\n"
    )
}

/// One bar for each kind of server that has results. Moves `y` below them.
fn bars(svg: &mut String, results: &Results, row: &Row, kinds: &[Kind], y: &mut f64) {
    for kind in kinds {
        let Some(ratio) = results.ratio(*kind, row.name, "curator", "ops_s") else { continue };
        let top = *y;
        let (one, end) = (across(1.0), across(ratio.median));
        let (left, width) = (one.min(end), (end - one).abs());
        add(
            svg,
            &format!(
                r#"<rect class="{}" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{BAR}"/>"#,
                kind.name(),
            ),
        );
        stroke(
            svg,
            "spread",
            (across(ratio.least), top + BAR / 2.0),
            (across(ratio.greatest), top + BAR / 2.0),
        );
        let (x, text_y) = (LABELS + SCALE + 8.0, top + BAR - 1.0);
        add(
            svg,
            &format!(r#"<text x="{x}" y="{text_y:.1}" style="font-size:9px">{:.2}</text>"#, ratio.median),
        );
        *y += BAR + 1.0;
    }
}

/// The title, the legend, and the scale with its lines from the top to `y`.
fn head(kinds: &[Kind], y: f64) -> String {
    let mut head = String::new();
    add(
        &mut head,
        &format!(
            r#"<text class="title" x="8" y="20">{}</text>"#,
            "Operations per second, as multiples of Curator's"
        ),
    );
    legend(&mut head, kinds);
    for mark in MARKS {
        stroke(
            &mut head,
            if mark == 1.0 { "one" } else { "grid" },
            (across(mark), TOP - 6.0),
            (across(mark), y),
        );
        add(
            &mut head,
            &format!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{mark}×</text>"#,
                across(mark),
                y + 14.0
            ),
        );
    }
    head
}

fn legend(svg: &mut String, kinds: &[Kind]) {
    let mut x: f64 = 8.0;
    for kind in kinds {
        add(svg, &format!(r#"<rect class="{}" x="{x}" y="30" width="12" height="12"/>"#, kind.name()));
        let title = kind.title().replace('`', "");
        add(svg, &format!(r#"<text x="{}" y="40" style="font-size:10px">{title}</text>"#, x + 16.0));
        x += 255.0;
    }
    stroke(svg, "aim", (x.min(WIDTH - 60.0), 30.0), (x.min(WIDTH - 60.0), 42.0));
    add(svg, &format!(r#"<text x="{}" y="40" style="font-size:10px">aim</text>"#, x.min(WIDTH - 60.0) + 6.0));
}

fn stroke(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    add(
        svg,
        &format!(
            r#"<line class="{class}" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}"/>"#,
            from.0, from.1, to.0, to.1,
        ),
    );
}

fn add(svg: &mut String, element: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(svg, "{element}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_logarithmic_and_keeps_what_is_beyond_it_at_its_ends() {
        assert!((across(1.0) - across(0.5) - (across(2.0) - across(1.0))).abs() < 1e-9);
        assert_eq!((across(0.0), across(1000.0)), (LABELS, LABELS + SCALE));
    }
}
