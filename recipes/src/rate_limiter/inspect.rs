use std::time::Duration;

use lockkeeper_core::{ConnectionManager, Error, ZnodePath};

use super::decide::Limits;
use super::handle::RateLimiter;
use super::numbers::StartsLimit;
use super::{encoding, limiter_queue};
use crate::inspection::{InspectedRecipe, Inspection, WindowInfo, estimated_time, waiting};
use crate::semaphore::SharedLimit;

const RECIPE: InspectedRecipe =
    InspectedRecipe { name: "rate limiter", counted: Some("starts in the window") };

impl RateLimiter {
    /// Returns the window, with the number of free starts, and the processes that wait: a snapshot, see
    /// [`Inspection`]. It enters no queue, and needs only the right to read.
    ///
    /// Which starts count rests on an estimate of the servers' time, or on this machine's time of day if this
    /// session has written nothing.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect): [`Error::Timeout`], [`Error::Refused`]
    /// (no right to list), [`Error::NoAnswer`] (the link broke: call again) and [`Error::Closed`]. For a
    /// shared limit as [`SharedLimit::get`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        let starts = match self.key.starts() {
            StartsLimit::Fixed(starts) => *starts,
            StartsLimit::Shared(path) => SharedLimit::new(&self.manager, path)?.get().await?,
        };
        let window = read_window(&self.manager, self.key.path(), Some(self.key.limits(starts))).await?;
        inspect_queue(&self.manager, self.key.path(), window).await
    }

    /// The inspection of a limiter whose numbers are those that its last writer recorded. `None` if no window
    /// is there.
    pub(crate) async fn inspect_at(
        manager: &ConnectionManager,
        path: &ZnodePath,
    ) -> Result<Option<Inspection>, Error> {
        match read_window(manager, path, None).await? {
            Some(window) => inspect_queue(manager, path, Some(window)).await.map(Some),
            None => Ok(None),
        }
    }
}

async fn inspect_queue(
    manager: &ConnectionManager,
    path: &ZnodePath,
    window: Option<WindowInfo>,
) -> Result<Inspection, Error> {
    let contenders = waiting(limiter_queue(manager, path, None, &[])?.inspect().await?).collect();
    let limit = window.map(|window| window.limit);
    Ok(Inspection { window, ..Inspection::of(RECIPE, manager, path, limit, contenders) })
}

/// The window with these numbers, or with those that are recorded.
async fn read_window(
    manager: &ConnectionManager,
    path: &ZnodePath,
    limits: Option<Limits>,
) -> Result<Option<WindowInfo>, Error> {
    let read = manager.znodes().read(path).await?;
    let recorded = match read {
        Some((data, stat)) => encoding::decode(&data, stat.mtime).unwrap_or_default(),
        None => encoding::Recorded::default(),
    };
    let Some(limits) = limits.or(recorded.limits) else { return Ok(None) };
    let now = estimated_time(manager);
    let used = recorded.window.used(limits.window, now);
    let millis = |millis: i64| Duration::from_millis(millis.max(0).unsigned_abs());
    let next_free = recorded.window.wait(limits, 0, 1, now);
    Ok(Some(WindowInfo {
        limit: limits.starts,
        window: millis(limits.window),
        used,
        next_free: millis(next_free),
    }))
}
