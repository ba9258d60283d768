//! The report for a reader: a picture of each lock, and a summary.

mod summary;
mod svg;
mod timeline;

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::checker::Violation;
use crate::fixture::SOAK_LOCKS;
use crate::history::History;

/// Writes one picture for each lock and a summary into `folder`; yields the summary.
pub(crate) fn write(
    history: &History,
    violations: &[Violation],
    lapses: &[String],
    folder: &Path,
) -> Result<String, Failure> {
    let holds = history.holds();
    for soak_lock in SOAK_LOCKS {
        let picture = timeline::draw(soak_lock, history, &holds, violations);
        fs::write(folder.join(format!("{}.svg", soak_lock.name)), picture)?;
    }
    let summary = summary::write(history, &holds, violations, lapses, folder);
    fs::write(folder.join("summary.txt"), &summary)?;
    Ok(summary)
}
