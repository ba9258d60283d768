use lockkeeper_core::{ConnectionManager, Error, Kind, Label, LockQueue, Read, Rule, ZnodePath};

use super::encoding;

const RULE: Rule = Rule::blocked_by(&[Kind::LIMIT]);

/// The queue of the limiter at this path. Its reads are the window, and the node with a shared limit.
pub(super) fn limiter_queue(
    manager: &ConnectionManager,
    path: &ZnodePath,
    shared_limit: Option<&ZnodePath>,
    data: &[u8],
) -> Result<LockQueue, Error> {
    let queue = LockQueue::new(manager, path.clone(), Label::LIMIT, RULE)?.with_metric_name("rate_limiter");
    let mut reads = vec![Read::DataOnce(path.clone())];
    reads.extend(shared_limit.cloned().map(Read::Data));
    let queue = queue.with_persistent_directory(encoding::EMPTY).with_reads(&reads)?;
    Ok(queue.with_node_data(data))
}
