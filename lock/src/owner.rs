use std::fmt::{self, Display, Formatter};
use std::future::Future;
use std::sync::Arc;

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
/// use lockkeeper_lock::Owner;
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
    /// Makes a new owner. The name is for people: it is written beside the lock. Two owners with one
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

    /// Returns `data` with the owner's name appended, if it has one, for people who inspect the lock.
    #[must_use]
    pub fn append_owner(&self, data: &[u8]) -> Vec<u8> {
        if self.name().is_empty() {
            return data.to_owned();
        }
        [data, b" owner=", self.name().as_bytes()].concat()
    }

    /// The identity of the owner, for the tables of an engine.
    #[must_use]
    pub fn id(&self) -> OwnerId {
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
pub struct OwnerId(usize);

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
    }
}
