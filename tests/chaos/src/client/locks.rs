//! The locks of one task.

use lockkeeper::{ConnectionManager, Lock, MultiLock, Mutex, Owner, ReentrantMutex, RwLock, Semaphore};
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{Rng, RngExt};

use super::Common;
use crate::Failure;
use crate::fixture::{self, Kind, Site, Work};
use crate::history::Mode;

/// What is to be taken now.
#[derive(Debug)]
pub(super) struct Want {
    /// What is to be taken, and how, by path.
    pub(super) sites: Vec<(Site, Mode)>,
    pub(super) lock: Taken,
}

/// Through which type.
#[derive(Debug)]
pub(super) enum Taken {
    Any(Box<dyn Lock>),
    Read(RwLock),
    Write(RwLock),
    Reentrant(ReentrantMutex, Owner),
}

impl Want {
    /// Chooses what `work` is to take next.
    pub(super) fn choose(
        work: Work,
        common: &Common,
        owner: &Owner,
        rng: &mut StdRng,
    ) -> Result<Self, Failure> {
        match work {
            Work::Site(name) => {
                Self::alone(fixture::named(name).ok_or("a site of no such name")?, common, owner, rng)
            }
            Work::Single => {
                let site = fixture::members().choose(rng).ok_or("no members")?;
                Self::alone(site, common, owner, rng)
            }
            Work::Several => {
                let wanted = rng.random_range(2..=fixture::members().count());
                let mut builder = MultiLock::builder();
                let mut sites = Vec::new();
                let members = fixture::members().sample(rng, wanted);
                // One manager for all, be it another than who takes one of them alone has.
                let manager = members.first().map(|first| common.pool.for_path(first.path()));
                for site in members {
                    let manager = manager.ok_or("no members")?;
                    let (lock, mode) = as_lock(site, common, manager, owner, rng)?;
                    builder = builder.lock(&*lock);
                    sites.push((site, mode));
                }
                Ok(Self { sites, lock: Taken::Any(Box::new(builder.build()?)) })
            }
        }
    }

    fn alone(site: Site, common: &Common, owner: &Owner, rng: &mut StdRng) -> Result<Self, Failure> {
        let manager = common.pool.for_path(site.path());
        let (mode, lock) = match site.kind {
            Kind::Rw => {
                let lock = RwLock::new(manager, site.path())?.for_owner(owner);
                if rng.random_bool(0.6) {
                    (Mode::Reading, Taken::Read(lock))
                } else {
                    (Mode::Alone, Taken::Write(lock))
                }
            }
            Kind::Reentrant => {
                let lock = ReentrantMutex::new(manager, site.path())?;
                (Mode::Alone, Taken::Reentrant(lock, owner.clone()))
            }
            Kind::Mutex | Kind::Keeping | Kind::Semaphore(_) => {
                let (lock, mode) = as_lock(site, common, manager, owner, rng)?;
                (mode, Taken::Any(lock))
            }
        };
        Ok(Self { sites: vec![(site, mode)], lock })
    }
}

fn as_lock(
    site: Site,
    common: &Common,
    manager: &ConnectionManager,
    owner: &Owner,
    rng: &mut impl Rng,
) -> Result<(Box<dyn Lock>, Mode), Failure> {
    let path = site.path();
    Ok(match site.kind {
        // Now and then by itself: another contender of the same process.
        Kind::Keeping if rng.random_bool(0.8) => (Box::new(common.keeping.at(site)?), Mode::Alone),
        Kind::Mutex | Kind::Keeping => (Box::new(Mutex::new(manager, path)?), Mode::Alone),
        Kind::Reentrant => (Box::new(ReentrantMutex::new(manager, path)?.for_owner(owner)), Mode::Alone),
        Kind::Rw if rng.random_bool(0.5) => {
            (Box::new(RwLock::new(manager, path)?.for_owner(owner).reader()), Mode::Reading)
        }
        Kind::Rw => (Box::new(RwLock::new(manager, path)?.for_owner(owner).writer()), Mode::Alone),
        Kind::Semaphore(limit) => {
            let permits = rng.random_range(1..=2);
            (Box::new(Semaphore::new(manager, path, limit)?.permits(permits)), Mode::Permits(permits))
        }
    })
}
