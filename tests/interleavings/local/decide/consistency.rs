//! Whether all fields of a queue agree with each other.

use std::collections::BTreeSet;

use super::entry::{Entry, Predecessor};
use super::local_queue::LocalQueue;

pub(super) fn is_consistent<P: Clone>(queue: &LocalQueue<P>) -> bool {
    let linked = queue.entries.iter().filter_map(|(sequence, entry)| match entry.predecessor {
        Predecessor::Own(predecessor) => Some((predecessor, *sequence)),
        _ => None,
    });
    let linked: BTreeSet<(i32, i32)> = linked.collect();
    let has_no_predecessor_as_head = |entry: &Entry| !entry.is_head() || entry.has_no_predecessor();
    linked == queue.successors
        && linked.iter().all(|(before, after)| before < after && queue.entries.contains_key(before))
        && queue.unsequenced.is_subset(&queue.pending_creates)
        && queue.entries.values().all(has_no_predecessor_as_head)
}
