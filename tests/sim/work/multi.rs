use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::{BootInstant, Error, LockGuard, MultiLock, MultiLockError, Mutex, MutexGuard, ReleaseError};

use super::{Claim, Hold, Kind, Site, Way};

/// The locks that are taken together, below one path.
const MEMBERS: [&str; 3] = ["a", "b", "c"];

/// [`MultiLock`]: some of them, named in any order.
pub(super) struct Ordered;

/// The same, in place in all lines at once.
pub(super) struct Atomic;

/// Some of them, one after another by hand, in the order of their paths.
pub(super) struct Nested;

/// One of them.
pub(super) struct Single;

/// Some of the members, each once, in the order of chance.
fn drawn(site: &mut Site) -> Result<Vec<Mutex>, Error> {
    let mut left = MEMBERS.to_vec();
    let count = site.rng.index(left.len()) + 1;
    let names = (0..count).map(|_| left.swap_remove(site.rng.index(left.len())));
    names.map(|name| Mutex::new(&site.manager, format!("{}/{name}", site.path).as_str())).collect()
}

async fn together(mut site: Site, way: Way, is_atomic: bool) -> Result<Option<Box<dyn Hold>>, Error> {
    let members = drawn(&mut site)?;
    let builder = members.iter().fold(MultiLock::builder(), |builder, member| builder.lock(member));
    let all = if is_atomic { builder.atomic().build()? } else { builder.build()? };
    let cause = |error: MultiLockError| error.cause().clone();
    let guard = match way {
        Way::Wait => Some(all.acquire().await.map_err(cause)?),
        Way::WaitAtMost(limit) => Some(all.acquire_timeout(limit).await.map_err(cause)?),
        Way::Try => all.try_acquire().await.map_err(cause)?,
    };
    Ok(guard.map(|guard| Box::new(guard) as Box<dyn Hold>))
}

impl Kind for Ordered {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(together(site, way, false))
    }
}

impl Kind for Atomic {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(together(site, way, true))
    }
}

impl Kind for Nested {
    fn take(&self, mut site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move {
            let mut members = drawn(&mut site)?;
            members.sort_by(|one, other| one.path().cmp(other.path()));
            loop {
                let mut guards = Vec::new();
                for member in &members {
                    let guard = match way {
                        Way::Wait => Some(member.acquire().await?),
                        Way::WaitAtMost(limit) => Some(member.acquire_timeout(limit).await?),
                        Way::Try => member.try_acquire().await?,
                    };
                    let Some(guard) = guard else { return Ok(None) };
                    guards.push(guard);
                }
                // What was taken first may have been lost while the last was waited for.
                if guards.iter().all(|guard| guard.is_valid()) {
                    return Ok(Some(Box::new(OneByOne(guards)) as Box<dyn Hold>));
                }
            }
        })
    }
}

impl Kind for Single {
    fn take(&self, mut site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move {
            let member = drawn(&mut site)?.swap_remove(0);
            let guard = match way {
                Way::Wait => Some(member.acquire().await?),
                Way::WaitAtMost(limit) => Some(member.acquire_timeout(limit).await?),
                Way::Try => member.try_acquire().await?,
            };
            Ok(guard.map(|guard| Box::new(OneByOne(vec![guard])) as Box<dyn Hold>))
        })
    }
}

impl Hold for LockGuard {
    fn claims(&self) -> Vec<Claim> {
        self.members().map(|(_, hold)| Claim::exclusive(hold)).collect()
    }

    fn is_valid(&self) -> bool {
        self.is_valid()
    }

    fn valid_until(&self) -> BootInstant {
        self.valid_until()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lost().map(drop))
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(async move { (*self).release().await.map_err(|errors| errors.errors()[0].clone()) })
    }
}

/// Guards that were taken one after another.
#[derive(Debug)]
struct OneByOne(Vec<MutexGuard>);

impl Hold for OneByOne {
    fn claims(&self) -> Vec<Claim> {
        self.0.iter().map(|guard| Claim::exclusive(guard.hold())).collect()
    }

    fn is_valid(&self) -> bool {
        self.0.iter().all(|guard| guard.is_valid())
    }

    fn valid_until(&self) -> BootInstant {
        self.0.iter().map(|guard| guard.valid_until()).min().unwrap()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        let holds: Vec<&lockkeeper::Hold> = self.0.iter().map(MutexGuard::hold).collect();
        Box::pin(async move { drop(lockkeeper::Hold::lost_any(&holds).await) })
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
