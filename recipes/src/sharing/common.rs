//! The decisions on the watch that is common to all nodes: pure.

use std::time::Duration;

use super::decide::{CommonWatchState, SharingEffect, SharingState};
use super::known_contenders::KnownContenders;

impl<N, W> SharingState<N, W> {
    /// Begins the watch that is common to all nodes, if there is none. Returns its number.
    pub(super) fn begin_common_watch(&mut self, now: Duration) -> Option<u64> {
        if self.common.is_some() {
            return None;
        }
        self.watches += 1;
        let mut contenders = KnownContenders::Unwatched;
        contenders.ask(self.policy, now);
        self.common = Some(CommonWatchState { number: self.watches, contenders });
        Some(self.watches)
    }

    /// Ends the common watch if no node is left. Returns whether it has ended.
    pub(super) fn end_needless_watch(&mut self) -> bool {
        self.common.take_if(|_| !self.slots.has_tenure()).is_some()
    }

    /// As [`set_alone`](Self::set_alone), for all nodes.
    pub(super) fn set_all_alone(&mut self, watch: u64, is_alone: bool, now: Duration) {
        let policy = self.policy;
        self.for_all(watch, |contenders| contenders.set_alone(is_alone, policy, now));
    }

    /// As [`mark_contended`](Self::mark_contended), for all nodes.
    pub(super) fn mark_all_contended(&mut self, watch: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        let policy = self.policy;
        if !self.for_all(watch, |contenders| contenders.mark_contended(policy, now)) {
            return Vec::new();
        }
        self.end_idle(|_| true)
    }

    /// More nodes are in use than there may be: no node is handed off.
    pub(super) fn mark_exceeded(&mut self, watch: u64, now: Duration) -> Vec<SharingEffect<N, W>> {
        if !self.for_all(watch, |contenders| contenders.end_handoffs(now)) {
            return Vec::new();
        }
        self.end_idle(|_| true)
    }

    /// The contenders are not watched any more.
    pub(super) fn mark_all_blind(&mut self, watch: u64) -> Vec<SharingEffect<N, W>> {
        if !self.for_all(watch, |contenders| *contenders = KnownContenders::Ended) {
            return Vec::new();
        }
        self.common = None;
        self.end_idle(|_| true)
    }

    /// Changes what the common watch shows, and what is known of each node. Returns false for another watch.
    fn for_all(&mut self, watch: u64, change: impl Fn(&mut KnownContenders)) -> bool {
        let Some(common) = self.common.as_mut().filter(|common| common.number == watch) else { return false };
        change(&mut common.contenders);
        self.slots.tenures_mut().for_each(|tenure| change(&mut tenure.contenders));
        true
    }
}
