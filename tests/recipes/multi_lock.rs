//! [`MultiLock`], of mutexes below one path.

use futures::future::BoxFuture;
use lockkeeper::error::MultiLockError;
use lockkeeper::locks::ZooKeeperLock;
use lockkeeper::{Error, Hold, MultiLock, MultiLockGuard, Mutex, MutexGuard, ReleaseError};
use lockkeeper_core::{Kind, NodeName};

use crate::mutex::{acquire, granted};
use crate::semaphore::LIMIT;
use crate::{AcquireMode, Adapter, Claim, Grant, Granted, Share, Taking, Target};

/// The names of the members.
const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// Some members together.
#[derive(Clone, Copy, Debug)]
pub enum Together {
    /// One after the other, in the order of their paths.
    InOrder,
    /// By one transaction.
    AtOnce,
}

/// Some members, one after the other, each with a guard of its own.
#[derive(Clone, Copy, Debug)]
pub struct OneByOne;

/// One member.
#[derive(Clone, Copy, Debug)]
pub struct OneMember;

/// Some of the members, each once, in any order; without chance, the last two, the last one first.
fn drawn(target: &mut Target) -> Result<Vec<Mutex>, Error> {
    let mut left = MEMBERS.to_vec();
    let count = target.draw(left.len(), 1) + 1;
    let names = (0..count).map(|_| left.swap_remove(target.draw(left.len(), left.len() - 1)));
    let names: Vec<_> = names.collect();
    names
        .into_iter()
        .map(|name| Mutex::new(&target.manager, format!("{}/{name}", target.path).as_str()))
        .collect()
}

fn all(mut target: Target, together: Together) -> Result<MultiLock, Error> {
    let members = drawn(&mut target)?;
    let builder = members.iter().fold(MultiLock::builder(), |builder, member| builder.lock(member));
    match together {
        Together::InOrder => builder.build(),
        Together::AtOnce => builder.atomic().build(),
    }
}

/// Acquires several locks of any recipes.
pub fn take(all: Result<MultiLock, Error>, mode: AcquireMode) -> Taking {
    Box::pin(async move {
        let all = all?;
        let taken = match mode {
            AcquireMode::Wait => all.acquire().await.map(Some),
            AcquireMode::WaitAtMost(limit) => all.acquire_timeout(limit).await.map(Some),
            AcquireMode::Try => all.try_acquire().await,
        };
        granted(taken.map_err(|error: MultiLockError| error.cause().clone()))
    })
}

impl Adapter for Together {
    fn take(&self, target: Target, mode: AcquireMode) -> Taking {
        take(all(target, *self), mode)
    }

    fn as_lock(&self, target: Target) -> Result<Option<Box<dyn ZooKeeperLock>>, Error> {
        Ok(Some(Box::new(all(target, *self)?)))
    }

    fn creates_by_transaction(&self) -> bool {
        true
    }
}

impl Adapter for OneByOne {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            let mut members = drawn(&mut target)?;
            members.sort_by(|one, other| one.path().cmp(other.path()));
            loop {
                let mut guards = Vec::new();
                for member in &members {
                    let Some(guard) = acquire(member, mode).await? else { return Ok(None) };
                    guards.push(guard);
                }
                // The first may have been lost while the last was waited for.
                if guards.iter().all(MutexGuard::is_valid) {
                    return Ok(Some(Box::new(Guards(guards)) as Granted));
                }
            }
        })
    }
}

impl Adapter for OneMember {
    fn take(&self, mut target: Target, mode: AcquireMode) -> Taking {
        Box::pin(async move {
            let member = drawn(&mut target)?.swap_remove(0);
            granted(acquire(&member, mode).await.map(|guard| guard.map(|guard| Guards(vec![guard]))))
        })
    }
}

impl Grant for MultiLockGuard {
    fn holds(&self) -> Vec<&Hold> {
        self.members().map(|(_, hold)| hold).collect()
    }

    /// The type tells nothing about its members; their nodes do.
    fn claims(&self) -> Vec<Claim> {
        let share = |hold: &Hold| match hold.path().rsplit_once('/') {
            Some((directory, _)) if directory.ends_with("/leases") => {
                Share::Permits { permits: hold.node_count(), limit: LIMIT }
            }
            Some((_, name)) if NodeName::parse(name).is_some_and(|name| name.kind() == Kind::READ) => {
                Share::Shared
            }
            _ => Share::Exclusive,
        };
        self.holds().into_iter().map(|hold| Claim::of(hold, share(hold))).collect()
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        let release = (*self).release();
        Box::pin(async { release.await.map_err(|errors| errors.errors().next().expect("an error").clone()) })
    }
}

/// Guards that were acquired one after the other.
#[derive(Debug)]
struct Guards(Vec<MutexGuard>);

impl Grant for Guards {
    fn holds(&self) -> Vec<&Hold> {
        self.0.iter().map(MutexGuard::hold).collect()
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(async move {
            let mut released = Ok(());
            for guard in self.0.into_iter().rev() {
                released = released.and(guard.release().await);
            }
            released
        })
    }
}
