use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// The settings of one server, apart from the tree.
#[derive(Debug)]
pub(super) struct Front {
    frozen: watch::Sender<bool>,
    refusing: AtomicBool,
    resetting: AtomicBool,
}

impl Front {
    pub(super) fn new() -> Self {
        Self {
            frozen: watch::Sender::new(false),
            refusing: AtomicBool::new(false),
            resetting: AtomicBool::new(false),
        }
    }

    pub(super) fn set_frozen(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Waits while the server is frozen.
    pub(super) async fn thawed(&self) {
        // We hold the sender, so waiting cannot fail.
        let _ = self.frozen.subscribe().wait_for(|frozen| !frozen).await;
    }

    pub(super) fn set_refusing(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::Relaxed);
    }

    pub(super) fn is_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    pub(super) fn set_resetting(&self, resetting: bool) {
        self.resetting.store(resetting, Ordering::Relaxed);
    }

    pub(super) fn is_resetting(&self) -> bool {
        self.resetting.load(Ordering::Relaxed)
    }
}
