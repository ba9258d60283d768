//! One list for several contenders of a session.

use std::sync::Arc;

use futures::future::{FutureExt, TryFutureExt};

use super::QueueEntry;
use crate::local::decide::{CreateInFlight, ListInFlight};
use crate::session::Session;
use crate::shared_future::{SharedFuture, WeakSharedFuture};
use crate::wire::{Reply, WireError};

type Children = Result<Arc<Vec<String>>, WireError>;

/// The last list that was sent for a contender of this queue, as long as a contender waits for its reply.
pub(super) struct LastList {
    list: ListInFlight,
    reply: WeakSharedFuture<Children>,
}

impl LastList {
    /// The reply, for a contender whose node it shows.
    fn shared_by(&self, create: &CreateInFlight) -> Option<SharedFuture<Children>> {
        if self.list.shows(create) { self.reply.upgrade() } else { None }
    }
}

impl QueueEntry {
    /// Lists the directory. After a create that is not judged yet, the list may be one that another contender
    /// sent later than that create.
    ///
    /// The server answers the requests of a connection in their order, so such a list is no older than one
    /// that is sent between the two requests, and it shows the node.
    pub(crate) fn list(
        &self,
        session: &Session,
        connection: Option<u64>,
        create: Option<CreateInFlight>,
    ) -> Reply<Arc<Vec<String>>> {
        let mut state = self.queue.state.lock();
        let last = state.last_list.as_ref().filter(|last| connection == Some(last.list.connection()));
        if let Some(reply) = last.zip(create).and_then(|(last, create)| last.shared_by(&create)) {
            return reply.boxed();
        }
        // Under the lock: what is sent later gets a greater order.
        let reply = session.read(|wire| wire.children(&self.queue.directory)).map_ok(Arc::new);
        let reply = SharedFuture::new(reply.boxed());
        state.last_list = connection
            .map(|connection| LastList { list: state.queue.send_list(connection), reply: reply.downgrade() });
        reply.boxed()
    }
}
