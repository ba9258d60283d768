use crate::sync::{AtomicBool, Notify, Ordering};

/// Parks a task that polls by itself while it has work, and has to be woken only when it has none. A wake-up
/// at every grant would cost more than the grant.
#[derive(Debug, Default)]
pub(super) struct Parker {
    is_parked: AtomicBool,
    woken: Notify,
}

impl Parker {
    /// Called before the check that may find no work: a change from here on wakes the task.
    pub(super) fn park(&self) {
        self.is_parked.swap(true, Ordering::AcqRel);
    }

    /// The task has work.
    pub(super) fn unpark(&self) {
        // No plain store: the next check must see the changes of all who found the task not parked.
        self.is_parked.swap(false, Ordering::AcqRel);
    }

    /// There is new work: wakes the task if it is parked. Called after the change, so a task that is not
    /// parked sees it at its next check.
    pub(super) fn notify(&self) {
        if self.is_parked.swap(false, Ordering::AcqRel) {
            self.woken.notify_one();
        }
    }

    /// Wakes the task even if it has work, because this work is more urgent.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Resolves when woken.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a wake-up that was not received is kept.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn only_a_parked_task_is_woken_and_no_wake_up_is_lost() {
        let parker = Parker::default();
        parker.notify();
        assert_eq!(parker.woken().now_or_never(), None);
        parker.park();
        parker.notify();
        assert_eq!(parker.woken().now_or_never(), Some(()));
        parker.park();
        parker.unpark();
        parker.notify();
        assert_eq!(parker.woken().now_or_never(), None);
        parker.wake();
        assert_eq!(parker.woken().now_or_never(), Some(()));
    }
}
