//! What is seen of who else wants the node, and what follows from that.

use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, Hold, NodeMonitor};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::super::hand_off_policy::HandOffPolicy;
use super::NodeSharing;

/// The time of one node in this process, from its grant until it is given up.
pub(super) struct NodeTenure {
    contention: Arc<Contention>,
    /// Dropped, it ends the task that looks.
    _over: oneshot::Sender<()>,
}

/// What the task that looks has seen.
pub(super) struct Contention {
    policy: HandOffPolicy,
    known_contenders: Mutex<KnownContenders>,
    /// The node is needed for more than one guard: from now on it is looked who else wants it.
    needed: Notify,
    /// It lingers.
    idle_started: Notify,
}

#[derive(Clone, Copy)]
enum KnownContenders {
    /// Nobody has looked yet.
    NotAsked,
    /// It is not known whether there are any.
    Unknown(HandOffBudget),
    None,
    /// There are some.
    Some(HandOffBudget),
    /// Nobody looks any more.
    Blind,
}

/// What is left for this process, once others wait or may wait.
#[derive(Clone, Copy)]
struct HandOffBudget {
    handoffs_left: u32,
    until: Deadline,
}

impl HandOffBudget {
    fn from_now(policy: HandOffPolicy) -> Self {
        Self { handoffs_left: policy.max_handoffs, until: Deadline::after(policy.max_time) }
    }

    /// One time less, if there is one left.
    fn take(self) -> Option<Self> {
        let handoffs_left = self.handoffs_left.checked_sub(1).filter(|_| !self.until.has_passed())?;
        Some(Self { handoffs_left, ..self })
    }
}

impl NodeTenure {
    /// Whether it may be passed on once more; counts it.
    pub(super) fn may_hand_off(&self) -> bool {
        self.contention.mark_needed();
        let mut known_contenders = self.contention.known_contenders.lock();
        match *known_contenders {
            KnownContenders::None => true,
            KnownContenders::NotAsked | KnownContenders::Blind => false,
            KnownContenders::Unknown(count) => match count.take() {
                Some(count) => {
                    *known_contenders = KnownContenders::Unknown(count);
                    true
                }
                None => false,
            },
            KnownContenders::Some(count) => match count.take() {
                Some(count) => {
                    *known_contenders = KnownContenders::Some(count);
                    true
                }
                None => false,
            },
        }
    }

    pub(super) fn may_idle(&self) -> bool {
        let is_wanted_by_none_known = || {
            matches!(
                *self.contention.known_contenders.lock(),
                KnownContenders::None | KnownContenders::Unknown(_)
            )
        };
        !self.contention.policy.idle_time.is_zero() && {
            self.contention.mark_needed();
            is_wanted_by_none_known()
        }
    }

    pub(super) fn start_idle(&self) {
        self.contention.idle_started.notify_one();
    }

    pub(super) fn is_watched_by(&self, contention: &Arc<Contention>) -> bool {
        Arc::ptr_eq(&self.contention, contention)
    }

    pub(super) fn contention(&self) -> &Arc<Contention> {
        &self.contention
    }
}

impl Contention {
    /// Somebody has to look from now on.
    pub(super) fn mark_needed(&self) {
        let mut known_contenders = self.known_contenders.lock();
        if matches!(*known_contenders, KnownContenders::NotAsked) {
            *known_contenders = KnownContenders::Unknown(HandOffBudget::from_now(self.policy));
            self.needed.notify_one();
        }
    }

    fn set_alone(&self, is_alone: bool) {
        let mut known_contenders = self.known_contenders.lock();
        *known_contenders = match *known_contenders {
            KnownContenders::Unknown(_) if is_alone => KnownContenders::None,
            KnownContenders::None if !is_alone => {
                KnownContenders::Unknown(HandOffBudget::from_now(self.policy))
            }
            other => other,
        };
    }

    fn mark_contended(&self) {
        let mut known_contenders = self.known_contenders.lock();
        *known_contenders = match *known_contenders {
            KnownContenders::Unknown(count) | KnownContenders::Some(count) => KnownContenders::Some(count),
            KnownContenders::NotAsked | KnownContenders::None => {
                KnownContenders::Some(HandOffBudget::from_now(self.policy))
            }
            KnownContenders::Blind => KnownContenders::Blind,
        };
    }
}

/// Begins the stay of what was granted just now. The task is there from the beginning, since a guard may be dropped where
/// none can be begun; it looks only when it is needed.
pub(super) fn start_watcher(
    sharing: &Arc<NodeSharing>,
    policy: HandOffPolicy,
    hold: &Hold,
) -> Arc<NodeTenure> {
    let contention = Arc::new(Contention {
        policy,
        known_contenders: Mutex::new(KnownContenders::NotAsked),
        needed: Notify::new(),
        idle_started: Notify::new(),
    });
    let (over, is_over) = oneshot::channel();
    let watcher = ContentionWatcher { sharing: Arc::downgrade(sharing), contention: Arc::clone(&contention) };
    // Where it cannot run, it is dropped, and sees nothing.
    hold.manager().spawn(watcher.watch(hold.monitor(), is_over));
    Arc::new(NodeTenure { contention, _over: over })
}

/// Looks, for as long as the stay lasts. Dropped, as with its runtime, it leaves nothing that nobody looks after.
struct ContentionWatcher {
    sharing: Weak<NodeSharing>,
    contention: Arc<Contention>,
}

impl ContentionWatcher {
    async fn watch(self, monitor: NodeMonitor, over: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = over => {}
            _ = monitor.lost() => {
                if let Some(sharing) = self.sharing.upgrade() {
                    sharing.mark_lost(&self.contention);
                }
            }
            () = self.watch_contenders(&monitor) => {}
            () = self.time_idle() => {}
        }
    }

    async fn watch_contenders(&self, monitor: &NodeMonitor) {
        self.contention.needed.notified().await;
        monitor.contended(|is_alone| self.contention.set_alone(is_alone)).await;
        self.contention.mark_contended();
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.end_idle(&self.contention, false);
        }
        std::future::pending().await
    }

    async fn time_idle(&self) {
        loop {
            let until = self.sharing.upgrade().and_then(|sharing| sharing.idle_until(&self.contention));
            match until {
                None => self.contention.idle_started.notified().await,
                Some(until) => until.passed().await,
            }
            if let Some(sharing) = self.sharing.upgrade() {
                sharing.end_idle(&self.contention, true);
            }
        }
    }
}

impl Drop for ContentionWatcher {
    fn drop(&mut self) {
        *self.contention.known_contenders.lock() = KnownContenders::Blind;
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.end_idle(&self.contention, false);
        }
    }
}
