//! What a task takes next.

use lockkeeper::{ConnectionManager, MultiLock};
use lockkeeper_test_recipes::{AcquireMode, AnyAdapter, Taking, Target, multi_lock};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};

use super::errand::Errand;
use crate::Failure;
use crate::fixture::{self, SoakLock, Work};

/// What is to be taken, and the acquire, which is not polled yet.
pub(super) struct Want {
    pub(super) soak_locks: Vec<&'static SoakLock>,
    pub(super) taking: Taking,
}

impl Errand {
    /// Chooses what `work` takes next.
    pub(super) fn choose(&mut self, work: Work, mode: AcquireMode) -> Result<Want, Failure> {
        let soak_lock = match work {
            Work::Lock(soak_lock) => soak_lock,
            Work::Single => fixture::members().choose(&mut self.rng).ok_or("no members")?,
            Work::Several => return self.choose_several(mode),
            Work::Cells => return Err("a value is not held".into()),
        };
        let target = self.target(soak_lock, None);
        Ok(Want { soak_locks: vec![soak_lock], taking: self.adapter(soak_lock)?.take(target, mode) })
    }

    fn choose_several(&mut self, mode: AcquireMode) -> Result<Want, Failure> {
        let count = self.rng.random_range(2..=fixture::members().count());
        let soak_locks = fixture::members().sample(&mut self.rng, count);
        // One manager for all, which may be another than that of a task that takes one of them alone.
        let first = soak_locks.first().ok_or("no members")?;
        let manager = self.common.pool.for_path(fixture::path_of(first)).clone();
        let mut builder = MultiLock::builder();
        for soak_lock in &soak_locks {
            let target = self.target(soak_lock, Some(&manager));
            let lock = self.adapter(soak_lock)?.as_lock(target)?.ok_or("no lock")?;
            builder = builder.lock(&*lock);
        }
        Ok(Want { soak_locks, taking: multi_lock::take(builder.build(), mode) })
    }

    fn adapter(&mut self, soak_lock: &'static SoakLock) -> Result<AnyAdapter, Failure> {
        Ok(*soak_lock.adapters.choose(&mut self.rng).ok_or("no adapter")?)
    }

    pub(super) fn target(
        &mut self,
        soak_lock: &'static SoakLock,
        manager: Option<&ConnectionManager>,
    ) -> Target {
        let path = fixture::path_of(soak_lock);
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let manager = manager.unwrap_or_else(|| self.common.pool.for_path(&path));
        let mut target = Target::new(manager, &path).with_draws(move |count| rng.random_range(0..count));
        target.owner = Some(self.owner.clone());
        target.shared = self.common.shared.clone();
        target
    }
}
