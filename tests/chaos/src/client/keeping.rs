//! The mutexes that the tasks of one process share, since they keep their nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::{ConnectionPool, Keep, Mutex};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Failure;
use crate::stage::{Kind, SITES, Site};

/// One for each site of that kind.
#[derive(Debug)]
pub(super) struct Keeping(BTreeMap<&'static str, Mutex>);

impl Keeping {
    /// Each process keeps for a while of its own.
    pub(super) fn of(pool: &ConnectionPool, session: Duration, seed: u64) -> Result<Self, Failure> {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut all = BTreeMap::new();
        for site in SITES.into_iter().filter(|site| site.kind == Kind::Keeping) {
            let linger = if dice.random_bool(0.5) { session / 20 } else { Duration::ZERO };
            let keep = Keep::default()
                .at_most(dice.random_range(1..20))
                .for_at_most(session.mul_f64(dice.random_range(0.02..0.2)))
                .linger(linger);
            let mutex = Mutex::new(pool.for_path(site.path()), site.path())?.keeping(keep)?;
            all.insert(site.name, mutex);
        }
        Ok(Self(all))
    }

    pub(super) fn at(&self, site: Site) -> Result<Mutex, Failure> {
        Ok(self.0.get(site.name).ok_or("nothing is kept there")?.clone())
    }
}
