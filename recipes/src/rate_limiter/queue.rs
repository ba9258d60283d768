use lockkeeper_core::{ConnectionManager, Error, Kind, Label, LockQueue, Read, Rule, ZnodePath};

use super::encoding;

const RULE: Rule = Rule::blocked_by(&[Kind::LIMIT]);

/// The queue of the limiter at this path.
pub(super) fn limiter_queue(
    manager: &ConnectionManager,
    path: &ZnodePath,
    data: &[u8],
) -> Result<LockQueue, Error> {
    let queue = LockQueue::new(manager, path.clone(), Label::LIMIT, RULE)?.with_metric_name("rate_limiter");
    let queue =
        queue.with_persistent_directory(encoding::EMPTY).with_reads(&[Read::DataOnce(path.clone())])?;
    Ok(queue.with_node_data(data))
}
