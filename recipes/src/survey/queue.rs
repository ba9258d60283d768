//! Work queues, as a survey sees them.

use lockkeeper_core::{ConnectionManager, Error, IntoPath, Stat, ZnodePath, count_of};

use super::found::SurveyQueue;
use super::layout::{is_work_queue, may_be_work_queue};
use crate::work_queue::{FAILED, ShardNumber, WorkQueue, WorkQueueInspection};

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
    let stat = async |name: &str| manager.znodes().exists(path.child(name)?).await;
    let mut shards: Vec<ShardNumber> = children.iter().filter_map(|name| ShardNumber::parse(name)).collect();
    shards.sort_unstable();
    // The names of one directory tell whether these are items, and the numbers of the others are enough.
    let (mut item_count, mut names) = (0_u32, Vec::new());
    for shard in shards {
        if names.is_empty() {
            names = manager.znodes().children(path.child(&shard.name())?).await?.unwrap_or_default();
            item_count = count_of(names.len());
        } else {
            item_count = item_count.saturating_add(children_of(stat(&shard.name()).await?));
        }
    }
    if !is_work_queue(children, &names) {
        return Ok(None);
    }
    let failed_count = children_of(stat(FAILED).await?);
    Ok(Some(SurveyQueue { path: path.clone(), item_count, failed_count }))
}

fn children_of(stat: Option<Stat>) -> u32 {
    stat.map_or(0, |stat| u32::try_from(stat.children).unwrap_or_default())
}
