use std::sync::Arc;

use lockkeeper_core::{Error, Hold};

use super::contention_watcher::start_watcher;
use super::node_sharing::{NodeSharing, SlotWake};
use super::shared_entry::EntryReports;
use super::shared_node::{NodeBetween, SharedNode};

impl EntryReports for NodeSharing {
    fn retire(&self, slot: u64) -> bool {
        self.ask(|state| state.retire_entry(slot))
    }

    fn grant(self: Arc<Self>, slot: u64, hold: Hold) {
        let tenure = start_watcher(&self, slot, &hold);
        let node = NodeBetween::Granted(Box::new(hold));
        self.end_slot(slot, Some(SharedNode { node, tenure }));
    }

    fn fail(self: Arc<Self>, slot: u64, error: Error) {
        if let Some(wake) = self.ask(|state| state.fail_entry(slot)) {
            // The task may have ended.
            drop(wake.send(SlotWake::Failed(error)));
        }
        self.end_slot(slot, None);
    }

    fn abort(&self, slot: u64) {
        // Dropped without the lock.
        let aborted = self.ask(|state| state.abort_entry(slot));
        drop(aborted);
    }

    fn set_all_alone(&self, watch: u64, is_alone: bool) {
        let now = self.now();
        self.ask(|state| state.set_all_alone(watch, is_alone, now));
    }

    fn mark_all_contended(self: Arc<Self>, watch: u64) {
        self.change(|state, now| state.mark_all_contended(watch, now));
    }

    fn mark_exceeded(self: Arc<Self>, watch: u64) {
        self.change(|state, now| state.mark_exceeded(watch, now));
    }

    fn mark_all_blind(self: Arc<Self>, watch: u64) {
        self.change(|state, _| state.mark_all_blind(watch));
    }
}
