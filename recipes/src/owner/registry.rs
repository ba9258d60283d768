use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use lockkeeper_core::{
    ConnectionManager, Deadline, Error, Hold, Identity, ManagerExt, NodeName, ZnodePath, count_owner_deadlock,
};
use lockkeeper_lock::{Owner, OwnerId};
use parking_lot::Mutex;
use tracing::warn;

use super::chain::{Waiter, circle};
use super::error::WouldDeadlock;
use super::side::Side;

/// The holds of all owners through one manager, and what the owners that hold something wait for. It detects
/// an acquire that would wait for itself.
#[derive(Debug, Default)]
pub(crate) struct OwnerRegistry {
    entries: DashMap<(ZnodePath, OwnerId), (u64, Holding)>,
    /// What each owner holds.
    by_owner: DashMap<OwnerId, Vec<Held>>,
    /// The waits of owners that hold something.
    waits: Mutex<Vec<NestedWait>>,
    next: AtomicU64,
}

/// How an owner holds a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// By one guard of a plain mutex.
    Plain,
    /// By a hold that further guards of the owner can share, of this side.
    Shared(Side),
    /// By permits, of which other owners can have some, too.
    Permits,
}

/// One hold of an owner.
#[derive(Debug)]
struct Held {
    number: u64,
    path: ZnodePath,
    holding: Holding,
    /// The id in the name of the hold's node.
    create_id: Option<String>,
}

#[derive(Debug)]
struct NestedWait {
    number: u64,
    owner: Owner,
    path: ZnodePath,
    side: Side,
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
        if self.holding(path, owner).is_some() { Err(held_already(manager, path, owner)) } else { Ok(()) }
    }

    /// Refuses a path that `owner` holds by a plain mutex. A shared hold does not count: a task that finds
    /// none to share may find the entry of one that is released at this moment.
    pub(crate) fn check_plain(
        &self,
        manager: &ConnectionManager,
        path: &ZnodePath,
        owner: &Owner,
    ) -> Result<(), Error> {
        let is_held = self.holding(path, owner) == Some(Holding::Plain);
        if is_held { Err(held_already(manager, path, owner)) } else { Ok(()) }
    }

    /// How the owner holds the path alone. Permits do not count: an owner can take more of them.
    fn holding(&self, path: &ZnodePath, owner: &Owner) -> Option<Holding> {
        self.entries.get(&(path.clone(), owner.id())).map(|entry| entry.1)
    }

    /// Returns a path that `owner` holds alone, if there is one.
    pub(crate) fn any_of(&self, owner: &Owner) -> Option<ZnodePath> {
        let held = self.by_owner.get(&owner.id())?;
        held.iter().find(|held| held.holding != Holding::Permits).map(|held| held.path.clone())
    }

    /// Registers a hold, until the entry is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        path: &ZnodePath,
        owner: &Owner,
        holding: Holding,
        hold: &Hold,
    ) -> OwnerEntry {
        self.enter_node(path, owner, holding, NodeName::create_id(hold.path().as_str()))
    }

    fn enter_node(
        self: &Arc<Self>,
        path: &ZnodePath,
        owner: &Owner,
        holding: Holding,
        create_id: Option<&str>,
    ) -> OwnerEntry {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let held = Held { number, path: path.clone(), holding, create_id: create_id.map(str::to_owned) };
        self.by_owner.entry(owner.id()).or_default().push(held);
        if holding != Holding::Permits {
            self.entries.insert((path.clone(), owner.id()), (number, holding));
        }
        OwnerEntry { registry: Arc::clone(self), path: path.clone(), owner: owner.clone(), number }
    }

    /// The data of the node of an owner that waits until `deadline` and does nothing else meanwhile. A try
    /// does not wait, so it names no holds.
    pub(crate) fn waiter_data(&self, data: &[u8], owner: &Owner, deadline: Deadline) -> Vec<u8> {
        // Nothing tells two owners without a name apart.
        if deadline.is_immediate() || owner.name().is_empty() {
            return owner.append_owner(data);
        }
        let held = self.by_owner.get(&owner.id());
        let holds: Vec<String> =
            held.iter().flat_map(|held| held.iter()).filter_map(|held| held.create_id.clone()).collect();
        owner.append_owner(&Identity::append_wait(data, &holds, deadline.time_of_day()))
    }

    /// Registers that an owner waits for a path, until the entry is dropped, if the owner holds something.
    /// Logs and counts a circle of owners that wait for each other: a snapshot, so it refuses nothing.
    pub(crate) fn wait(
        self: &Arc<Self>,
        manager: &ConnectionManager,
        path: &ZnodePath,
        owner: &Owner,
        side: Side,
    ) -> Option<WaitEntry> {
        if !self.by_owner.contains_key(&owner.id()) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let wait = NestedWait { number, owner: owner.clone(), path: path.clone(), side };
        let chain = {
            // Registered before it looks: of two owners that close a circle, at least one sees it.
            let mut waits = self.waits.lock();
            waits.push(wait);
            let waiters: Vec<Waiter<'_>> = waits.iter().map(|wait| self.waiter(wait)).collect();
            circle(&waiters, waiters.len() - 1).map(|circle| {
                circle.iter().filter_map(|at| waits.get(*at)).map(NestedWait::describe).collect()
            })
        };
        if let Some(chain) = chain {
            let (chain, path): (Vec<String>, _) = (chain, manager.whole_path(path));
            let chain = chain.join(", ");
            count_owner_deadlock();
            warn!(
                %path, %owner, chain,
                "owners of this process wait for each other: a deadlock, unless one gives up"
            );
        }
        Some(WaitEntry { registry: Arc::clone(self), number })
    }

    fn waiter<'a>(&self, wait: &'a NestedWait) -> Waiter<'a> {
        let id = wait.owner.id();
        let held = self.by_owner.get(&id);
        let holds = held.iter().flat_map(|held| held.iter()).filter_map(|held| match held.holding {
            Holding::Plain => Some((held.path.clone(), Side::Write)),
            Holding::Shared(side) => Some((held.path.clone(), side)),
            Holding::Permits => None,
        });
        Waiter { owner: id, path: &wait.path, side: wait.side, holds: holds.collect() }
    }
}

impl NestedWait {
    fn describe(&self) -> String {
        format!("{} waits for {}", self.owner, self.path)
    }
}

/// One registered wait.
#[derive(Debug)]
pub(crate) struct WaitEntry {
    registry: Arc<OwnerRegistry>,
    number: u64,
}

impl Drop for WaitEntry {
    fn drop(&mut self) {
        self.registry.waits.lock().retain(|wait| wait.number != self.number);
    }
}

fn held_already(manager: &ConnectionManager, path: &ZnodePath, owner: &Owner) -> Error {
    let advice = "release it first, or use a reentrant mutex";
    WouldDeadlock { path: manager.whole_path(path), owner: owner.to_string(), advice }.into()
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
        if let Some(mut held) = self.registry.by_owner.get_mut(&self.owner.id()) {
            let at = held.iter().position(|held| held.number == self.number);
            at.into_iter().for_each(|at| drop(held.swap_remove(at)));
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
        let entry = registry.enter_node(&path, &owner, Holding::Shared(Side::Write), None);
        assert_eq!(registry.holding(&path, &owner), Some(Holding::Shared(Side::Write)));
        drop(entry);
        assert_eq!(registry.holding(&path, &owner), None);
        let _entry = registry.enter_node(&path, &owner, Holding::Plain, None);
        assert_eq!(registry.holding(&path, &owner), Some(Holding::Plain));
    }

    #[test]
    fn a_waiter_names_every_hold_of_its_owner_and_permits_refuse_nothing() {
        let (registry, owner) = (Arc::new(OwnerRegistry::default()), Owner::new("a"));
        let path = |text: &str| text.parse::<ZnodePath>().unwrap();
        let ids = ["0b0e1a52-9d57-4c6a-9a0a-6d0e4a1f2b3c", "1b0e1a52-9d57-4c6a-9a0a-6d0e4a1f2b3c"];
        let _lease = registry.enter_node(&path("/pool"), &owner, Holding::Permits, Some(ids[0]));
        assert_eq!((registry.holding(&path("/pool"), &owner), registry.any_of(&owner)), (None, None));
        let second = registry.enter_node(&path("/a"), &owner, Holding::Plain, Some(ids[1]));
        let data = registry.waiter_data(b"host=h pid=1", &owner, Deadline::never());
        assert_eq!(Identity::read(&data).holds(), ids);
        drop(second);
        let data = registry.waiter_data(b"host=h pid=1", &owner, Deadline::never());
        assert_eq!(Identity::read(&data).holds(), &ids[..1]);
    }
}
