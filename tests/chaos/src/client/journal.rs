use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::clock;
use crate::history::{Event, What};

/// What a client writes down, at once: what was said before a kill counts.
#[derive(Debug)]
pub(crate) struct Journal {
    file: Mutex<File>,
    numbers: AtomicU64,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(File::create(path)?), numbers: AtomicU64::new(1) })
    }

    /// A number for an attempt or a hold.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Something that has happened by now.
    pub(crate) fn say(&self, task: usize, what: What) {
        self.say_at(clock::now(), task, what);
    }

    /// Something that was so at `at`.
    pub(crate) fn say_at(&self, at: u64, task: usize, what: What) {
        let Ok(mut line) = serde_json::to_vec(&Event { at, task, what }) else { return };
        line.push(b'\n');
        // Without its history a client proves nothing, and it would look like one that holds nothing: better
        // dead.
        if self.file.lock().write_all(&line).is_err() {
            std::process::abort();
        }
    }
}
