use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use lockkeeper_core::{ConnectionManager, Error, ZnodePath};

use super::{Owner, OwnerId};

/// The exclusive holds of all owners through one manager. It detects an acquire that would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct OwnerRegistry {
    entries: DashMap<(ZnodePath, OwnerId), (u64, Holding)>,
    /// The paths that each owner holds.
    by_owner: DashMap<OwnerId, Vec<ZnodePath>>,
    next: AtomicU64,
}

/// How an owner holds a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// By one guard of a plain mutex.
    Plain,
    /// By a hold that further guards of the owner can share.
    Shared,
}

impl OwnerRegistry {
    pub(crate) fn of(manager: &ConnectionManager) -> Arc<Self> {
        manager.shared_table()
    }

    /// Refuses a path that `owner` holds already.
    pub(crate) fn check(
        &self,
        manager: &ConnectionManager,
        path: &ZnodePath,
        owner: &Owner,
    ) -> Result<(), Error> {
        refuse(self.is_held(path, owner, &[Holding::Plain, Holding::Shared]), manager, path, owner)
    }

    /// Refuses a path that `owner` holds by a plain mutex. A shared hold does not count: a task that finds
    /// none to share may find the entry of one that is released at this moment.
    pub(crate) fn check_plain(
        &self,
        manager: &ConnectionManager,
        path: &ZnodePath,
        owner: &Owner,
    ) -> Result<(), Error> {
        refuse(self.is_held(path, owner, &[Holding::Plain]), manager, path, owner)
    }

    fn is_held(&self, path: &ZnodePath, owner: &Owner, holdings: &[Holding]) -> bool {
        let entry = self.entries.get(&(path.clone(), owner.id())).map(|entry| entry.1);
        entry.is_some_and(|holding| holdings.contains(&holding))
    }

    /// Returns a path that `owner` holds, if there is one.
    pub(crate) fn any_of(&self, owner: &Owner) -> Option<ZnodePath> {
        self.by_owner.get(&owner.id()).and_then(|held| held.first().cloned())
    }

    /// Registers a hold, until the entry is dropped.
    pub(crate) fn enter(self: &Arc<Self>, path: &ZnodePath, owner: &Owner, holding: Holding) -> OwnerEntry {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.by_owner.entry(owner.id()).or_default().push(path.clone());
        self.entries.insert((path.clone(), owner.id()), (number, holding));
        OwnerEntry { registry: Arc::clone(self), path: path.clone(), owner: owner.clone(), number }
    }
}

fn refuse(is_held: bool, manager: &ConnectionManager, path: &ZnodePath, owner: &Owner) -> Result<(), Error> {
    if !is_held {
        return Ok(());
    }
    Err(Error::WouldDeadlock {
        path: manager.whole_path(path),
        owner: owner.to_string(),
        advice: "release it first, or use a reentrant mutex",
    })
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
        self.registry.entries.remove_if(&key, |_, (number, _)| *number == self.number);
        if let Some(mut held) = self.registry.by_owner.get_mut(&self.owner.id())
            && let Some(at) = held.iter().position(|path| *path == self.path)
        {
            held.swap_remove(at);
        }
        self.registry.by_owner.remove_if(&self.owner.id(), |_, held| held.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_hold_refuses_a_plain_mutex_and_no_other_share() {
        let (registry, owner) = (Arc::new(OwnerRegistry::default()), Owner::new("a"));
        let path: ZnodePath = "/locks/a".parse().unwrap();
        // Released at this moment: no guard can share the hold any more, and its entry still exists.
        let entry = registry.enter(&path, &owner, Holding::Shared);
        assert!(registry.is_held(&path, &owner, &[Holding::Plain, Holding::Shared]));
        assert!(!registry.is_held(&path, &owner, &[Holding::Plain]));
        drop(entry);
        assert!(!registry.is_held(&path, &owner, &[Holding::Plain, Holding::Shared]));
        let _entry = registry.enter(&path, &owner, Holding::Plain);
        assert!(registry.is_held(&path, &owner, &[Holding::Plain]));
    }
}
