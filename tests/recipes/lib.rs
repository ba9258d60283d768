//! The recipes as the test rings see them: one file for each recipe, with its [adapters](Adapter) and its grants.
//!
//! A ring takes a lock through an adapter, and judges the grant by its [claims](Claim). A new recipe is a file here,
//! and a row in [`for_each_lock!`], in [`FAMILIES`] and in [`SOAK_LOCKS`].

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod adapter;
mod additions;
pub mod election;
mod grant;
pub mod handoff;
pub mod multi_lock;
pub mod mutex;
pub mod partition;
pub mod rate_limiter;
pub mod reentrant_mutex;
pub mod rw_lock;
pub mod schedule;
pub mod semaphore;
mod soak;
mod target;

use std::fmt::{self, Debug, Formatter};

pub use self::adapter::{AcquireMode, Adapter, AnyAdapter, Seen, Taking};
pub use self::additions::{Addition, AdditionEnd, judge_additions};
pub use self::grant::{Claim, DueSlot, Grant, Granted, Share, Starts};
pub use self::handoff::SharedMutexes;
pub use self::soak::{SOAK_LOCKS, SoakLock};
pub use self::target::Target;

/// Every lock, one row each: passes `name: adapter` to the macro `$callback`.
#[macro_export]
macro_rules! for_each_lock {
    ($callback:ident) => {
        $callback! {
            mutex: &$crate::mutex::Plain,
            mutex_that_keeps_its_node: &$crate::handoff::Keeping,
            reentrant_mutex: &$crate::reentrant_mutex::Reentrant,
            reader: &$crate::rw_lock::Reading,
            writer: &$crate::rw_lock::Writing,
            semaphore: &$crate::semaphore::Permits::DRAWN,
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

/// The families that the simulation draws from. A plan draws by index: a new row changes the plans of all seeds.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "mutex",
        needs_sequence: false,
        adapters: &[
            &mutex::Plain,
            &mutex::Plain,
            &handoff::Keeping,
            &handoff::Keeping,
            &reentrant_mutex::Reentrant,
            &election::Candidate::Selector,
        ],
        permits: None,
    },
    Family {
        name: "election",
        needs_sequence: false,
        adapters: &[&election::Candidate::Latch],
        permits: None,
    },
    Family {
        name: "rw",
        needs_sequence: true,
        adapters: &[
            &rw_lock::Reading,
            &rw_lock::Reading,
            &rw_lock::Writing,
            &rw_lock::Writing,
            &rw_lock::Downgrading,
            &rw_lock::ReadingUnderWrite,
            &rw_lock::Upgrading,
        ],
        permits: None,
    },
    Family {
        name: "semaphore",
        needs_sequence: false,
        adapters: &[&semaphore::Permits(Some(1)), &semaphore::Permits::DRAWN],
        permits: Some(semaphore::LIMIT),
    },
    Family {
        name: "several in order",
        needs_sequence: false,
        adapters: &[
            &multi_lock::Together::InOrder,
            &multi_lock::Together::InOrder,
            &multi_lock::OneByOne,
            &multi_lock::OneMember,
        ],
        permits: None,
    },
    Family {
        name: "several at once",
        needs_sequence: false,
        adapters: &[&multi_lock::Together::AtOnce, &multi_lock::Together::AtOnce, &multi_lock::OneMember],
        permits: None,
    },
    Family {
        name: "starts",
        needs_sequence: false,
        adapters: &[&rate_limiter::Admit::ONE, &rate_limiter::Admit::DRAWN],
        permits: None,
    },
    Family {
        name: "schedule",
        needs_sequence: false,
        adapters: &[
            &schedule::DoSlot(lockkeeper::Missed::CatchUp),
            &schedule::DoSlot(lockkeeper::Missed::Skip),
        ],
        permits: None,
    },
    Family {
        name: "mutex in semaphore layout",
        needs_sequence: false,
        adapters: &[&semaphore::InSemaphoreLayout],
        permits: Some(1),
    },
];
