//! The mutexes that the tasks of one process share, since they keep their nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use lockkeeper::{ConnectionPool, HandOffPolicy, Mutex};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Failure;
use crate::fixture::{Kind, SITES, Site};

/// One for each site of that kind.
#[derive(Debug)]
pub(super) struct Keeping(BTreeMap<&'static str, Mutex>);

impl Keeping {
    /// Each process keeps for a while of its own.
    pub(super) fn of(pool: &ConnectionPool, session: Duration, seed: u64) -> Result<Self, Failure> {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut all = BTreeMap::new();
        for site in SITES.into_iter().filter(|site| site.kind == Kind::Keeping) {
            let linger = if rng.random_bool(0.5) { session / 20 } else { Duration::ZERO };
            let keep = HandOffPolicy::default()
                .max_handoffs(rng.random_range(1..20))
                .max_time(session.mul_f64(rng.random_range(0.02..0.2)))
                .idle_time(linger);
            let mutex = Mutex::new(pool.for_path(site.path()), site.path())?.with_handoff(keep)?;
            all.insert(site.name, mutex);
        }
        Ok(Self(all))
    }

    pub(super) fn at(&self, site: Site) -> Result<Mutex, Failure> {
        Ok(self.0.get(site.name).ok_or("nothing is kept there")?.clone())
    }
}
