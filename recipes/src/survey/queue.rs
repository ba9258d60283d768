//! Work queues, as a survey sees them.

use lockkeeper_core::{ConnectionManager, Error, IntoPath, ZnodePath, count_of};

use super::found::SurveyQueue;
use super::layout::{is_work_queue, may_be_work_queue};
use crate::work_queue::{FAILED, ITEMS, WorkQueue, WorkQueueInspection};

impl WorkQueueInspection {
    /// Returns the items and the failed items of the work queue at this path. `None` if there is no work
    /// queue, or nothing was ever put into it. It needs only the right to read.
    ///
    /// # Errors
    ///
    /// As [`WorkQueue::inspect`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn of_path(manager: &ConnectionManager, path: impl IntoPath) -> Result<Option<Self>, Error> {
        let path = path.into_path()?;
        let Some(children) = manager.znodes().children(&path).await? else { return Ok(None) };
        match queue_at(manager, &path, &children).await? {
            Some(_) => Ok(Some(WorkQueue::<String>::new(manager, path)?.inspect().await?)),
            None => Ok(None),
        }
    }
}

/// The work queue that a directory with these children is.
pub(super) async fn queue_at(
    manager: &ConnectionManager,
    path: &ZnodePath,
    children: &[String],
) -> Result<Option<SurveyQueue>, Error> {
    if path.is_root() || !may_be_work_queue(children) {
        return Ok(None);
    }
    let list = async |name: &str| manager.znodes().children(path.child(name)?).await;
    let Some(items) = list(ITEMS).await? else { return Ok(None) };
    if !is_work_queue(children, &items) {
        return Ok(None);
    }
    let failed = list(FAILED).await?.unwrap_or_default();
    let (item_count, failed_count) = (count_of(items.len()), count_of(failed.len()));
    Ok(Some(SurveyQueue { path: path.clone(), item_count, failed_count }))
}
