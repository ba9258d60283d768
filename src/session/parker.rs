use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The rest of a task that looks around by itself while it has something to do, and has to be woken only when
/// it has nothing: a wake-up at every grant would cost more than the grant.
#[derive(Debug, Default)]
pub(super) struct Parker {
    is_parked: AtomicBool,
    woken: Notify,
}

impl Parker {
    /// To be called before the look that may find nothing to do: what changes from here on wakes.
    pub(super) fn park(&self) {
        self.is_parked.swap(true, Ordering::AcqRel);
    }

    /// There is something to do.
    pub(super) fn unpark(&self) {
        self.is_parked.store(false, Ordering::Release);
    }

    /// Something to do has come up: wakes who has lain down. Called behind the change, which is seen by the
    /// next look else.
    pub(super) fn notify(&self) {
        if self.is_parked.swap(false, Ordering::AcqRel) {
            self.woken.notify_one();
        }
    }

    /// Wakes also who has something to do: it is more urgent than that.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Resolves when woken.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a wake-up that nobody took is kept.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_who_has_lain_down_is_roused_and_no_wake_up_is_lost() {
        let slumber = Parker::default();
        slumber.notify();
        assert_eq!(slumber.woken().now_or_never(), None);
        slumber.park();
        slumber.notify();
        assert_eq!(slumber.woken().now_or_never(), Some(()));
        slumber.park();
        slumber.unpark();
        slumber.notify();
        assert_eq!(slumber.woken().now_or_never(), None);
        slumber.wake();
        assert_eq!(slumber.woken().now_or_never(), Some(()));
    }
}
