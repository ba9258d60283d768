//! The locks that each ring runs. A new recipe has its rows here, one for each table.
//!
//! [`for_each_lock!`](crate::for_each_lock) is for the embedded matrix, the cancellation tests and the tests
//! on real servers, [`FAMILIES`] for the simulation, and [`SOAK_LOCKS`] for chaos.

use std::fmt::{self, Debug, Formatter};

use lockkeeper::schedule::Missed;

use crate::AnyAdapter;
use crate::election::Candidate;
use crate::handoff::{Joining, Keeping, KeepingPermits};
use crate::multi_lock::{OneByOne, OneMember, Together};
use crate::mutex::Plain;
use crate::rate_limiter::Admit;
use crate::reentrant_mutex::Reentrant;
use crate::rw_lock::{Downgrading, Reading, ReadingUnderWrite, Upgrading, Writing};
use crate::schedule::DoSlot;
use crate::semaphore::{InSemaphoreLayout, LIMIT, Permits};

/// Every lock, one row each: passes `name: adapter` to the macro `$callback`.
#[macro_export]
macro_rules! for_each_lock {
    ($callback:ident) => {
        $callback! {
            mutex: &$crate::mutex::Plain,
            mutex_that_keeps_its_node: &$crate::handoff::Keeping,
            reentrant_mutex: &$crate::reentrant_mutex::Reentrant,
            reader: &$crate::rw_lock::Reading,
            reader_that_joins: &$crate::handoff::Joining,
            writer: &$crate::rw_lock::Writing,
            semaphore: &$crate::semaphore::Permits::DRAWN,
            semaphore_that_keeps_its_nodes: &$crate::handoff::KeepingPermits,
            semaphore_with_a_shared_limit: &$crate::semaphore::SharedPermits::DRAWN,
            mutex_in_semaphore_layout: &$crate::semaphore::InSemaphoreLayout,
            election: &$crate::election::Candidate::Latch,
            several_in_order: &$crate::multi_lock::Together::InOrder,
            several_at_once: &$crate::multi_lock::Together::AtOnce,
        }
    };
}

macro_rules! locks {
    ($($name:ident: $adapter:expr,)*) => {
        /// The same rows, for rings that name no test for each of them.
        pub static LOCKS: &[(&str, AnyAdapter)] = &[$((stringify!($name), $adapter),)*];
    };
}

for_each_lock!(locks);

/// Adapters that may meet on one path.
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Its acquires fail where the sequence numbers of a directory are used up.
    pub needs_sequence: bool,
    /// One of these is drawn for each acquire. An adapter that is listed twice is twice as likely.
    pub adapters: &'static [AnyAdapter],
    /// The number of permits, for a lock in the layout that is shared with Curator's semaphore.
    pub permits: Option<u32>,
}

impl Debug for Family {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The families that the simulation draws from. A plan draws by index: a new row changes the plans of all
/// seeds.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "mutex",
        needs_sequence: false,
        adapters: &[&Plain, &Plain, &Keeping, &Keeping, &Reentrant, &Candidate::Selector],
        permits: None,
    },
    Family { name: "election", needs_sequence: false, adapters: &[&Candidate::Latch], permits: None },
    Family {
        name: "rw",
        needs_sequence: true,
        adapters: &[
            &Reading,
            &Joining,
            &Joining,
            &Writing,
            &Writing,
            &Downgrading,
            &ReadingUnderWrite,
            &Upgrading,
        ],
        permits: None,
    },
    Family {
        name: "semaphore",
        needs_sequence: false,
        adapters: &[&Permits(Some(1)), &Permits::DRAWN, &KeepingPermits, &KeepingPermits],
        permits: Some(LIMIT),
    },
    Family {
        name: "several in order",
        needs_sequence: false,
        adapters: &[&Together::InOrder, &Together::InOrder, &OneByOne, &OneMember],
        permits: None,
    },
    Family {
        name: "several at once",
        needs_sequence: false,
        adapters: &[&Together::AtOnce, &Together::AtOnce, &OneMember],
        permits: None,
    },
    Family { name: "starts", needs_sequence: false, adapters: &[&Admit::ONE, &Admit::DRAWN], permits: None },
    Family {
        name: "schedule",
        needs_sequence: false,
        adapters: &[&DoSlot(Missed::CatchUp), &DoSlot(Missed::Skip)],
        permits: None,
    },
    Family {
        name: "mutex in semaphore layout",
        needs_sequence: false,
        adapters: &[&InSemaphoreLayout],
        permits: Some(1),
    },
];

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
    /// The tasks of each client that take this lock alone. More than one for some locks: neighbours in one
    /// process are a case of their own.
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
const LENDING: &[AnyAdapter] =
    &[&KeepingPermits, &KeepingPermits, &KeepingPermits, &KeepingPermits, &Permits(Some(1))];
const JOINING: &[AnyAdapter] = &[&Joining, &Joining, &Joining, &Joining, &Reading, &Writing];
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
    soak_lock("lending", LENDING, 3).limit(LIMIT),
    soak_lock("joining", JOINING, 3).nests(),
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
