use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::item::AssignedItem;

/// The items that a member holds and that the application has not taken yet, in the order of their grants:
/// one end for the task of the member, one for its handle. Without one of the ends nothing is offered.
///
/// The task gives such an item up by itself, since nobody works on it.
pub(super) struct Offers(Arc<OfferList>);

#[derive(Default)]
struct OfferList {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<AssignedItem>,
    is_closed: bool,
}

impl Offers {
    pub(super) fn pair() -> (Self, Self) {
        let shared = Arc::<OfferList>::default();
        (Self(Arc::clone(&shared)), Self(shared))
    }

    pub(super) fn offer(&self, item: AssignedItem) {
        let mut queue = self.0.queue.lock();
        if queue.is_closed {
            // Outside of the lock, the guard is dropped.
            drop(queue);
            return drop(item);
        }
        queue.items.push_back(item);
        drop(queue);
        self.0.changed.notify_one();
    }

    /// Drops the guard of this item, if the application has not taken it.
    pub(super) fn withdraw(&self, item: &str) {
        let mut queue = self.0.queue.lock();
        let place = queue.items.iter().position(|offered| offered.item() == item);
        let withdrawn = place.and_then(|place| queue.items.remove(place));
        drop(queue);
        drop(withdrawn);
    }

    /// The next item. `None` once an end has closed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is taken before the result is returned.
    pub(super) async fn next(&mut self) -> Option<AssignedItem> {
        loop {
            {
                let mut queue = self.0.queue.lock();
                if let Some(item) = queue.items.pop_front() {
                    return Some(item);
                }
                if queue.is_closed {
                    return None;
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// Drops the guards that the application has not taken, and those that are offered from now on.
    pub(super) fn close(&self) {
        let mut queue = self.0.queue.lock();
        queue.is_closed = true;
        let items = take(&mut queue.items);
        drop(queue);
        drop(items);
        self.0.changed.notify_one();
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        self.close();
    }
}
