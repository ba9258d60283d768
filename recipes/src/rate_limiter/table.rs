use std::collections::HashMap;
use std::sync::{Arc, Weak};

use lockkeeper_core::{ConnectionManager, ManagerExt};
use parking_lot::Mutex;

use super::line::Line;
use super::numbers::LimiterKey;

/// The lines of one manager. A line lives as long as a call or a worker has it.
#[derive(Default)]
pub(super) struct Lines(Mutex<LineTable>);

#[derive(Default)]
struct LineTable {
    lines: HashMap<LimiterKey, Weak<Line>>,
    /// With so many lines, those that have ended are forgotten.
    full: usize,
}

/// The line of this limiter.
pub(super) fn line_of(manager: &ConnectionManager, key: &LimiterKey) -> Arc<Line> {
    let lines: Arc<Lines> = manager.shared_table();
    let mut table = lines.0.lock();
    if let Some(line) = table.lines.get(key).and_then(Weak::upgrade) {
        return line;
    }
    if table.lines.len() >= table.full {
        table.lines.retain(|_, line| line.strong_count() > 0);
        table.full = table.lines.len().saturating_mul(2).max(64);
    }
    let line = Arc::<Line>::default();
    table.lines.insert(key.clone(), Arc::downgrade(&line));
    line
}
