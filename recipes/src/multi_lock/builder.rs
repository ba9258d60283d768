use std::sync::Arc;

use lockkeeper_core::{ConfigError, Error};

use super::handle::{MemberLocks, MultiLock};
use super::modes::{Mode, ModeGuard};
use super::plan;
use crate::lock::{Recipe, ZooKeeperLock};

/// The members of a [`MultiLock`], and the way to take them.
#[derive(Debug, Default)]
#[must_use = "nothing is made before build()"]
pub struct MultiLockBuilder {
    members: Vec<Arc<dyn Recipe>>,
    is_atomic: bool,
    nesting: bool,
}

impl MultiLock {
    /// Starts to name the locks.
    pub fn builder() -> MultiLockBuilder {
        MultiLockBuilder::default()
    }
}

impl MultiLockBuilder {
    /// Adds a member. The order does not matter.
    pub fn lock(mut self, lock: &dyn ZooKeeperLock) -> Self {
        self.members.push(lock.as_recipe().0.shared());
        self
    }

    /// Adds several members.
    pub fn locks<'a>(self, locks: impl IntoIterator<Item = &'a dyn ZooKeeperLock>) -> Self {
        locks.into_iter().fold(self, Self::lock)
    }

    /// Queues for all members at once, and waits in all queues. Default: in order, one member after another.
    ///
    /// All takers that take more than one of these paths must use this mode. See [`MultiLock`].
    pub fn atomic(self) -> Self {
        Self { is_atomic: true, ..self }
    }

    /// Admits owners that hold other locks already. Default: refused with
    /// [`WouldDeadlock`](crate::owner::WouldDeadlock).
    ///
    /// This is safe only if no holder of a member ever waits for a lock that the owner holds.
    pub fn allow_nesting(self) -> Self {
        Self { nesting: true, ..self }
    }

    /// Sorts the members, and checks them. Sends nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if there is no member, if members use different managers, if one path is named for
    /// two kinds of lock or two owners, if a reentrant lock has no owner, or if this process uses a path in
    /// the other mode.
    pub fn build(self) -> Result<MultiLock, Error> {
        let mut members = plan::in_order(self.members)?.into_iter();
        let first = members.next().ok_or_else(no_member)?;
        let others: Vec<Arc<dyn Recipe>> = members.collect();
        if !others.iter().all(|other| other.manager().is_same_as(first.manager())) {
            return Err(setting(
                "of several managers",
                "make all of them with one connection manager; of a pool, with that of the first path",
            ));
        }
        let mode = if self.is_atomic { Mode::Atomic } else { Mode::Ordered };
        let paths = std::iter::once(&first).chain(&others).map(|member| member.path().clone()).collect();
        let in_use = ModeGuard::enter(first.manager(), paths, mode)?;
        Ok(MultiLock(Arc::new(MemberLocks { first, others, mode, nesting: self.nesting, _in_use: in_use })))
    }
}

/// The error of a multi-lock without members.
pub(crate) fn no_member() -> Error {
    setting("none", "name at least one lock")
}

fn setting(value: &str, advice: &'static str) -> Error {
    Error::Config(ConfigError::Setting { name: "locks", value: value.to_owned(), advice })
}
