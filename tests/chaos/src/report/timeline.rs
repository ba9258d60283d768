//! The picture of one lock: time goes right, each task of each client has a row, faults have rows of their
//! own on top and shade what is below.

use std::collections::BTreeMap;

use super::svg::Svg;
use crate::checker::Violation;
use crate::fixture::{SoakLock, path_of, work};
use crate::history::{Event, History, Hold, Incident, Lane, Mode, What, client_of};

const STYLE: &str = "text{font:11px monospace}.title{font-size:15px}.bad{fill:#d00}.quiet{fill:#777}\
    .alone{fill:#2b6cb0}.reading{fill:#38a169}.permits{fill:#dd8a1f}.unsaid{fill:#bbb}.wait{fill:#9aa5b1}\
    .shade{fill:#000;fill-opacity:.07}.servers{fill:#b794c9}.clients{fill:#e6a5a5}.foreign{fill:#d3c26b}\
    .grid{fill:#ddd}.healed{fill:#38a169}.dead{fill:#000}rect.bad{fill-opacity:.8}";

const LEFT: f64 = 90.0;
const TOP: f64 = 44.0;
const LANE: f64 = 15.0;
const ROW: f64 = 13.0;
const BAR: f64 = 9.0;
const SECOND: f64 = 60.0;

/// Where instants are.
#[derive(Clone, Copy, Debug)]
struct Axis {
    zero: u64,
    end: u64,
}

impl Axis {
    fn seconds(self, at: u64) -> f64 {
        at.clamp(self.zero, self.end).saturating_sub(self.zero) as f64 / 1e9
    }

    fn x(self, at: u64) -> f64 {
        LEFT + SECOND * self.seconds(at)
    }

    fn span(self, from: u64, to: u64) -> (f64, f64) {
        (self.x(from), self.x(to) - self.x(from))
    }
}

/// Draws the history of `soak_lock`.
pub(super) fn draw(
    soak_lock: &SoakLock,
    history: &History,
    holds: &[Hold],
    violations: &[Violation],
) -> String {
    let events = || history.processes.values().flatten();
    let axis = Axis {
        zero: events().map(|event| event.at).min().unwrap_or_default(),
        end: events().map(|event| event.at).max().unwrap_or_default(),
    };
    let rows = rows(soak_lock, history);
    let faults = TOP + LANE;
    let first = faults + 3.0 * LANE + 8.0;
    let bottom = first + rows.len() as f64 * ROW;
    let mut svg = Svg::default();
    let account = &history.account;
    svg.text(
        10.0,
        20.0,
        "title",
        format!(
            "{} · {} server(s) · seed {} · blue: alone, green: reading, orange: permits, thin: waiting, \
             grey: held but not claimed, black: killed",
            path_of(soak_lock),
            account.servers,
            account.seed
        ),
    );
    scale(&mut svg, axis, bottom);
    for incident in &account.incidents {
        strike(&mut svg, axis, incident, faults, bottom);
    }
    for (label, y) in [("servers", 0.0), ("clients", 1.0), ("foreign", 2.0)] {
        svg.text(10.0, faults + y * LANE + 11.0, "quiet", label);
    }
    if let Some(healed) = account.healed {
        svg.bar((axis.x(healed), TOP, 2.0, bottom - TOP), "healed", "all faults are healed");
    }
    for ((client, task), number) in &rows {
        svg.text(10.0, first + *number as f64 * ROW + BAR, "quiet", format!("{client} task {task}"));
    }
    let top = |process: &str, task: usize| {
        rows.get(&(client_of(process).to_owned(), task)).map(|row| first + *row as f64 * ROW)
    };
    for (process, events) in &history.processes {
        waits(&mut svg, axis, soak_lock, events, |task| top(process, task));
        if let Some(last) = events.last().filter(|event| event.what != What::Quiet) {
            let title = format!("{process} ended");
            for (_, row) in rows.iter().filter(|((client, _), _)| client == client_of(process)) {
                let y = first + *row as f64 * ROW;
                svg.bar((axis.x(last.at), y - 1.0, 2.0, ROW), "dead", &title);
            }
        }
    }
    for hold in holds.iter().filter(|hold| hold.lock == soak_lock.name) {
        if let Some(y) = top(&hold.process, hold.task) {
            held(&mut svg, axis, hold, y);
        }
    }
    complain(&mut svg, axis, soak_lock, violations, bottom);
    svg.finish(STYLE)
}

/// The tasks that take the lock, each with its row.
fn rows(soak_lock: &SoakLock, history: &History) -> BTreeMap<(String, usize), usize> {
    let mut rows = BTreeMap::new();
    for process in history.processes.keys() {
        for (task, _) in work().enumerate().filter(|(_, work)| work.takes(soak_lock)) {
            rows.insert((client_of(process).to_owned(), task), 0);
        }
    }
    rows.values_mut().enumerate().for_each(|(number, row)| *row = number);
    rows
}

fn scale(svg: &mut Svg, axis: Axis, bottom: f64) {
    let seconds = axis.seconds(axis.end).ceil() as u64;
    for second in 0..=seconds {
        let x = LEFT + SECOND * second as f64;
        svg.bar((x, TOP, 0.8, bottom - TOP), "grid", format!("{second} s"));
        if second % 5 == 0 {
            svg.text(x + 2.0, TOP - 4.0, "quiet", format!("{second} s"));
        }
    }
}

fn strike(svg: &mut Svg, axis: Axis, incident: &Incident, faults: f64, bottom: f64) {
    let (lane, class) = match incident.lane {
        Lane::Servers => (0.0, "servers"),
        Lane::Clients => (1.0, "clients"),
        Lane::Foreign => (2.0, "foreign"),
    };
    let (x, width) = axis.span(incident.start, incident.stop);
    let Incident { kind, target, failed, .. } = incident;
    let failed = failed.as_ref().map(|why| format!(" (not as meant: {why})")).unwrap_or_default();
    let title = format!("{kind}, {target}, at {:.2} s{failed}", axis.seconds(incident.start));
    svg.bar((x, faults, width, bottom - faults), "shade", &title);
    svg.bar((x, faults + lane * LANE, width, LANE - 2.0), class, &title);
    let room = (width / 6.7) as usize;
    let label: String = format!("{kind} {target}").chars().take(room).collect();
    svg.text(x + 1.0, faults + lane * LANE + 10.5, "label", label);
}

fn waits(
    svg: &mut Svg,
    axis: Axis,
    soak_lock: &SoakLock,
    events: &[Event],
    top: impl Fn(usize) -> Option<f64>,
) {
    let mut asked: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut wait = |from: u64, to: u64, task: usize, how: &str| {
        if let Some(y) = top(task) {
            let (x, width) = axis.span(from, to);
            let title = format!("waits {:.0} ms, {how}", axis.seconds(to) * 1e3 - axis.seconds(from) * 1e3);
            svg.bar((x, y + BAR / 2.0 - 1.0, width, 2.0), "wait", title);
        }
    };
    for Event { at, task, what } in events {
        match what {
            What::Asked { attempt, locks } if locks.iter().any(|lock| lock == soak_lock.name) => {
                asked.insert(*attempt, (*at, *task));
            }
            What::Granted { attempt, .. } | What::GaveUp { attempt, .. } | What::Failed { attempt, .. } => {
                if let Some((from, task)) = asked.remove(attempt) {
                    let how = match what {
                        What::Granted { .. } => "then granted".to_owned(),
                        What::Failed { error, .. } => format!("then fails: {error}"),
                        _ => "then not granted".to_owned(),
                    };
                    wait(from, *at, task, &how);
                }
            }
            _ => {}
        }
    }
    // Killed while it waited.
    let last = events.last().map_or(axis.end, |event| event.at);
    for (from, task) in asked.into_values() {
        wait(from, last, task, "then ends");
    }
}

fn held(svg: &mut Svg, axis: Axis, hold: &Hold, y: f64) {
    let class = match hold.mode {
        Mode::Alone => "alone",
        Mode::Reading => "reading",
        Mode::Permits(_) => "permits",
    };
    let at = axis.seconds(hold.granted);
    let lost = hold.lost.as_ref().map(|(_, why)| format!(", lost: {why}")).unwrap_or_default();
    let released = hold.released.as_ref().map(|how| format!(", {how}")).unwrap_or_default();
    let title = format!("{} at {at:.3} s{lost}{released}", hold.title());
    let over = hold.over.unwrap_or_else(|| hold.valid.map_or(hold.granted, |(_, end)| end));
    let (x, width) = axis.span(hold.granted, over);
    svg.bar((x, y, width, BAR), "unsaid", &title);
    if let Some((start, end)) = hold.valid {
        let (x, width) = axis.span(start, end);
        svg.bar((x, y, width, BAR), class, &title);
    }
}

fn complain(svg: &mut Svg, axis: Axis, soak_lock: &SoakLock, violations: &[Violation], bottom: f64) {
    let ours =
        violations.iter().filter(|violation| violation.lock.is_empty() || violation.lock == soak_lock.name);
    for (number, violation) in ours.enumerate() {
        let at = axis.seconds(violation.at);
        svg.bar((axis.x(violation.at) - 1.0, TOP, 3.0, bottom - TOP), "bad", violation);
        // The picture marks all of them; the summary lists them.
        if number < 40 {
            svg.text(LEFT, bottom + 16.0 + number as f64 * 14.0, "bad", format!("{at:.3} s: {violation}"));
        }
    }
}
