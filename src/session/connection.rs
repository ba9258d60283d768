//! The connections of a session, one after the other.

use std::sync::atomic::Ordering;

use super::Session;
use crate::error::LossReason;
use crate::time::deadline::Deadline;
use crate::wire::{Link, WireError};

impl Session {
    pub(super) fn link(&self) -> Link {
        match self.wire() {
            Ok(wire) => wire.link(),
            Err(_) => Link::Ended(self.loss().unwrap_or(LossReason::SessionExpired)),
        }
    }

    /// The number of the present connection. Every interruption of the link begins another one.
    pub(crate) fn connection(&self) -> Option<u64> {
        self.wire().ok().map(|wire| wire.connection_id())
    }

    /// As [`connection`](Self::connection), but only if the link is up: a request that is sent now is sent
    /// over it, and not queued.
    pub(crate) fn live_connection(&self) -> Option<u64> {
        let wire = self.wire().ok()?;
        let connection = wire.connection_id();
        (wire.link() == Link::Up && wire.connection_id() == connection).then_some(connection)
    }

    /// Resolves once the link is up on another connection than `before`.
    pub(crate) async fn reconnected(&self, before: Option<u64>) {
        loop {
            let changed = match self.wire() {
                Ok(wire) => {
                    let changed = wire.link_changed();
                    if wire.link() == Link::Up && Some(wire.connection_id()) != before {
                        return;
                    }
                    changed
                }
                Err(_) => return std::future::pending().await,
            };
            changed.await;
        }
    }

    /// Resolves once the link is down, or up on another connection than this one.
    pub(crate) async fn interrupted(&self, connection: Option<u64>) {
        while let Ok(wire) = self.wire() {
            // The listener is armed before the state is read, so no change is missed.
            let changed = wire.link_changed();
            if wire.link() != Link::Up || Some(wire.connection_id()) != connection {
                return;
            }
            drop(wire);
            changed.await;
        }
    }

    /// Ensures that a read that follows shows everything that this session has learned.
    ///
    /// A watch event does not raise the zxid by which a server that is behind refuses a client. A contender
    /// that was granted a lock by an event, and is then moved to such a server, would read old data. One
    /// sync with the quorum per connection prevents this. Returns the number of the connection when the sync
    /// was asked for: if that is the present one, it is in sync.
    pub(crate) async fn ensure_synced(&self, deadline: Deadline) -> Result<u64, WireError> {
        let connection = self.wire()?.connection_id();
        if self.0.synced_on.load(Ordering::Acquire) == connection {
            return Ok(connection);
        }
        let mut sync = self.quorum_sync();
        self.await_reply(&mut sync, deadline).await?;
        self.0.synced_on.store(connection, Ordering::Release);
        Ok(connection)
    }

    pub(super) async fn follow_link(&self, on_link: impl Fn(Link)) -> LossReason {
        let mut connection_seen = 0;
        loop {
            let Ok(wire) = self.wire() else {
                return self.ended().await;
            };
            // The listener is armed before the state is read, so no change is missed.
            let changed = wire.link_changed();
            let (link, connection_id) = (wire.link(), wire.connection_id());
            match link {
                Link::Ended(reason) => return reason,
                Link::Down => {
                    let _ = self.0.down_since.lock().get_or_insert(self.now());
                    on_link(Link::Down);
                }
                Link::Up => {
                    if connection_id != connection_seen {
                        // The link may have been down so briefly that only the new connection was seen.
                        on_link(Link::Down);
                        self.0.quorum_silent.store(false, Ordering::Release);
                    }
                    *self.0.down_since.lock() = None;
                    on_link(Link::Up);
                    wire.on_connected();
                    self.0.renewal.wake();
                }
            }
            connection_seen = connection_id;
            drop(wire);
            changed.await;
        }
    }
}
