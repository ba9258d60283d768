use std::fmt::{self, Debug, Formatter};

use crate::sync::{AtomicBool, Mutex, OnceLock, Ordering};

/// The loss of a node (`L`) and its listener. The listener is called at most once, with an `N`, and never
/// after the node was given up.
///
/// Every method may be called by any thread at any time.
pub(crate) struct LossNotice<L, N> {
    given_up: AtomicBool,
    loss: OnceLock<L>,
    listener: Mutex<Option<Listener<N>>>,
}

/// Called once, with the loss.
pub(crate) type Listener<N> = Box<dyn Fn(N) + Send + Sync>;

impl<L, N> LossNotice<L, N> {
    pub(crate) fn new() -> Self {
        Self { given_up: AtomicBool::new(false), loss: OnceLock::new(), listener: Mutex::new(None) }
    }

    /// From now on there is no holder to tell.
    pub(crate) fn set_given_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// The first loss, which stays.
    pub(crate) fn get(&self) -> Option<&L> {
        self.loss.get()
    }

    /// Records a loss. Returns whether it was the first one.
    pub(crate) fn record(&self, loss: L) -> bool {
        self.loss.set(loss).is_ok()
    }

    /// Tells the listener. Returns whether there was one to tell: each is told once.
    pub(crate) fn tell(&self, notice: N) -> bool {
        // Only the caller that takes the listener tells it.
        let listener = self.listener.lock().take();
        let is_first = listener.is_some();
        if let Some(listener) = listener {
            listener(notice);
        }
        is_first
    }

    /// Tells the listener of a loss that was recorded, unless the node was given up: then there is no holder.
    pub(crate) fn tell_holder(&self, notice: impl FnOnce() -> N) {
        if !self.is_given_up() {
            self.tell(notice());
        }
    }

    /// Registers `listener`, which replaces an earlier one. It is called at once if a loss is recorded.
    pub(crate) fn listen(&self, listener: Listener<N>, notice: impl FnOnce(&L) -> N) {
        let earlier = self.listener.lock().replace(listener);
        drop(earlier);
        if let Some(loss) = self.get() {
            self.tell(notice(loss));
        }
    }
}

impl<L: Debug, N> Debug for LossNotice<L, N> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LossNotice").field("loss", &self.get()).finish_non_exhaustive()
    }
}
