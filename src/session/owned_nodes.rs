//! The waiting and held nodes of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::node_register::NodeRegister;
use super::parker::Parker;
use crate::error::LossReason;

/// The nodes `N` of a session by their number, until the session ends.
pub(super) struct OwnedNodes<N> {
    register: NodeRegister<N, LossReason>,
    next: AtomicU64,
    /// The task that awaits the watches on held nodes.
    deletion_watcher: Parker,
}

impl<N> OwnedNodes<N> {
    pub(super) fn new() -> Self {
        Self { register: NodeRegister::new(), next: AtomicU64::new(0), deletion_watcher: Parker::default() }
    }

    /// Why the session is over, if it is.
    pub(super) fn loss(&self) -> Option<LossReason> {
        self.register.loss().copied()
    }

    /// Ends the session, and returns its nodes. `None` if it has ended before.
    pub(super) fn end(&self, reason: LossReason) -> Option<Vec<Arc<N>>> {
        self.register.end(reason)
    }

    /// Registers the node that `make` makes with its number. If the session is over, also returns why: then
    /// the node is not registered.
    pub(super) fn register(&self, make: impl FnOnce(u64) -> N) -> (Arc<N>, Option<LossReason>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(make(number));
        let loss = self.register.insert(number, Arc::clone(&node)).err().copied();
        (node, loss)
    }

    pub(super) fn remove(&self, number: u64) {
        self.register.remove(number);
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.register.read(|nodes| nodes.contains_key(&number))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.register.read(|nodes| nodes.is_empty())
    }

    pub(super) fn any(&self, is_meant: impl Fn(&N) -> bool) -> bool {
        self.register.read(|nodes| nodes.values().any(|node| is_meant(node)))
    }

    /// The nodes that are meant, in the order of their numbers.
    pub(super) fn all(&self, is_meant: impl Fn(&N) -> bool) -> Vec<Arc<N>> {
        self.register.read(|nodes| nodes.values().filter(|node| is_meant(node)).cloned().collect())
    }

    /// What `take` makes of the nodes that are meant, until it returns `None`.
    pub(super) fn take_while<T>(
        &self,
        is_meant: impl Fn(&N) -> bool,
        take: impl Fn(&Arc<N>) -> Option<T>,
    ) -> Vec<T> {
        self.register.read(|nodes| nodes.values().filter(|node| is_meant(node)).map_while(take).collect())
    }

    /// Some of the nodes.
    pub(super) fn some(&self, max: usize) -> Vec<Arc<N>> {
        self.register.read(|nodes| nodes.values().take(max).cloned().collect())
    }

    pub(super) fn deletion_watcher(&self) -> &Parker {
        &self.deletion_watcher
    }
}
