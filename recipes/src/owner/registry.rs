use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use lockkeeper_core::{ConnectionManager, Error, ZnodePath};

use super::{Owner, OwnerId};

/// The exclusive holds of all owners through one manager. It detects an acquire that would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct OwnerRegistry {
    entries: DashMap<(ZnodePath, OwnerId), u64>,
    /// The paths that each owner holds.
    by_owner: DashMap<OwnerId, Vec<ZnodePath>>,
    next: AtomicU64,
}

impl OwnerRegistry {
    pub(crate) fn of(manager: &ConnectionManager) -> Arc<Self> {
        manager.shared_table()
    }

    /// Refuses a path that `owner` holds already.
    pub(crate) fn check(&self, path: &ZnodePath, owner: &Owner) -> Result<(), Error> {
        if self.entries.contains_key(&(path.clone(), owner.id())) {
            return Err(Error::WouldDeadlock {
                path: path.to_string(),
                owner: owner.to_string(),
                advice: "release it first, or use a reentrant mutex",
            });
        }
        Ok(())
    }

    /// Returns a path that `owner` holds, if there is one.
    pub(crate) fn any_of(&self, owner: &Owner) -> Option<ZnodePath> {
        self.by_owner.get(&owner.id()).and_then(|held| held.first().cloned())
    }

    /// Registers a hold, until the entry is dropped.
    pub(crate) fn enter(self: &Arc<Self>, path: &ZnodePath, owner: &Owner) -> OwnerEntry {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.by_owner.entry(owner.id()).or_default().push(path.clone());
        self.entries.insert((path.clone(), owner.id()), number);
        OwnerEntry { registry: Arc::clone(self), path: path.clone(), owner: owner.clone(), number }
    }
}

/// One registered hold. Drop it before the hold's node is given up: after that the owner may wait for the
/// lock, as any contender.
#[derive(Debug)]
pub(crate) struct OwnerEntry {
    registry: Arc<OwnerRegistry>,
    path: ZnodePath,
    owner: Owner,
    number: u64,
}

impl Drop for OwnerEntry {
    fn drop(&mut self) {
        // The entry may be that of the owner's next hold.
        let key = (self.path.clone(), self.owner.id());
        self.registry.entries.remove_if(&key, |_, number| *number == self.number);
        if let Some(mut held) = self.registry.by_owner.get_mut(&self.owner.id())
            && let Some(at) = held.iter().position(|path| *path == self.path)
        {
            held.swap_remove(at);
        }
        self.registry.by_owner.remove_if(&self.owner.id(), |_, held| held.is_empty());
    }
}
