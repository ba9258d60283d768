//! The summary: figures, faults, violations.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::checker::Violation;
use crate::fixture::{self, SOAK_LOCKS};
use crate::history::{History, Hold, What};

/// The number of listed violations; the pictures mark all.
const LISTED: usize = 50;

/// The text, which begins with the verdict.
pub(super) fn write(
    history: &History,
    holds: &[Hold],
    violations: &[Violation],
    lapses: &[String],
    folder: &Path,
) -> String {
    let account = &history.account;
    let mut text = String::new();
    let zero = first(history);
    let verdict = match violations.len() {
        count if !lapses.is_empty() => {
            format!("THE SERVERS BROKE THEIR WORD, so {count} violations prove nothing")
        }
        0 => "no promise was broken".to_owned(),
        count => format!("{count} VIOLATIONS"),
    };
    let _ = writeln!(text, "{verdict}: {} server(s), seed {}", account.servers, account.seed);
    let _ = writeln!(text, "histories and pictures: {}", folder.display());
    let _ = writeln!(
        text,
        "again, with the same plan: lockkeeper-chaos run --servers {} --seed {}\n",
        account.servers, account.seed
    );
    for violation in violations.iter().take(LISTED) {
        let at = violation.at.saturating_sub(zero) as f64 / 1e9;
        let _ = writeln!(text, "{at:9.3} s  {violation}");
    }
    if violations.len() > LISTED {
        let _ = writeln!(text, "… and {} more", violations.len() - LISTED);
    }
    table(&mut text, holds);
    if let Some(recovery) = recovery(history, holds) {
        let _ = writeln!(text, "\nevery client had all its locks again {recovery:.1} s after the healing");
    }
    let _ = writeln!(text, "\n{}", jobs(history));
    for lapse in lapses {
        let _ = writeln!(text, "lapse of the servers: {lapse}");
    }
    let _ = writeln!(text, "\n{}", attempts(history));
    faults(&mut text, history);
    text
}

/// A row for each lock.
fn table(text: &mut String, holds: &[Hold]) {
    let _ = writeln!(
        text,
        "{:<17}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>16}",
        "lock", "grants", "handed", "lost", "commits", "stamps", "refused", "longest outage"
    );
    for name in SOAK_LOCKS.iter().map(|soak_lock| soak_lock.name).chain(["partition"]) {
        // All items of the partition are one row.
        let of: Vec<&Hold> = holds.iter().filter(|hold| hold.lock.split('/').next() == Some(name)).collect();
        let lost = of.iter().filter(|hold| hold.lost.is_some()).count();
        let commits: usize = of.iter().map(|hold| hold.committed.len()).sum();
        let stamps: usize = of.iter().map(|hold| hold.stamps.len()).sum();
        let refused: usize = of.iter().flat_map(|hold| &hold.stamps).filter(|stamp| !stamp.accepted).count();
        let handed = of.iter().filter(|hold| hold.token.handover > 0).count();
        let outage = outage(&of);
        let _ = writeln!(
            text,
            "{:<17}{:>9}{handed:>9}{lost:>9}{commits:>9}{stamps:>9}{refused:>9}{outage:>14.1} s",
            name,
            of.len()
        );
    }
}

/// What became of the items of the work queue, and of the updates of the table.
fn jobs(history: &History) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |name, number| *counts.entry(name).or_default() += number;
    for event in history.processes.values().flatten() {
        match &event.what {
            What::Putting { items, .. } => count("asked for", items.len()),
            What::Granted { lock, .. } if fixture::job_of(lock).is_some() => count("takes", 1),
            What::Done { .. } => count("ends", 1),
            What::Updated { .. } => count("updates", 1),
            _ => {}
        }
    }
    let jobs = &history.account.jobs;
    count("effects", jobs.effects.len());
    count("failed", jobs.failed.len());
    count("ended by the driver", jobs.drained.len());
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    format!("work queue and table: {}", counts.join(", "))
}

/// How often each kind of fault struck.
fn faults(text: &mut String, history: &History) {
    let _ = writeln!(text, "\nfaults");
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for incident in &history.account.incidents {
        let (count, failed) = kinds.entry(&incident.kind).or_default();
        *count += 1;
        *failed += usize::from(incident.failed.is_some());
    }
    for (kind, (count, failed)) in kinds {
        let not = if failed > 0 { format!(", {failed} not as meant") } else { String::new() };
        let _ = writeln!(text, "{count:>5}  {kind}{not}");
    }
}

fn first(history: &History) -> u64 {
    history.processes.values().flatten().map(|event| event.at).min().unwrap_or_default()
}

/// The longest time between two grants.
fn outage(holds: &[&Hold]) -> f64 {
    let mut grants: Vec<u64> = holds.iter().map(|hold| hold.granted).collect();
    grants.sort_unstable();
    let gaps = grants.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?));
    gaps.max().unwrap_or_default() as f64 / 1e9
}

/// How long after the healing the last client got its last lock, if all did.
fn recovery(history: &History, holds: &[Hold]) -> Option<f64> {
    let healed = history.account.healed.filter(|_| history.account.unserved.is_empty())?;
    let mut first: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for hold in holds.iter().filter(|hold| hold.granted > healed && fixture::named(&hold.lock).is_some()) {
        let at = first.entry((hold.client(), &hold.lock)).or_insert(hold.granted);
        *at = hold.granted.min(*at);
    }
    first.into_values().max().map(|last| (last - healed) as f64 / 1e9)
}

/// The results of all attempts, and the reasons of the failures.
fn attempts(history: &History) -> String {
    let mut asked = 0;
    let mut gave_up = 0;
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for event in history.processes.values().flatten() {
        match &event.what {
            What::Asked { .. } => asked += 1,
            What::GaveUp { .. } => gave_up += 1,
            What::Failed { error, .. } => {
                // Without paths and numbers they are of few kinds.
                let kind: Vec<&str> =
                    error.split_whitespace().filter(|word| !word.contains('/')).take(10).collect();
                *failures.entry(kind.join(" ")).or_default() += 1;
            }
            _ => {}
        }
    }
    let mut text =
        format!("{asked} attempts, {gave_up} not granted, {} failed", failures.values().sum::<usize>());
    for (error, count) in failures {
        let _ = write!(text, "\n{count:>5}  {error}");
    }
    text
}
