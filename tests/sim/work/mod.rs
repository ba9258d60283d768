//! What is taken and held. A new kind of work is a file here that implements [`Kind`] and [`Hold`], and a line in
//! [`FAMILIES`]; the oracle judges it by what its holds [claim](Claim).

mod claim;
mod kept;
mod multi;
mod mutex;
mod rate;
mod reentrant;
mod rw;
mod semaphore;

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use lockkeeper::{BootInstant, ConnectionManager, Error, Owner, ReleaseError, Txn};
use lockkeeper_core::NodeMonitor;

pub(crate) use self::claim::{Claim, Share};
pub(crate) use self::kept::Shared;
use crate::rng::Rng;

/// Kinds of work that may meet on one path, one line for each sort of path. A kind that stands twice is twice as
/// likely.
static FAMILIES: &[Family] = &[
    Family {
        name: "mutex",
        needs_numbers: false,
        kinds: &[&mutex::Plain, &mutex::Plain, &kept::Keeping, &kept::Keeping, &reentrant::Reentrant],
        permits: None,
    },
    Family {
        name: "rw",
        needs_numbers: true,
        kinds: &[&rw::Read, &rw::Read, &rw::Write, &rw::Write, &rw::Downgrade, &rw::Under, &rw::Upgrade],
        permits: None,
    },
    Family {
        name: "semaphore",
        needs_numbers: false,
        kinds: &[&semaphore::One, &semaphore::Many],
        permits: Some(semaphore::LIMIT),
    },
    Family {
        name: "several in order",
        needs_numbers: false,
        kinds: &[&multi::Ordered, &multi::Ordered, &multi::Nested, &multi::Single],
        permits: None,
    },
    Family {
        name: "several at once",
        needs_numbers: false,
        kinds: &[&multi::Atomic, &multi::Atomic, &multi::Single],
        permits: None,
    },
    Family { name: "starts", needs_numbers: false, kinds: &[&rate::One, &rate::Many], permits: None },
    Family {
        name: "mutex in semaphore layout",
        needs_numbers: false,
        kinds: &[&semaphore::InLayout],
        permits: Some(1),
    },
];

/// How many locks a plan has.
const LOCKS: [usize; 3] = [1, 1, 2];

/// A sort of path.
pub(crate) struct Family {
    name: &'static str,
    /// It ends with an error where numbers do.
    needs_numbers: bool,
    kinds: &'static [&'static dyn Kind],
    /// How many permits there are, in the layout that is shared with Curator.
    permits: Option<usize>,
}

impl Debug for Family {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

/// One path that is contended for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    number: usize,
    family: &'static Family,
}

/// Draws what a plan's processes contend for, in directories that count from `first_sequence`.
pub(crate) fn draw(rng: &mut Rng, first_sequence: i32) -> Vec<Lock> {
    let is_near_the_end = first_sequence > i32::MAX / 2;
    let families: Vec<_> =
        FAMILIES.iter().filter(|family| !(is_near_the_end && family.needs_numbers)).collect();
    let locks = rng.pick(&LOCKS);
    (0..locks).map(|number| Lock { number, family: families[rng.index(families.len())] }).collect()
}

impl Lock {
    /// How many permits there are, where it is one of those.
    pub(crate) fn permits(&self) -> Option<usize> {
        self.family.permits
    }

    /// How long one turn may keep the next one waiting by itself, in milliseconds.
    pub(crate) fn time_per_turn(&self) -> u64 {
        self.family.kinds.iter().map(|kind| kind.time_per_turn()).max().unwrap_or_default()
    }

    pub(crate) fn path(&self) -> String {
        format!("/locks/{}", self.number)
    }

    /// What its exclusive holders write into.
    pub(crate) fn register(&self) -> String {
        format!("/registers/{}", self.number)
    }

    pub(crate) fn kind(&self, rng: &mut Rng) -> &'static dyn Kind {
        self.family.kinds[rng.index(self.family.kinds.len())]
    }
}

/// One way of taking a lock.
pub(crate) trait Kind: Sync {
    /// Takes it; `None` when it is not to be had now.
    fn take(&self, site: Site, way: Way) -> BoxFuture<'static, Result<Option<Box<dyn Hold>>, Error>>;

    /// How long one turn keeps the next one waiting by itself, in milliseconds.
    fn time_per_turn(&self) -> u64 {
        0
    }
}

/// Who takes, and where.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) manager: ConnectionManager,
    pub(crate) owner: Owner,
    pub(crate) path: String,
    /// What the tasks of its process share.
    pub(crate) shared: Shared,
    /// For what else is left to chance: how many permits, reading or writing.
    pub(crate) rng: Rng,
}

/// How long to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Wait,
    WaitAtMost(Duration),
    Try,
}

/// So many starts, of at most `limit` in any window.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    pub(crate) path: String,
    pub(crate) count: usize,
    pub(crate) limit: usize,
    /// In milliseconds.
    pub(crate) window: u64,
}

/// Something that is held.
pub(crate) trait Hold: Debug + Send + Sync {
    /// What the holder may believe while the hold is valid; one for each path.
    fn claims(&self) -> Vec<Claim>;

    fn is_valid(&self) -> bool;

    fn valid_until(&self) -> BootInstant;

    fn lost(&self) -> BoxFuture<'_, ()>;

    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), ReleaseError>>;

    /// What is seen of its node by who does not hold it, where that can be had.
    fn monitor(&self) -> Option<NodeMonitor> {
        None
    }

    /// Whether what reads as released may stand, for the next one of its process.
    fn may_stay(&self) -> bool {
        false
    }

    /// What was started by it, where it is no hold at all.
    fn starts(&self) -> Option<Starts> {
        None
    }

    /// Writes under it, where a hold is exclusive.
    fn txn(&self) -> Option<Txn<'_>> {
        None
    }

    /// What else can be done while it is held; what is wrong with what came of it.
    fn meanwhile(&self, site: Site) -> BoxFuture<'_, Result<(), String>> {
        drop(site);
        Box::pin(std::future::ready(Ok(())))
    }
}
