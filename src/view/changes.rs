//! The differences between snapshots, for readers of any speed.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use parking_lot::Mutex;

use super::decide::Changed;
use super::node::{ViewNode, differ};
use super::snapshot::{Snapshot, ViewState};

/// A node that differs between two snapshots.
#[derive(Debug)]
#[non_exhaustive]
pub enum ViewChange<T = ()> {
    /// The node did not exist before.
    Created {
        /// The path below the root of the view.
        path: Arc<str>,
        /// The node.
        node: Arc<ViewNode<T>>,
    },
    /// The data was written.
    Updated {
        /// The path below the root of the view.
        path: Arc<str>,
        /// The node before.
        before: Arc<ViewNode<T>>,
        /// The node now.
        node: Arc<ViewNode<T>>,
    },
    /// The node was deleted, and created again.
    Recreated {
        /// The path below the root of the view.
        path: Arc<str>,
        /// The node that was deleted.
        before: Arc<ViewNode<T>>,
        /// The node that was created.
        node: Arc<ViewNode<T>>,
    },
    /// The node was deleted.
    Deleted {
        /// The path below the root of the view.
        path: Arc<str>,
        /// The node that was deleted.
        before: Arc<ViewNode<T>>,
    },
}

/// The way from one snapshot to a later one.
#[derive(Debug)]
pub struct Difference<T = ()> {
    from: u64,
    snapshot: Arc<Snapshot<T>>,
    changes: Vec<ViewChange<T>>,
}

/// The differences from the snapshot of the subscription on: a stream that ends with the view's manager.
///
/// Each difference leads from the snapshot of the last one to its own. A reader that is slower than the
/// changes gets them merged: one change for each node that differs between the two snapshots. Nothing
/// that lasts is left out, and a node that was deleted and created again is reported as that.
pub struct ViewChanges<T = ()> {
    subscription: Arc<Subscription<T>>,
    /// The snapshot that the reader has.
    snapshot: Arc<Snapshot<T>>,
}

struct Subscription<T>(Mutex<Unread<T>>);

/// What a reader has not read.
struct Unread<T> {
    latest: Arc<Snapshot<T>>,
    /// The state of each node that differs, as the reader has it.
    before: BTreeMap<Arc<str>, Option<Arc<ViewNode<T>>>>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// The readers of a view.
pub(super) struct Subscriptions<T>(Vec<Weak<Subscription<T>>>);

impl<T> Default for Subscriptions<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Subscriptions<T> {
    /// A reader that has this snapshot.
    pub(super) fn subscribe(&mut self, snapshot: Arc<Snapshot<T>>) -> ViewChanges<T> {
        let is_closed = snapshot.state() == ViewState::Closed;
        let latest = Arc::clone(&snapshot);
        let unread = Unread { latest, before: BTreeMap::new(), is_closed, waker: None };
        let subscription = Arc::new(Subscription(Mutex::new(unread)));
        self.0.retain(|subscription| subscription.strong_count() > 0);
        self.0.push(Arc::downgrade(&subscription));
        ViewChanges { subscription, snapshot }
    }

    /// Gives every reader the next snapshot, and the way to it.
    pub(super) fn publish(&mut self, snapshot: &Arc<Snapshot<T>>, changes: &[Changed<T>]) {
        self.0.retain(|subscription| {
            let Some(subscription) = subscription.upgrade() else { return false };
            subscription.0.lock().add(snapshot, changes);
            true
        });
    }
}

impl<T> Unread<T> {
    fn add(&mut self, snapshot: &Arc<Snapshot<T>>, changes: &[Changed<T>]) {
        for (path, before, now) in changes {
            match self.before.get(path) {
                None => drop(self.before.insert(Arc::clone(path), before.clone())),
                // The reader has this state: it existed only in between.
                Some(had) if !differ(had.as_ref(), now.as_ref()) => drop(self.before.remove(path)),
                Some(_) => {}
            }
        }
        self.is_closed = snapshot.state() == ViewState::Closed;
        self.latest = Arc::clone(snapshot);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl<T> ViewChanges<T> {
    /// The snapshot that the last difference led to; at first, that of the subscription.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot<T>> {
        &self.snapshot
    }

    /// The next difference; `None` after the one to the state [`Closed`](ViewState::Closed).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was not returned is in the next difference.
    pub async fn next(&mut self) -> Option<Difference<T>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Difference<T>>> {
        let mut unread = self.subscription.0.lock();
        if unread.latest.revision() == self.snapshot.revision() {
            if unread.is_closed {
                return Poll::Ready(None);
            }
            unread.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let before = std::mem::take(&mut unread.before);
        let snapshot = Arc::clone(&unread.latest);
        drop(unread);
        let from = std::mem::replace(&mut self.snapshot, Arc::clone(&snapshot)).revision();
        let change = |(path, before): (Arc<str>, _)| {
            let now = snapshot.get(&path).cloned();
            ViewChange::between(path, before, now)
        };
        let changes = before.into_iter().filter_map(change).collect();
        Poll::Ready(Some(Difference { from, snapshot, changes }))
    }
}

impl<T> Stream for ViewChanges<T> {
    type Item = Difference<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Difference<T>>> {
        self.poll(context)
    }
}

impl<T> ViewChange<T> {
    /// `None` if nothing differs.
    fn between(
        path: Arc<str>,
        before: Option<Arc<ViewNode<T>>>,
        now: Option<Arc<ViewNode<T>>>,
    ) -> Option<Self> {
        match (before, now) {
            (None, None) => None,
            (None, Some(node)) => Some(Self::Created { path, node }),
            (Some(before), None) => Some(Self::Deleted { path, before }),
            (Some(before), Some(node)) if before.stat().czxid != node.stat().czxid => {
                Some(Self::Recreated { path, before, node })
            }
            (Some(before), Some(node)) => Some(Self::Updated { path, before, node }),
        }
    }

    /// The path below the root of the view.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Created { path, .. }
            | Self::Updated { path, .. }
            | Self::Recreated { path, .. }
            | Self::Deleted { path, .. } => path,
        }
    }

    /// The node now; `None` if it was deleted.
    #[must_use]
    pub fn node(&self) -> Option<&Arc<ViewNode<T>>> {
        match self {
            Self::Created { node, .. } | Self::Updated { node, .. } | Self::Recreated { node, .. } => {
                Some(node)
            }
            Self::Deleted { .. } => None,
        }
    }

    /// The node before; `None` if it did not exist.
    #[must_use]
    pub fn before(&self) -> Option<&Arc<ViewNode<T>>> {
        match self {
            Self::Created { .. } => None,
            Self::Updated { before, .. } | Self::Recreated { before, .. } | Self::Deleted { before, .. } => {
                Some(before)
            }
        }
    }
}

impl<T> Difference<T> {
    /// The revision that the changes lead from.
    #[must_use]
    pub fn from_revision(&self) -> u64 {
        self.from
    }

    /// The snapshot that the changes lead to.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot<T>> {
        &self.snapshot
    }

    /// One change for each node that differs, in the order of the paths. Empty if only the
    /// [state](Snapshot::state) differs.
    #[must_use]
    pub fn changes(&self) -> &[ViewChange<T>] {
        &self.changes
    }
}

impl<T> Debug for ViewChanges<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ViewChanges").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::bounds::ViewBounds;
    use crate::view::decide::{Answer, Mirror};
    use crate::wire::Stat;
    use crate::znode::zxid::Zxid;

    fn answer(mirror: &mut Mirror<()>, answer: impl Fn() -> Answer) {
        while let Some(request) = mirror.next_request(|_| true) {
            mirror.answer(request, answer());
        }
    }

    /// Nodes come and go under names of their own, as contenders do.
    #[test]
    fn a_reader_that_does_not_read_keeps_nothing_of_a_node_that_came_and_went() {
        let mut mirror =
            Mirror::new(Some(0), ViewBounds::default(), Arc::new(|_: &str, _: &[u8], _: &Stat| Ok(())));
        let mut subscriptions = Subscriptions::default();
        let mut snapshot = Arc::new(Snapshot::first());
        let reader = subscriptions.subscribe(Arc::clone(&snapshot));
        let stat = Stat {
            czxid: Zxid::new(1),
            mzxid: Zxid::new(1),
            pzxid: Zxid::new(1),
            ctime: 0,
            mtime: 0,
            version: 0,
            child_version: 0,
            ephemeral_owner: 0,
            data_length: 0,
            children: 0,
        };
        for (found, kept) in [(true, 1), (false, 0), (true, 1), (false, 0)] {
            mirror.hint("");
            answer(&mut mirror, || if found { Answer::Data(Vec::new(), stat) } else { Answer::Missing });
            let changes = mirror.take_changes();
            snapshot = Arc::new(snapshot.next(ViewState::Live, &mirror));
            subscriptions.publish(&snapshot, &changes);
            assert_eq!(reader.subscription.0.lock().before.len(), kept);
        }
    }

    #[test]
    fn readers_that_are_gone_are_forgotten_also_if_nothing_changes() {
        let mut subscriptions = Subscriptions::<()>::default();
        for _ in 0..5 {
            drop(subscriptions.subscribe(Arc::new(Snapshot::first())));
        }
        let _kept = subscriptions.subscribe(Arc::new(Snapshot::first()));
        assert_eq!(subscriptions.0.len(), 1);
    }
}
