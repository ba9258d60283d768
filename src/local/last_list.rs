use std::sync::Arc;

use super::decide::{CreateInFlight, ListInFlight};
use crate::shared_future::{SharedFuture, WeakSharedFuture};
use crate::wire::WireError;

type Children = Result<Arc<Vec<String>>, WireError>;

/// The last list that was sent for a contender of this queue, as long as a contender waits for its reply.
pub(super) struct LastList {
    pub(super) list: ListInFlight,
    pub(super) reply: WeakSharedFuture<Children>,
}

impl LastList {
    /// The reply, for a contender whose node it shows.
    pub(super) fn shared_by(&self, create: &CreateInFlight) -> Option<SharedFuture<Children>> {
        if self.list.shows(create) { self.reply.upgrade() } else { None }
    }
}
