use lockkeeper_core::{Error, Line};

use super::{Layout, Mutex};
use crate::inspection::{Inspection, What};

impl Mutex {
    /// Who holds the lock, who waits for it, and since when: a snapshot, see [`Inspection`]. Needs no place in the line, and the
    /// right to read alone. In the layout of a semaphore the holder is its lease.
    ///
    /// # Errors
    ///
    /// As [`Line::inspect`](lockkeeper_core::Line::inspect): [`Error::Timeout`], [`Error::Refused`] (no right to list),
    /// [`Error::NoAnswer`] (the link broke: ask again) and [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is changed.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        match &self.layout {
            Layout::Line(line) => of_line(line).await,
            Layout::Semaphore(semaphore) => {
                Ok(Inspection { what: What::Mutex, limit: None, ..semaphore.inspect().await? })
            }
        }
    }
}

/// What is seen of a mutex in the layout of one line.
pub(crate) async fn of_line(line: &Line) -> Result<Inspection, Error> {
    let contenders = line.inspect().await?;
    Ok(Inspection { what: What::Mutex, path: line.directory().clone(), limit: None, contenders })
}
