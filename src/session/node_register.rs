use std::collections::BTreeMap;

use crate::sync::{Arc, Mutex, OnceLock};

/// The nodes of a session by their number, and the loss `L` that ends the session and takes all of them.
///
/// Every method may be called by any thread at any time.
pub(super) struct NodeRegister<N, L> {
    nodes: Mutex<BTreeMap<u64, Arc<N>>>,
    loss: OnceLock<L>,
}

impl<N, L> NodeRegister<N, L> {
    pub(super) fn new() -> Self {
        Self { nodes: Mutex::new(BTreeMap::new()), loss: OnceLock::new() }
    }

    /// Why the session is over, if it is.
    pub(super) fn loss(&self) -> Option<&L> {
        self.loss.get()
    }

    /// Ends the session, and returns its nodes. `None` if it has ended before.
    pub(super) fn end(&self, loss: L) -> Option<Vec<Arc<N>>> {
        self.loss.set(loss).ok()?;
        let nodes = std::mem::take(&mut *self.nodes.lock());
        Some(nodes.into_values().collect())
    }

    /// Registers a node, unless the session is over: then this returns why.
    pub(super) fn insert(&self, number: u64, node: Arc<N>) -> Result<(), &L> {
        self.nodes.lock().insert(number, node);
        // Looked at behind the insert: the end of the session misses a node that is registered later.
        match self.loss.get() {
            Some(loss) => {
                self.remove(number);
                Err(loss)
            }
            None => Ok(()),
        }
    }

    pub(super) fn remove(&self, number: u64) {
        let removed = self.nodes.lock().remove(&number);
        drop(removed);
    }

    /// Reads the nodes under the lock.
    pub(super) fn read<T>(&self, look: impl FnOnce(&BTreeMap<u64, Arc<N>>) -> T) -> T {
        look(&self.nodes.lock())
    }
}
