use std::sync::Arc;

use lockkeeper_core::{ConfigError, Error};

use super::modes::ModeGuard;
use super::{Inner, Mode, MultiLock, plan};
use crate::lock::{Lock, Recipe};

/// Names the members of a [`MultiLock`], and how they are taken.
#[derive(Debug, Default)]
#[must_use = "nothing is made before build()"]
pub struct MultiLockBuilder {
    members: Vec<Arc<dyn Recipe>>,
    is_atomic: bool,
    nesting: bool,
}

impl MultiLockBuilder {
    /// A further member. The order does not matter.
    pub fn lock(mut self, lock: &dyn Lock) -> Self {
        self.members.push(lock.as_recipe().0.shared());
        self
    }

    /// Further members.
    pub fn locks<'a>(self, locks: impl IntoIterator<Item = &'a dyn Lock>) -> Self {
        locks.into_iter().fold(self, Self::lock)
    }

    /// Takes a place in all lines at once and waits in it. Default: in order, one after another.
    ///
    /// All takers of these paths that take more than one lock must do so. See [`MultiLock`].
    pub fn atomic(self) -> Self {
        Self { is_atomic: true, ..self }
    }

    /// Lets owners take it that hold other locks already. Default: refused with [`Error::WouldDeadlock`].
    ///
    /// Only safe if nobody who holds a lock of this set ever waits for what the owner holds.
    pub fn allow_nesting(self) -> Self {
        Self { nesting: true, ..self }
    }

    /// Puts the members in order. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when there is no member, members work through different managers, one path is named for two
    /// kinds of lock or owners, a reentrant one has no owner, or a path is in use in the other mode in this process.
    pub fn build(self) -> Result<MultiLock, Error> {
        let setting = |value: &str, advice| {
            Error::Config(ConfigError::Setting { name: "locks", value: value.to_owned(), advice })
        };
        let mut members = plan::in_order(self.members)?.into_iter();
        let Some(first) = members.next() else {
            return Err(setting("none", "name at least one lock"));
        };
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
        Ok(MultiLock(Arc::new(Inner { first, others, mode, nesting: self.nesting, _in_use: in_use })))
    }
}
