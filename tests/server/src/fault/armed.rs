use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::Switchboard;
use super::switchboard::Rule;

/// A fault that is set, and the means to wait for it.
///
/// Dropping it disarms the fault and releases what it holds.
#[derive(Debug)]
#[must_use = "a fault is disarmed when this is dropped"]
pub struct ArmedFault {
    rule: Arc<Rule>,
    switchboard: Weak<Switchboard>,
    hits: watch::Receiver<u64>,
}

impl ArmedFault {
    pub(super) fn new(rule: Arc<Rule>, switchboard: Weak<Switchboard>) -> Self {
        let hits = rule.hits.subscribe();
        Self { rule, switchboard, hits }
    }

    /// How often it has hit.
    pub fn hits(&self) -> u64 {
        *self.hits.borrow()
    }

    /// Waits until it has hit. Where the fault lets a request be applied, it has been applied by then.
    pub async fn hit(&self) {
        self.hit_times(1).await;
    }

    /// Waits until it has hit that often.
    pub async fn hit_times(&self, n: u64) {
        // Our own rule has the sender, so waiting cannot fail.
        let _ = self.hits.clone().wait_for(|hits| *hits >= n).await;
    }

    /// Lets go of everything it holds, and holds nothing from now on.
    pub fn release(&self) {
        self.rule.released.send_replace(true);
    }

    /// Disarms the fault: it hits no more. Messages that it holds stay held until it is released or dropped.
    pub fn disarm(&self) {
        if let Some(switchboard) = self.switchboard.upgrade() {
            switchboard.disarm(&self.rule);
        }
    }
}

impl Drop for ArmedFault {
    fn drop(&mut self) {
        self.disarm();
        self.release();
    }
}
