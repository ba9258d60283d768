//! What the processes of a plan contend for: paths, and the adapters that may meet there.

use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::ConnectionPool;
use lockkeeper::config::HandOffPolicy;
use lockkeeper_test_recipes::{AnyAdapter, FAMILIES, Family, Seen, SharedLock, SharedLocks, Target};

use crate::rng::Rng;

/// How many locks a plan has.
const LOCKS: [usize; 3] = [1, 1, 2];

/// One path that is contended for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    number: usize,
    family: &'static Family,
    /// What its path is longer.
    pub(crate) padding: usize,
}

/// Draws what a plan's processes contend for, in directories that count from `first_sequence`.
pub(crate) fn draw(rng: &mut Rng, first_sequence: i32) -> Vec<Lock> {
    let is_near_the_end = first_sequence > i32::MAX / 2;
    let families: Vec<_> =
        FAMILIES.iter().filter(|family| !(is_near_the_end && family.needs_sequence)).collect();
    let locks = rng.pick(&LOCKS);
    (0..locks)
        .map(|number| Lock { number, family: families[rng.index(families.len())], padding: 0 })
        .collect()
}

impl Lock {
    /// The number of permits, for a lock in the layout that is shared with Curator's semaphore.
    pub(crate) fn permits(&self) -> Option<u32> {
        self.family.permits
    }

    /// How long one grant lets the next contender wait by itself, in milliseconds.
    pub(crate) fn time_per_grant(&self) -> u64 {
        self.family.adapters.iter().map(|adapter| adapter.time_per_grant()).max().unwrap_or_default()
    }

    pub(crate) fn path(&self) -> String {
        format!("/locks/{}{}", self.number, "-".repeat(self.padding))
    }

    /// The register that its exclusive holders write.
    pub(crate) fn register(&self) -> String {
        format!("/registers/{}", self.number)
    }

    /// An observer of its holders. `None` if it has none.
    pub(crate) fn observe(&self, target: Target, seen: Seen) -> Option<BoxFuture<'static, ()>> {
        self.family.adapters.first()?.observe(target, seen)
    }

    pub(crate) fn adapter(&self, rng: &mut Rng) -> AnyAdapter {
        self.family.adapters[rng.index(self.family.adapters.len())]
    }
}

/// The locks that the tasks of one process share. All of them keep their nodes, for a time that is left to
/// chance.
pub(crate) fn shared_locks(pool: &ConnectionPool, locks: &[Lock], rng: &mut Rng) -> SharedLocks {
    let shared = |lock: &Lock| {
        let manager = pool.for_path(lock.path());
        let timeout = manager.session_timeout();
        let time = |part: u64| timeout / 100 * u32::try_from(part).expect("a small part");
        let policy = HandOffPolicy::default()
            .max_handoffs(u32::try_from(rng.between(1, 5)).expect("a small number"))
            .max_time(time(rng.between(1, 30)))
            .idle_time(rng.pick(&[Duration::ZERO, time(1), time(10), time(30)]));
        (lock.path(), SharedLock::new(manager, &lock.path(), policy).expect("a path and a policy"))
    };
    locks.iter().map(shared).collect()
}
