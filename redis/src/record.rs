use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockkeeper_lock::BootInstant;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::LossReason;
use crate::lease::LeaseClock;
use crate::script::LockKeys;

/// What the manager knows of a hold, to renew its lease.
#[derive(Debug)]
pub(crate) struct HoldRecord {
    keys: LockKeys,
    id: Arc<str>,
    lease: Mutex<LeaseClock>,
    lost: watch::Sender<Option<LossReason>>,
    releasing: AtomicBool,
}

impl HoldRecord {
    /// A hold whose lease is confirmed.
    pub(crate) fn new(keys: &LockKeys, id: &Arc<str>, lease: LeaseClock) -> Self {
        Self {
            keys: keys.clone(),
            id: Arc::clone(id),
            lease: Mutex::new(lease),
            lost: watch::Sender::new(None),
            releasing: AtomicBool::new(false),
        }
    }

    pub(crate) fn keys(&self) -> &LockKeys {
        &self.keys
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// A request that was sent at this instant confirmed the lease.
    pub(crate) fn confirm(&self, sent: BootInstant) {
        let mut lease = self.lease.lock();
        // A lease that ended stays ended.
        if lease.is_valid(BootInstant::now()) {
            lease.confirm(sent);
        }
    }

    /// Ends the hold. Returns whether it had not ended before.
    pub(crate) fn lose(&self, reason: LossReason) -> bool {
        self.lost.send_if_modified(|lost| {
            let is_first = lost.is_none();
            lost.get_or_insert(reason);
            is_first
        })
    }

    /// Ends the hold if its lease has ended. Returns whether this call did.
    pub(crate) fn expire(&self, now: BootInstant) -> bool {
        !self.lease.lock().is_valid(now) && self.lose(LossReason::LeaseRanOut)
    }

    pub(crate) fn is_renewal_due(&self, now: BootInstant) -> bool {
        self.lost.borrow().is_none() && self.lease.lock().is_renewal_due(now)
    }

    /// When the hold ends, or ended.
    pub(crate) fn valid_until(&self) -> BootInstant {
        let until = self.lease.lock().valid_until();
        if self.lost.borrow().is_some() { until.min(BootInstant::now()) } else { until }
    }

    /// Changes when the hold is lost.
    pub(crate) fn losses(&self) -> watch::Receiver<Option<LossReason>> {
        self.lost.subscribe()
    }

    /// From now on, the server may answer that it does not know the hold, because it is being released.
    pub(crate) fn begin_release(&self) {
        self.releasing.store(true, Ordering::Release);
    }

    pub(crate) fn is_releasing(&self) -> bool {
        self.releasing.load(Ordering::Acquire)
    }

    pub(crate) fn reason(&self) -> Option<LossReason> {
        if let Some(reason) = *self.lost.borrow() {
            return Some(reason);
        }
        // Latched by the task that renews, which then frees the lock; here the clock is enough.
        (!self.lease.lock().is_valid(BootInstant::now())).then_some(LossReason::LeaseRanOut)
    }
}
