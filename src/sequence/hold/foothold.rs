use std::sync::Arc;

use crate::sequence::claim::Standing;
use crate::sequence::place::Entry;
use crate::session::OwnNode;

/// One node a hold rests on.
pub(in crate::sequence) struct Foothold {
    // Dropped in this order: struck out of the session's books, then deleted.
    pub(in crate::sequence) entry: Entry,
    pub(in crate::sequence) standing: Standing,
}

impl Foothold {
    pub(in crate::sequence) fn node(&self) -> &Arc<OwnNode> {
        &self.entry.0
    }
}
