//! The locks of a run, and the work of each task.

use lockkeeper_test_recipes::AnyAdapter;
use lockkeeper_test_recipes::election::Candidate;
use lockkeeper_test_recipes::handoff::Keeping;
use lockkeeper_test_recipes::mutex::Plain;
use lockkeeper_test_recipes::reentrant_mutex::Reentrant;
use lockkeeper_test_recipes::rw_lock::{Reading, Writing};
use lockkeeper_test_recipes::semaphore::{LIMIT, Permits};

/// The folder of all locks.
pub(crate) const LOCKS: &str = "/chaos/locks";
/// The folder of the registers that are written by guarded transactions, one for each lock.
pub(crate) const REGISTERS: &str = "/chaos/registers";

/// A lock that all clients contend for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    /// One of these is drawn for each acquire.
    pub(crate) adapters: &'static [AnyAdapter],
    /// The number of permits, where it has permits.
    pub(crate) limit: Option<usize>,
    /// Whether an owner may hold it more than once.
    pub(crate) nests: bool,
    /// Whether its nodes are also deleted by hand.
    pub(crate) touched: bool,
}

const fn site(name: &'static str, adapters: &'static [AnyAdapter]) -> Site {
    Site { name, adapters, limit: None, nests: false, touched: false }
}

impl Site {
    const fn nests(self) -> Self {
        Self { nests: true, ..self }
    }

    const fn touched(self) -> Self {
        Self { touched: true, ..self }
    }

    const fn limit(self, limit: usize) -> Self {
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

/// Every lock of a run.
pub(crate) const SITES: [Site; 14] = [
    site("mutex", MUTEX),
    site("keeping", KEEPING),
    site("election", ELECTION),
    site("reentrant", REENTRANT).nests(),
    site("rw", RW).nests(),
    site("semaphore", SEMAPHORE).limit(LIMIT),
    site("multi-mutex", MUTEX),
    site("multi-reentrant", REENTRANT).nests(),
    site("multi-rw", RW).nests(),
    site("multi-semaphore", SEMAPHORE).limit(LIMIT),
    site("touched-mutex", MUTEX).touched(),
    site("touched-keeping", KEEPING).touched(),
    site("touched-election", ELECTION).touched(),
    site("touched-rw", RW).nests().touched(),
];

/// The sites that multi-locks are made of.
pub(crate) fn members() -> impl Iterator<Item = Site> {
    SITES.into_iter().filter(|site| site.name.starts_with("multi-"))
}

/// The lock of this name.
pub(crate) fn named(name: &str) -> Option<Site> {
    SITES.into_iter().find(|site| site.name == name)
}

impl Site {
    /// The path of the lock.
    pub(crate) fn path(self) -> String {
        format!("{LOCKS}/{}", self.name)
    }

    /// The register that its holders write.
    pub(crate) fn register(self) -> String {
        format!("{REGISTERS}/{}", self.name)
    }
}

/// The work that one task of a client repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Acquires the lock of this name.
    Site(&'static str),
    /// Takes some members of the multi-lock together.
    Several,
    /// Takes one of them alone.
    Single,
}

/// The tasks of every client. More than one for some locks: neighbours in one process are a case of their own.
pub(crate) const WORK: [Work; 19] = [
    Work::Site("mutex"),
    Work::Site("mutex"),
    Work::Site("keeping"),
    Work::Site("keeping"),
    Work::Site("keeping"),
    Work::Site("election"),
    Work::Site("election"),
    Work::Site("reentrant"),
    Work::Site("rw"),
    Work::Site("rw"),
    Work::Site("semaphore"),
    Work::Site("semaphore"),
    Work::Several,
    Work::Single,
    Work::Site("touched-mutex"),
    Work::Site("touched-keeping"),
    Work::Site("touched-keeping"),
    Work::Site("touched-election"),
    Work::Site("touched-rw"),
];

impl Work {
    /// Whether this work acquires the lock at times.
    pub(crate) fn takes(self, site: Site) -> bool {
        match self {
            Self::Site(name) => name == site.name,
            Self::Several | Self::Single => members().any(|member| member.name == site.name),
        }
    }
}
