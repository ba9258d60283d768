use std::sync::{Arc, Weak};

use lockkeeper_core::{Hold, HoldExt, ManagerExt, NodeMonitor};
use tokio::sync::oneshot;

use super::node_sharing::NodeSharing;
use super::tenure::{NodeTenure, WatcherSignals};

/// Watches for other contenders during the tenure. Its drop, also that by the end of its runtime, ends an
/// idle node, which no task watches any more.
struct ContentionWatcher {
    sharing: Weak<NodeSharing>,
    tenure: u64,
    signals: Arc<WatcherSignals>,
}

/// Starts the tenure of a hold, and its watching task. The task starts with the tenure, because a guard may
/// be dropped where no task can be spawned. It watches only when it is needed.
pub(super) fn start_watcher(sharing: &Arc<NodeSharing>, slot: u64, hold: &Hold) -> NodeTenure {
    let signals = Arc::<WatcherSignals>::default();
    let number = sharing.begin_tenure(slot, &signals);
    let (over, is_over) = oneshot::channel();
    let watcher = ContentionWatcher { sharing: Arc::downgrade(sharing), tenure: number, signals };
    // If the runtime has ended, it is dropped, and its drop reports that nothing is watched.
    hold.manager().spawn(watcher.watch(hold.monitor(), is_over));
    NodeTenure { number, _over: over }
}

impl ContentionWatcher {
    async fn watch(self, monitor: NodeMonitor, over: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = over => {}
            _ = monitor.lost() => {
                if let Some(sharing) = self.sharing.upgrade() {
                    sharing.mark_lost(self.tenure);
                }
            }
            () = self.watch_contenders(&monitor) => {}
            () = self.time_idle() => {}
        }
    }

    async fn watch_contenders(&self, monitor: &NodeMonitor) {
        self.signals.watch_contenders.notified().await;
        match self.has_common_watch(monitor) {
            true => monitor.revoke_requested().await,
            false => self.watch_own_queue(monitor).await,
        }
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.mark_contended(self.tenure);
        }
        std::future::pending().await
    }

    /// Returns whether one watch is common to all nodes, and starts it if this is the first of them.
    fn has_common_watch(&self, monitor: &NodeMonitor) -> bool {
        let Some(sharing) = self.sharing.upgrade() else { return false };
        let Some(entry) = sharing.entry() else { return false };
        if let Some((watch, is_over)) = sharing.begin_common_watch() {
            let watching = entry.watch(watch, monitor.clone());
            entry.manager().spawn(async move {
                tokio::select! {
                    biased;
                    _ = is_over => {}
                    () = watching => {}
                }
            });
        }
        true
    }

    async fn watch_own_queue(&self, monitor: &NodeMonitor) {
        let set_alone = |is_alone| {
            if let Some(sharing) = self.sharing.upgrade() {
                sharing.set_alone(self.tenure, is_alone);
            }
        };
        monitor.contended(set_alone).await;
    }

    async fn time_idle(&self) {
        loop {
            let until = self.sharing.upgrade().and_then(|sharing| sharing.idle_until(self.tenure));
            match until {
                None => self.signals.time_idle.notified().await,
                Some(until) => until.passed().await,
            }
            if let Some(sharing) = self.sharing.upgrade() {
                sharing.end_idle_time(self.tenure);
            }
        }
    }
}

impl Drop for ContentionWatcher {
    fn drop(&mut self) {
        if let Some(sharing) = self.sharing.upgrade() {
            sharing.mark_blind(self.tenure);
        }
    }
}
