use parking_lot::Mutex;

use super::watches::NodeWatch;
use crate::shared_future::SharedFuture;
use crate::wire::WatchEvent;

/// A watch that several tasks await or read.
pub(crate) type SharedWatch = SharedFuture<WatchEvent>;

pub(super) type ArmedWatch = Option<SharedWatch>;

/// The watch on a node, if one was set. Its event stays until it is taken.
#[derive(Default)]
pub(super) struct OwnWatch(Mutex<ArmedWatch>);

impl OwnWatch {
    pub(super) fn get(&self) -> Option<SharedWatch> {
        self.0.lock().clone()
    }

    /// Whether a watch is set that has not fired.
    pub(super) fn is_armed(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|watch| watch.now().is_none())
    }

    /// Whether the watch has fired because the node was deleted.
    pub(super) fn has_shown_deletion(&self) -> bool {
        is_deleted(&self.0.lock())
    }

    /// Takes the event, if the watch has fired, calls `on_deleted` if it is the deletion of the node, and
    /// then changes the watch, or what its event means. Under one lock: a question between the two would not
    /// see a deletion that an earlier question has seen.
    pub(super) fn take_event<D, T>(
        &self,
        on_deleted: impl FnOnce() -> Option<D>,
        change: impl FnOnce(&mut ArmedWatch) -> T,
    ) -> (Option<D>, T) {
        let mut watch = self.0.lock();
        // A node whose data changed still exists. The session reports its own end.
        let deleted = is_deleted(&watch).then(on_deleted).flatten();
        let fired = watch.take_if(|watch| watch.now().is_some());
        let changed = change(&mut watch);
        drop(watch);
        drop(fired);
        (deleted, changed)
    }
}

fn is_deleted(watch: &ArmedWatch) -> bool {
    watch.as_ref().and_then(|watch| watch.now()) == Some(WatchEvent::Deleted)
}

/// A watch to be set.
pub(super) fn armed(watch: NodeWatch) -> ArmedWatch {
    Some(SharedFuture::new(Box::pin(watch)))
}
