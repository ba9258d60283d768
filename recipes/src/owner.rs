use std::fmt::{self, Display, Formatter};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use lockkeeper_core::{ConfigError, ConnectionManager, Error, ZnodePath};

tokio::task_local! {
    static CURRENT: Owner;
}

/// The owner of reentrant holds. The caller passes it, or a scope carries it down a chain of calls.
///
/// An owner is neither a thread nor a task: a task moves between threads, and `join!` runs two futures in one
/// task. Clones are the same owner.
///
/// # Examples
///
/// ```
/// use lockkeeper::Owner;
///
/// # async fn example() {
/// let owner = Owner::new("order 4711");
/// owner
///     .scope(async {
///         assert_eq!(Owner::current().unwrap().name(), "order 4711");
///     })
///     .await;
/// assert!(Owner::current().is_none());
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Makes a new owner. The name is for people: it is written into the lock's node. Two owners with one
    /// name are different owners.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name of the owner.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Runs `work` with this owner in scope. A task that `work` spawns does not inherit the owner: give it a
    /// clone.
    pub async fn scope<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
    }

    /// Returns the owner in scope, if any.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Makes an owner that no caller can name, so that its acquires are not reentrant.
    pub(crate) fn anonymous() -> Self {
        Self::new("")
    }

    pub(crate) fn in_scope() -> Result<Self, Error> {
        Self::current().ok_or(Error::Config(ConfigError::NoOwner))
    }

    /// Returns `data` with the owner's name appended, if it has one, for people who inspect the lock.
    pub(crate) fn append_owner(&self, data: &[u8]) -> Vec<u8> {
        if self.name().is_empty() {
            return data.to_owned();
        }
        [data, b" owner=", self.name().as_bytes()].concat()
    }

    pub(crate) fn id(&self) -> OwnerId {
        OwnerId(Arc::as_ptr(&self.0).cast::<()>() as usize)
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Owner {}

impl Display for Owner {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The identity of an owner, for as long as one of its clones lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnerId(usize);

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
        // The owner's next hold may stand there already.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_one_owner_and_equal_names_are_two() {
        let owner = Owner::new("a");
        assert_eq!(owner, owner.clone());
        assert_ne!(owner, Owner::new("a"));
        assert_ne!(Owner::new(""), Owner::new(""));
    }

    #[tokio::test]
    async fn a_scope_is_carried_down_calls_and_not_into_tasks() {
        let owner = Owner::new("a");
        let inside = owner
            .scope(async { (Owner::current(), tokio::spawn(async { Owner::current() }).await.unwrap()) });
        assert_eq!(inside.await, (Some(owner), None));
        assert!(Owner::in_scope().is_err());
    }
}
