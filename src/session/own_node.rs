use std::fmt::{self, Debug, Formatter};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::Shared;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{Reservation, Session};
use crate::backend::{Watch, WatchEvent};
use crate::clock::BootInstant;
use crate::error::{LossReason, Lost};

/// A contender's node of ours, waiting or held: what is known of whether it still stands.
///
/// A hold, once lost, stays lost, whatever is learned later.
pub(crate) struct OwnNode {
    number: u64,
    path: String,
    session: Session,
    held: AtomicBool,
    /// Whether the next event may grant it: the session must be confirmed then.
    next: AtomicBool,
    /// How often the lease had lapsed when it was granted.
    lapses: AtomicU64,
    lost: CancellationToken,
    reason: OnceLock<LossReason>,
    /// A watch on the node itself, where one was set while waiting.
    ///
    /// Shared, since several look at it at once: each has its own waker in it.
    watch: Mutex<Option<(Shared<Watch>, Reservation)>>,
}

impl OwnNode {
    pub(super) fn new(number: u64, path: String, session: Session) -> Self {
        Self {
            number,
            path,
            session,
            held: AtomicBool::new(false),
            next: AtomicBool::new(false),
            lapses: AtomicU64::new(0),
            lost: CancellationToken::new(),
            reason: OnceLock::new(),
            watch: Mutex::new(None),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Whether it is held and not known to be lost.
    pub(super) fn is_standing_hold(&self) -> bool {
        self.is_held() && self.reason.get().is_none()
    }

    pub(super) fn needs_confirmation(&self) -> bool {
        self.is_standing_hold() || self.next.load(Ordering::Acquire)
    }

    /// Says that only one contender is left in front.
    pub(crate) fn set_next(&self, next: bool) {
        if self.next.swap(next, Ordering::AcqRel) != next && next {
            self.session.wake_keeper();
        }
    }

    pub(super) fn grant(&self, lapses: u64) {
        self.lapses.store(lapses, Ordering::Release);
        self.held.store(true, Ordering::Release);
    }

    pub(crate) fn set_watch(&self, watch: Watch, reservation: Reservation) {
        *self.watch.lock() = Some((watch.shared(), reservation));
    }

    pub(crate) fn has_watch(&self) -> bool {
        self.watch.lock().is_some()
    }

    /// Ends the hold, or the wait. Returns whether this was the first to do so.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        let first = self.reason.set(reason).is_ok();
        if first {
            if self.is_held() {
                warn!(path = self.path, %reason, "lost what was held");
            }
            self.lost.cancel();
        }
        first
    }

    /// Reads the clock and everything else that is known, and says whether the node is still ours.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        self.look();
        self.verdict()
    }

    /// Resolves when the node is lost.
    pub(crate) async fn lost(&self) -> Lost {
        // The session's keeper watches the clock and the session, and tells; the watch on the node tells by itself.
        loop {
            if let Err(lost) = self.check() {
                return lost;
            }
            let watch = self.watch.lock().as_ref().map(|(watch, _)| watch.clone());
            let changed = async {
                match watch {
                    Some(watch) => watch.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.lost.cancelled() => {}
                _ = changed => {}
            }
        }
    }

    /// The instant before which the node cannot have gone with its session.
    pub(crate) fn valid_until(&self) -> BootInstant {
        self.session.lease_valid_until()
    }

    pub(crate) fn loss_by(&self, reason: LossReason) -> Lost {
        Lost { path: self.path.clone(), reason }
    }

    pub(crate) fn verdict(&self) -> Result<(), Lost> {
        match self.reason.get() {
            Some(reason) => Err(self.loss_by(*reason)),
            None => Ok(()),
        }
    }

    fn look(&self) {
        if self.reason.get().is_some() {
            return;
        }
        if let Some(reason) = self.session.loss() {
            self.lose(reason);
            return;
        }
        if self.is_held() && self.session.lapses() != self.lapses.load(Ordering::Acquire) {
            self.session.give_up(self);
            return;
        }
        let event = {
            let mut watch = self.watch.lock();
            let event = watch.as_ref().and_then(|(watch, _)| watch.clone().now_or_never());
            if event.is_some() {
                *watch = None;
            }
            event
        };
        // A changed node is still ours, and the end of the session is told by the session.
        if event == Some(WatchEvent::Deleted) {
            self.lose(LossReason::NodeDeleted);
        }
    }
}

impl Debug for OwnNode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnNode")
            .field("path", &self.path)
            .field("held", &self.is_held())
            .field("lost", &self.reason.get())
            .finish_non_exhaustive()
    }
}
