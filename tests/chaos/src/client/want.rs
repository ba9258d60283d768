//! What a task takes next.

use lockkeeper::{ConnectionManager, MultiLock};
use lockkeeper_test_recipes::{AcquireMode, AnyAdapter, Taking, Target, multi_lock};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, IteratorRandom};
use rand::{RngExt, SeedableRng};

use super::errand::Errand;
use crate::Failure;
use crate::fixture::{self, Site, Work};

/// What is to be taken, and the acquire, which is not polled yet.
pub(super) struct Want {
    pub(super) sites: Vec<&'static Site>,
    pub(super) taking: Taking,
}

impl Errand {
    /// Chooses what `work` takes next.
    pub(super) fn choose(&mut self, work: Work, mode: AcquireMode) -> Result<Want, Failure> {
        let site = match work {
            Work::Site(site) => site,
            Work::Single => fixture::members().choose(&mut self.rng).ok_or("no members")?,
            Work::Several => return self.choose_several(mode),
            Work::Cells => return Err("a value is not held".into()),
        };
        let target = self.target(site, None);
        Ok(Want { sites: vec![site], taking: self.adapter(site)?.take(target, mode) })
    }

    fn choose_several(&mut self, mode: AcquireMode) -> Result<Want, Failure> {
        let count = self.rng.random_range(2..=fixture::members().count());
        let sites = fixture::members().sample(&mut self.rng, count);
        // One manager for all, which may be another than that of a task that takes one of them alone.
        let first = sites.first().ok_or("no members")?;
        let manager = self.common.pool.for_path(fixture::path_of(first)).clone();
        let mut builder = MultiLock::builder();
        for site in &sites {
            let target = self.target(site, Some(&manager));
            let lock = self.adapter(site)?.as_lock(target)?.ok_or("no lock")?;
            builder = builder.lock(&*lock);
        }
        Ok(Want { sites, taking: multi_lock::take(builder.build(), mode) })
    }

    fn adapter(&mut self, site: &'static Site) -> Result<AnyAdapter, Failure> {
        Ok(*site.adapters.choose(&mut self.rng).ok_or("no adapter")?)
    }

    pub(super) fn target(&mut self, site: &'static Site, manager: Option<&ConnectionManager>) -> Target {
        let path = fixture::path_of(site);
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let manager = manager.unwrap_or_else(|| self.common.pool.for_path(&path));
        let mut target = Target::new(manager, &path).with_draws(move |count| rng.random_range(0..count));
        target.owner = Some(self.owner.clone());
        target.shared = self.common.shared.clone();
        target
    }
}
