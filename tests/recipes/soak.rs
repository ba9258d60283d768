//! The locks of a soak.

use lockkeeper::Missed;

use crate::AnyAdapter;
use crate::election::Candidate;
use crate::handoff::Keeping;
use crate::mutex::Plain;
use crate::reentrant_mutex::Reentrant;
use crate::rw_lock::{Reading, Writing};
use crate::schedule::DoSlot;
use crate::semaphore::{LIMIT, Permits};

/// A lock that all clients of a soak contend for.
#[derive(Clone, Copy, Debug)]
pub struct SoakLock {
    /// Its name. A multi-lock takes some of the locks whose names begin with `multi-`.
    pub name: &'static str,
    /// One of these is drawn for each acquire.
    pub adapters: &'static [AnyAdapter],
    /// The number of permits, where it has permits.
    pub limit: Option<u32>,
    /// Whether an owner may hold it more than once.
    pub nests: bool,
    /// Whether its nodes are also deleted by hand.
    pub touched: bool,
    /// The tasks of each client that take this lock alone. More than one for some locks: neighbours in one process are
    /// a case of their own.
    pub tasks: usize,
}

const fn soak_lock(name: &'static str, adapters: &'static [AnyAdapter], tasks: usize) -> SoakLock {
    SoakLock { name, adapters, limit: None, nests: false, touched: false, tasks }
}

impl SoakLock {
    const fn nests(self) -> Self {
        Self { nests: true, ..self }
    }

    const fn touched(self) -> Self {
        Self { touched: true, ..self }
    }

    const fn limit(self, limit: u32) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

const MUTEX: &[AnyAdapter] = &[&Plain];
/// Now and then without the mutex that the process shares: another contender of the same process.
const KEEPING: &[AnyAdapter] = &[&Keeping, &Keeping, &Keeping, &Keeping, &Plain];
const ELECTION: &[AnyAdapter] = &[&Candidate::Latch];
const REENTRANT: &[AnyAdapter] = &[&Reentrant];
const RW: &[AnyAdapter] = &[&Reading, &Reading, &Reading, &Writing, &Writing];
const SEMAPHORE: &[AnyAdapter] = &[&Permits(Some(1)), &Permits(Some(2))];
/// Whichever slot is due: the two ways differ in what is missed, and share the records.
const SCHEDULE: &[AnyAdapter] = &[&DoSlot(Missed::CatchUp), &DoSlot(Missed::Skip)];

/// Every lock of a soak.
pub static SOAK_LOCKS: &[SoakLock] = &[
    soak_lock("mutex", MUTEX, 2),
    soak_lock("keeping", KEEPING, 3),
    soak_lock("election", ELECTION, 2),
    soak_lock("reentrant", REENTRANT, 1).nests(),
    soak_lock("rw", RW, 2).nests(),
    soak_lock("semaphore", SEMAPHORE, 2).limit(LIMIT),
    soak_lock("schedule", SCHEDULE, 1),
    soak_lock("multi-mutex", MUTEX, 0),
    soak_lock("multi-reentrant", REENTRANT, 0).nests(),
    soak_lock("multi-rw", RW, 0).nests(),
    soak_lock("multi-semaphore", SEMAPHORE, 0).limit(LIMIT),
    soak_lock("touched-mutex", MUTEX, 1).touched(),
    soak_lock("touched-keeping", KEEPING, 2).touched(),
    soak_lock("touched-election", ELECTION, 1).touched(),
    soak_lock("touched-rw", RW, 1).nests().touched(),
];
