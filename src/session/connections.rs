//! The connections of a session, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::suspect_requests::SeenLink;
use crate::error::LossReason;
use crate::time::boot::BootInstant;
use crate::wire::{Link, Wire};

/// The client of a session, and what is known about its connections.
pub(super) struct Connections {
    /// `None` once the session ended: a session is kept alive as long as one clone of its client exists.
    wire: RwLock<Option<Arc<dyn Wire>>>,
    /// The connection on which reads show everything that this session has learned.
    synced_on: AtomicU64,
    /// Since when the link is down, if it is.
    down_since: Mutex<Option<BootInstant>>,
    /// The connection on which requests get no answers, and since when.
    silence: Mutex<Option<(u64, BootInstant)>>,
}

/// A change of the link.
pub(super) enum LinkChange {
    Down,
    /// The link is up on another connection. It may have been down so briefly that only that one was seen.
    Replaced,
    Up,
}

impl Connections {
    pub(super) fn new(wire: Arc<dyn Wire>) -> Self {
        Self {
            wire: RwLock::new(Some(wire)),
            synced_on: AtomicU64::new(0),
            down_since: Mutex::new(None),
            silence: Mutex::new(None),
        }
    }

    /// The client, until the session ends.
    pub(super) fn wire(&self) -> Option<Arc<dyn Wire>> {
        self.wire.read().clone()
    }

    /// Drops the client: the session is over.
    pub(super) fn close(&self) {
        if let Some(wire) = self.wire.write().take() {
            wire.abandon();
        }
    }

    /// The number of the present connection. Every interruption of the link begins another one.
    pub(super) fn present(&self) -> Option<u64> {
        self.wire().map(|wire| wire.connection_id())
    }

    /// As [`present`](Self::present), but only if the link is up: a request that is sent now is sent over it,
    /// and not queued.
    pub(super) fn live(&self) -> Option<u64> {
        let wire = self.wire()?;
        let connection = wire.connection_id();
        (wire.link() == Link::Up && wire.connection_id() == connection).then_some(connection)
    }

    /// The link, and the number of changes before it.
    pub(super) fn seen_link(&self) -> Option<SeenLink> {
        let wire = self.wire()?;
        loop {
            let (id, link) = (wire.connection_id(), wire.link());
            if wire.connection_id() == id {
                return Some(SeenLink { id, link });
            }
        }
    }

    /// Resolves once the link is up on another connection than `before`.
    pub(super) async fn reconnected(&self, before: Option<u64>) {
        loop {
            let changed = match self.wire() {
                Some(wire) => {
                    let changed = wire.link_changed();
                    if wire.link() == Link::Up && Some(wire.connection_id()) != before {
                        return;
                    }
                    changed
                }
                None => return std::future::pending().await,
            };
            changed.await;
        }
    }

    /// Resolves once the link is down, or up on another connection than this one.
    pub(super) async fn interrupted(&self, connection: Option<u64>) {
        while let Some(wire) = self.wire() {
            // The listener is armed before the state is read, so no change is missed.
            let changed = wire.link_changed();
            if wire.link() != Link::Up || Some(wire.connection_id()) != connection {
                return;
            }
            drop(wire);
            changed.await;
        }
    }

    /// Whether reads over this connection show everything that the session has learned.
    pub(super) fn is_synced(&self, connection: u64) -> bool {
        self.synced_on.load(Ordering::Acquire) == connection
    }

    pub(super) fn set_synced(&self, connection: u64) {
        self.synced_on.store(connection, Ordering::Release);
    }

    /// Whether the link has been down for this long.
    pub(super) fn is_down_for(&self, span: Duration, now: BootInstant) -> bool {
        self.down_since.lock().is_some_and(|since| now.since(since) >= span)
    }

    /// A server has answered a request.
    pub(super) fn answered(&self) {
        *self.silence.lock() = None;
    }

    /// A request that was sent at `begun` had no answer until `now`. Returns whether the present connection
    /// has answered nothing for longer than `max`, although it is up.
    pub(super) fn had_no_answer(&self, max: Duration, begun: BootInstant, now: BootInstant) -> bool {
        let Some(connection) = self.live() else { return false };
        let mut silence = self.silence.lock();
        let (on, since) = *silence.get_or_insert((connection, begun));
        if on != connection {
            *silence = Some((connection, begun));
            return false;
        }
        now.since(since) > max
    }

    /// Reports the changes of the link until the session is over. Returns the reason, if the client knows it.
    pub(super) async fn follow(
        &self,
        now: impl Fn() -> BootInstant,
        report: impl Fn(LinkChange),
    ) -> Option<LossReason> {
        let mut connection_seen = 0;
        loop {
            let wire = self.wire()?;
            // The listener is armed before the state is read, so no change is missed.
            let changed = wire.link_changed();
            let (link, connection_id) = (wire.link(), wire.connection_id());
            match link {
                Link::Ended(reason) => return Some(reason),
                Link::Down => {
                    let _ = self.down_since.lock().get_or_insert(now());
                    report(LinkChange::Down);
                }
                Link::Up => {
                    if connection_id != connection_seen {
                        report(LinkChange::Replaced);
                    }
                    *self.down_since.lock() = None;
                    report(LinkChange::Up);
                    wire.on_connected();
                }
            }
            connection_seen = connection_id;
            drop(wire);
            changed.await;
        }
    }
}
