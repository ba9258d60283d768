//! What is known of contenders in other processes, and how long the node may stay in this process.

use std::sync::{Arc, Weak};

use lockkeeper_core::{Deadline, Hold, NodeMonitor};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::super::hand_off_policy::HandOffPolicy;
use super::NodeSharing;

/// The time of one node in this process, from its grant until its release.
pub(super) struct NodeTenure {
    contention: Arc<Contention>,
    /// Its drop ends the watching task.
    _over: oneshot::Sender<()>,
}

/// The findings of the watching task.
pub(super) struct Contention {
    policy: HandOffPolicy,
    known_contenders: Mutex<KnownContenders>,
    /// Notified when a second guard needs the node: from then on the task watches for other contenders.
    needed: Notify,
    /// Notified when the node becomes idle.
    idle_started: Notify,
}

#[derive(Clone, Copy)]
enum KnownContenders {
    /// The task does not watch yet.
    NotAsked,
    /// The watch has no answer yet: there may be contenders.
    Unknown(HandOffBudget),
    None,
    /// There are other contenders.
    Some(HandOffBudget),
    /// The watching task has ended.
    Blind,
}

/// The hand-offs that are left to this process, once other contenders wait or may wait.
#[derive(Clone, Copy)]
struct HandOffBudget {
    handoffs_left: u32,
    until: Deadline,
}

impl HandOffBudget {
    fn from_now(policy: HandOffPolicy) -> Self {
        Self { handoffs_left: policy.max_handoffs, until: Deadline::after(policy.max_time) }
    }

    /// Takes one hand-off, if one is left.
    fn take(self) -> Option<Self> {
        let handoffs_left = self.handoffs_left.checked_sub(1).filter(|_| !self.until.has_passed())?;
        Some(Self { handoffs_left, ..self })
    }
}

impl NodeTenure {
    /// Takes one hand-off. Returns false if none is left.
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
    fn new(policy: HandOffPolicy) -> Self {
        let known_contenders = Mutex::new(KnownContenders::NotAsked);
        Self { policy, known_contenders, needed: Notify::new(), idle_started: Notify::new() }
    }

    /// Starts the watch for other contenders, if it has not started.
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

/// Starts the tenure of a hold, and its watching task. The task starts with the tenure, because a guard may
/// be dropped where no task can be spawned. It watches only when it is needed.
pub(super) fn start_watcher(
    sharing: &Arc<NodeSharing>,
    policy: HandOffPolicy,
    hold: &Hold,
) -> Arc<NodeTenure> {
    let contention = Arc::new(Contention::new(policy));
    let (over, is_over) = oneshot::channel();
    let watcher = ContentionWatcher { sharing: Arc::downgrade(sharing), contention: Arc::clone(&contention) };
    // If it cannot run, it is dropped, and its drop reports that nothing is watched.
    hold.manager().spawn(watcher.watch(hold.monitor(), is_over));
    Arc::new(NodeTenure { contention, _over: over })
}

/// Watches for other contenders during the tenure. Its drop, also that by the end of its runtime, ends an
/// idle node, which no task watches any more.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn hand_offs_before_another_contender_is_seen_count() {
        let policy = HandOffPolicy::default().max_handoffs(2).max_time(Duration::from_secs(3600));
        let (over, _is_over) = oneshot::channel();
        let tenure = NodeTenure { contention: Arc::new(Contention::new(policy)), _over: over };
        assert!(tenure.may_hand_off(), "another contender may wait already");
        tenure.contention.mark_contended();
        assert!(tenure.may_hand_off());
        assert!(!tenure.may_hand_off(), "more than the policy allows");
    }
}
