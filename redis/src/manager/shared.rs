use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_lock::BootInstant;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::link::Link;
use super::waits::Waits;
use crate::error::LossReason;
use crate::lease;
use crate::record::HoldRecord;
use crate::script::LockKeys;

/// The settings of a manager.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) lease: Duration,
    pub(crate) operation_timeout: Duration,
    /// Of fencing tokens.
    pub(crate) token_generation: u32,
}

impl Settings {
    /// The lease for the scripts, in milliseconds.
    pub(crate) fn lease_millis(&self) -> u64 {
        u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX / 4)
    }

    pub(crate) fn request_limit(&self) -> Duration {
        lease::request_limit(self.lease)
    }
}

/// How far a manager has come. It never returns to an earlier phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ManagerPhase {
    #[default]
    Open,
    /// No lock is granted any more, and holders may finish.
    Draining,
    /// All holds are lost, and are being released.
    Closed,
    /// The tasks end.
    Stopped,
}

/// What the handles of a manager share with its tasks.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) link: Link,
    pub(crate) waits: Waits,
    pub(crate) phase: watch::Sender<ManagerPhase>,
    /// What is held, by the ids of the holds.
    pub(super) holds: Mutex<HashMap<Arc<str>, Arc<HoldRecord>>>,
    /// The ids that the server may know, of holds and of waits.
    known_ids: Mutex<HashMap<Arc<str>, LockKeys>>,
    jobs: mpsc::UnboundedSender<CleanupJob>,
    /// The cleanup jobs that are not done yet.
    pub(super) pending: watch::Sender<u32>,
    /// The number of holds, for those who wait until it is zero.
    pub(super) held: watch::Sender<u32>,
}

/// An id that must hold nothing and wait for nothing any more.
#[derive(Debug)]
pub(super) struct CleanupJob {
    pub(super) keys: LockKeys,
    pub(super) id: Arc<str>,
    /// By then the server has forgotten it by itself.
    pub(super) until: BootInstant,
}

impl Shared {
    pub(super) fn new(settings: Settings, link: Link) -> (Self, mpsc::UnboundedReceiver<CleanupJob>) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let shared = Self {
            settings,
            link,
            waits: Waits::default(),
            phase: watch::Sender::default(),
            holds: Mutex::default(),
            known_ids: Mutex::default(),
            jobs,
            pending: watch::Sender::default(),
            held: watch::Sender::default(),
        };
        (shared, queue)
    }

    /// Has an id released in the background. Never blocks, and needs no runtime.
    pub(crate) fn clean_up(&self, keys: &LockKeys, id: &Arc<str>) {
        let until = BootInstant::now().after(self.settings.lease.saturating_mul(2));
        self.pending.send_modify(|pending| *pending += 1);
        let job = CleanupJob { keys: keys.clone(), id: Arc::clone(id), until };
        if self.jobs.send(job).is_err() {
            self.pending.send_modify(|pending| *pending -= 1);
        }
    }

    /// From now on, the server may know the id. Returns whether it could not have known it before.
    pub(crate) fn add_id(&self, keys: &LockKeys, id: &Arc<str>) -> bool {
        self.known_ids.lock().insert(Arc::clone(id), keys.clone()).is_none()
    }

    /// The server does not know the id any more, or it is being released. Returns whether it may have known
    /// it.
    pub(crate) fn remove_id(&self, id: &Arc<str>) -> bool {
        self.known_ids.lock().remove(id).is_some()
    }

    /// Closes: all holds are lost, and every id that the server may know is released. That includes waits
    /// whose futures nobody polls or drops.
    pub(super) fn close(&self) {
        // Until all jobs are counted, the cleanup does not end.
        self.pending.send_modify(|pending| *pending += 1);
        let lost: Vec<_> = {
            let holds = self.holds.lock();
            self.advance(ManagerPhase::Closed);
            holds.values().cloned().collect()
        };
        for record in lost {
            record.lose(LossReason::Closed);
        }
        let known_ids = std::mem::take(&mut *self.known_ids.lock());
        for (id, keys) in known_ids {
            self.clean_up(&keys, &id);
        }
        self.pending.send_modify(|pending| *pending -= 1);
    }

    pub(crate) fn register(&self, record: &Arc<HoldRecord>) {
        self.holds.lock().insert(Arc::clone(record.id()), Arc::clone(record));
        self.held.send_modify(|held| *held += 1);
    }

    pub(crate) fn unregister(&self, record: &HoldRecord) {
        if self.holds.lock().remove(record.id()).is_some() {
            self.held.send_modify(|held| *held -= 1);
        }
    }

    /// Moves the phase on.
    pub(super) fn advance(&self, phase: ManagerPhase) {
        self.phase.send_if_modified(|present| {
            let moves = *present < phase;
            *present = phase.max(*present);
            moves
        });
    }

    /// Resolves when no lock is granted any more.
    pub(crate) async fn closing(&self) {
        let mut phase = self.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase > ManagerPhase::Open).await;
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.phase.borrow() > ManagerPhase::Open
    }
}
