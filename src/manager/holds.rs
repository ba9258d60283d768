//! The holds of a manager and their events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Formatter};
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tracing::{debug, warn};

use crate::error::{HeldHere, LossReason, Lost};
use crate::session::OwnedNode;
use crate::telemetry::metrics;
use crate::telemetry::timers::HoldTimer;
use crate::znode::fencing_token::FencingToken;
use crate::znode::path::ZnodePath;

/// A message names one hold of the manager: it is searched among so many.
const HOLDS_LOOKED_AT: usize = 64;

/// An event of a hold of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldEvent {
    /// The hold was granted.
    Acquired {
        /// The path of the node that it rests on, as of its guard; of the first one, if there are several.
        path: ZnodePath,
        /// Its fencing token.
        token: FencingToken,
    },
    /// The holder ended the hold, by a release or by dropping it.
    Released {
        /// The path of the node that it rested on.
        path: ZnodePath,
    },
    /// The hold ended before its holder released it.
    Lost {
        /// The path of the node that it rested on.
        path: ZnodePath,
        /// Why the hold is lost.
        reason: LossReason,
    },
}

/// A stream of the events of holds, from the subscription on. Every event comes exactly once.
///
/// An event is kept until it is received: receive the events, or drop the stream. The stream ends with the
/// manager.
#[derive(Debug)]
pub struct HoldEvents {
    receiver: mpsc::UnboundedReceiver<HoldEvent>,
}

impl HoldEvents {
    /// The next event; `None` once the manager has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an event not returned is returned next time.
    pub async fn next(&mut self) -> Option<HoldEvent> {
        self.receiver.recv().await
    }
}

impl Stream for HoldEvents {
    type Item = HoldEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<HoldEvent>> {
        self.receiver.poll_recv(context)
    }
}

/// The holds of each queue, and the streams of their events.
#[derive(Default)]
pub(crate) struct HoldRegistry {
    paths: Mutex<BTreeMap<String, PathHolds>>,
    /// The recipes of the holds so far.
    recipes: Mutex<BTreeSet<&'static str>>,
    /// The number of holds that have begun and not ended.
    held: AtomicU32,
    /// Notified when nothing is held any more.
    emptied: Notify,
}

#[derive(Default)]
struct PathHolds {
    registrations: Vec<Weak<HoldRegistration>>,
    listeners: Vec<mpsc::UnboundedSender<HoldEvent>>,
}

impl HoldRegistry {
    /// `paths` are the keys of the queues.
    pub(crate) fn listen(&self, paths: impl IntoIterator<Item = String>) -> HoldEvents {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut holds = self.paths.lock();
        holds.retain(|_, here| {
            here.listeners.retain(|listener| !listener.is_closed());
            !here.registrations.is_empty() || !here.listeners.is_empty()
        });
        for path_key in paths {
            holds.entry(path_key).or_default().listeners.push(sender.clone());
        }
        HoldEvents { receiver }
    }

    /// Whether this queue has a valid hold.
    pub(crate) fn is_held(&self, path_key: &str) -> bool {
        let registrations: Vec<Arc<HoldRegistration>> = match self.paths.lock().get(path_key) {
            Some(here) => here.registrations.iter().filter_map(Weak::upgrade).collect(),
            None => return false,
        };
        registrations.iter().any(|registration| registration.is_valid())
    }

    /// A valid hold of a caller that rests on a node in `directory`, among the first ones there.
    pub(crate) fn held_here(&self, directory: &str) -> Option<HeldHere> {
        self.holds_in(directory, HOLDS_LOOKED_AT).into_values().next()
    }

    /// The valid holds of callers that rest on nodes in `directory`, by the paths of the nodes. Looks at no
    /// more than `max` holds.
    pub(crate) fn holds_in(&self, directory: &str, max: usize) -> BTreeMap<String, HeldHere> {
        let registrations: Vec<Arc<HoldRegistration>> = {
            let paths = self.paths.lock();
            let here = paths.range(directory.to_owned()..).take_while(|(key, _)| key.starts_with(directory));
            here.flat_map(|(_, here)| here.registrations.iter().filter_map(Weak::upgrade)).take(max).collect()
        };
        let is_there = |path: &str| path.rsplit_once('/').is_some_and(|(parent, _)| parent == directory);
        let mut holds = BTreeMap::new();
        for hold in registrations.iter().filter(|hold| hold.is_of_a_caller()) {
            let held_here = HeldHere { place: hold.place.get().copied() };
            let nodes = hold.nodes.iter().filter_map(Weak::upgrade).filter(|node| is_there(node.path()));
            holds.extend(nodes.map(|node| (node.path().to_owned(), held_here)));
        }
        holds
    }

    /// The number of holds that are not lost.
    pub(crate) fn held(&self) -> u32 {
        self.held.load(Ordering::Acquire)
    }

    /// Resolves when nothing is held.
    pub(crate) async fn nothing_held(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            emptied.as_mut().enable();
            if self.held() == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn ended(&self) {
        if self.held.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.emptied.notify_waiters();
        }
    }

    fn send(&self, path_key: &str, event: &HoldEvent) {
        if let Some(here) = self.paths.lock().get_mut(path_key) {
            here.listeners.retain(|listener| listener.send(event.clone()).is_ok());
        }
    }

    /// Removes the entries of ended holds and closed streams.
    fn remove(&self, path_key: &str) {
        let mut paths = self.paths.lock();
        if let Some(here) = paths.get_mut(path_key) {
            here.registrations.retain(|registration| registration.strong_count() > 0);
            here.listeners.retain(|listener| !listener.is_closed());
            if here.registrations.is_empty() && here.listeners.is_empty() {
                paths.remove(path_key);
            }
        }
    }
}

impl Debug for HoldRegistry {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HoldRegistry").field("paths", &self.paths.lock().len()).finish()
    }
}

/// Reports the begin and the end of one hold. Dropped with the hold.
pub(crate) struct HoldRegistration {
    registry: Arc<HoldRegistry>,
    path_key: String,
    nodes: Vec<Weak<OwnedNode>>,
    /// Below the chroot.
    path: ZnodePath,
    has_ended: AtomicBool,
    loss_report: Mutex<LossReport>,
    timer: HoldTimer,
    /// The call that acquired the first guard of the hold, if it is known.
    place: OnceLock<&'static Location<'static>>,
}

/// When a loss is logged and counted.
#[derive(Debug)]
enum LossReport {
    AtOnce,
    /// The hold is a step of an acquire: once it is granted to a caller, if it ever is.
    Deferred,
    /// The loss of such a hold.
    Pending(Lost),
}

impl HoldRegistration {
    /// Registers and reports a grant in `path_key` that rests on `nodes`.
    pub(crate) fn announce<'a>(
        registry: &Arc<HoldRegistry>,
        path_key: String,
        path: ZnodePath,
        nodes: impl IntoIterator<Item = &'a Arc<OwnedNode>>,
        token: FencingToken,
        timer: HoldTimer,
    ) -> Arc<Self> {
        let nodes: Vec<&Arc<OwnedNode>> = nodes.into_iter().collect();
        if registry.recipes.lock().insert(timer.recipe()) {
            metrics::recipe_holds(timer.recipe());
        }
        let registration = Arc::new(Self {
            registry: Arc::clone(registry),
            path_key: path_key.clone(),
            nodes: nodes.iter().map(|node| Arc::downgrade(node)).collect(),
            path: path.clone(),
            has_ended: AtomicBool::new(false),
            loss_report: Mutex::new(LossReport::AtOnce),
            timer,
            place: OnceLock::new(),
        });
        registry.held.fetch_add(1, Ordering::AcqRel);
        registry
            .paths
            .lock()
            .entry(path_key.clone())
            .or_default()
            .registrations
            .push(Arc::downgrade(&registration));
        registry.send(&path_key, &HoldEvent::Acquired { path, token });
        for node in nodes {
            let registration = Arc::downgrade(&registration);
            node.on_loss(Box::new(move |lost| {
                if let Some(registration) = registration.upgrade() {
                    registration.lose(&lost);
                }
            }));
        }
        registration
    }

    /// The path of the first node, below the chroot.
    pub(crate) fn path(&self) -> &ZnodePath {
        &self.path
    }

    fn is_valid(&self) -> bool {
        let is_valid = |node: &Weak<OwnedNode>| node.upgrade().is_some_and(|node| node.verdict().is_ok());
        !self.has_ended.load(Ordering::Acquire) && self.nodes.iter().all(is_valid)
    }

    /// Whether a caller has the hold, and it is valid. A step of an acquire has none.
    fn is_of_a_caller(&self) -> bool {
        matches!(*self.loss_report.lock(), LossReport::AtOnce) && self.is_valid()
    }

    /// Records the call that acquired the hold. The first one stays.
    pub(crate) fn set_place(&self, place: &'static Location<'static>) {
        let _ = self.place.set(place);
    }

    pub(crate) fn timer(&self) -> &HoldTimer {
        &self.timer
    }

    /// From now on a loss is neither logged as one nor counted, until it is [reported](Self::report_loss).
    pub(crate) fn defer_loss_report(&self) {
        let mut report = self.loss_report.lock();
        if matches!(*report, LossReport::AtOnce) {
            *report = LossReport::Deferred;
        }
    }

    /// Reports a loss since [`defer_loss_report`](Self::defer_loss_report), and each one from now on.
    pub(crate) fn report_loss(&self) {
        let earlier = std::mem::replace(&mut *self.loss_report.lock(), LossReport::AtOnce);
        if let LossReport::Pending(lost) = earlier {
            self.report(&lost);
        }
    }

    fn report(&self, Lost { path: whole, reason }: &Lost) {
        warn!(path = %whole, %reason, "hold lost");
        metrics::lost(self.timer.recipe(), *reason);
    }

    fn lose(&self, lost: &Lost) {
        if !self.begin_end() {
            return;
        }
        let is_deferred = {
            let mut report = self.loss_report.lock();
            let is_deferred = !matches!(*report, LossReport::AtOnce);
            if is_deferred {
                *report = LossReport::Pending(lost.clone());
            }
            is_deferred
        };
        match is_deferred {
            true => debug!(path = %lost.path, reason = %lost.reason, "a hold was lost during its acquire"),
            false => self.report(lost),
        }
        self.end(Some(lost.reason), &HoldEvent::Lost { path: self.path.clone(), reason: lost.reason });
    }

    /// Returns whether this is the first end of the hold.
    fn begin_end(&self) -> bool {
        !self.has_ended.swap(true, Ordering::AcqRel)
    }

    fn end(&self, reason: Option<LossReason>, event: &HoldEvent) {
        self.timer.end(reason);
        self.registry.send(&self.path_key, event);
        self.registry.ended();
    }
}

impl Drop for HoldRegistration {
    fn drop(&mut self) {
        if self.begin_end() {
            self.end(None, &HoldEvent::Released { path: self.path.clone() });
        }
        self.registry.remove(&self.path_key);
    }
}

impl Debug for HoldRegistration {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HoldRegistration").field("path", &self.path).finish_non_exhaustive()
    }
}
