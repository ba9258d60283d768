use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::{BootInstant, ConnectionPool, Error, HandOffPolicy, Mutex, MutexGuard, ReleaseError, Txn};
use lockkeeper_core::NodeMonitor;

use super::{Claim, Hold, Kind, Lock, Site, Way};
use crate::rng::Rng;

/// The mutexes that the tasks of one process share, by path.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<BTreeMap<String, Mutex>>);

impl Shared {
    /// All of them keep their nodes, for a time that is left to chance.
    pub(crate) fn of(pool: &ConnectionPool, locks: &[Lock], rng: &mut Rng) -> Self {
        let mut share = |lock: &Lock| {
            let manager = pool.for_path(lock.path());
            let timeout = manager.session_timeout();
            let time = |part: u64| timeout / 100 * u32::try_from(part).expect("a small part");
            let keep = HandOffPolicy::default()
                .max_handoffs(u32::try_from(rng.between(1, 5)).expect("a small number"))
                .max_time(time(rng.between(1, 30)))
                .idle_time(rng.pick(&[Duration::ZERO, time(1), time(10), time(30)]));
            (
                lock.path(),
                Mutex::new(manager, lock.path()).expect("a path").with_handoff(keep).expect("a keep"),
            )
        };
        Self(Arc::new(locks.iter().map(&mut share).collect()))
    }
}

/// A [`Mutex`] that keeps its node.
pub(super) struct Keeping;

impl Kind for Keeping {
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>> {
        Box::pin(async move {
            let Some(mutex) = site.shared.0.get(&site.path) else {
                return Ok(None);
            };
            let guard = match way {
                Way::Wait => Some(mutex.acquire().await?),
                Way::WaitAtMost(limit) => Some(mutex.acquire_timeout(limit).await?),
                Way::Try => mutex.try_acquire().await?,
            };
            Ok(guard.map(|guard| Box::new(Kept(guard)) as Box<dyn Hold>))
        })
    }
}

#[derive(Debug)]
struct Kept(MutexGuard);

impl Hold for Kept {
    fn claims(&self) -> Vec<Claim> {
        vec![Claim::exclusive(self.0.hold())]
    }

    fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    fn valid_until(&self) -> BootInstant {
        self.0.valid_until()
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Hold::lost(&self.0)
    }

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>> {
        Box::pin(self.0.release())
    }

    fn may_stay(&self) -> bool {
        true
    }

    fn monitor(&self) -> Option<NodeMonitor> {
        Hold::monitor(&self.0)
    }

    fn txn(&self) -> Option<Txn<'_>> {
        Hold::txn(&self.0)
    }
}
