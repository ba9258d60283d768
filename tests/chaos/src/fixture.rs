//! What is contended for: the locks of a run, and who takes which.

/// The folder of all locks.
pub(crate) const LOCKS: &str = "/chaos/locks";
/// The folder of the registers that are written by guarded transactions, one for each lock.
pub(crate) const REGISTERS: &str = "/chaos/registers";

/// What kind of lock stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    /// A mutex that keeps its node for the tasks of its process.
    Keeping,
    Reentrant,
    Rw,
    /// With so many permits.
    Semaphore(usize),
}

/// A lock that all clients contend for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether its nodes are also deleted by hand.
    pub(crate) touched: bool,
}

const fn site(name: &'static str, kind: Kind) -> Site {
    Site { name, kind, touched: false }
}

/// Every lock of a run.
pub(crate) const SITES: [Site; 12] = [
    site("mutex", Kind::Mutex),
    site("keeping", Kind::Keeping),
    site("reentrant", Kind::Reentrant),
    site("rw", Kind::Rw),
    site("semaphore", Kind::Semaphore(3)),
    site("multi-mutex", Kind::Mutex),
    site("multi-reentrant", Kind::Reentrant),
    site("multi-rw", Kind::Rw),
    site("multi-semaphore", Kind::Semaphore(2)),
    Site { name: "touched-mutex", kind: Kind::Mutex, touched: true },
    Site { name: "touched-keeping", kind: Kind::Keeping, touched: true },
    Site { name: "touched-rw", kind: Kind::Rw, touched: true },
];

/// The sites that multi-locks are made of.
pub(crate) fn members() -> impl Iterator<Item = Site> {
    SITES.into_iter().filter(|site| site.name.starts_with("multi-"))
}

/// The site of this name.
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

/// What one task of a client does all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Takes the site of this name.
    Site(&'static str),
    /// Takes some members of the multi-lock together.
    Several,
    /// Takes one of them alone.
    Single,
}

/// The tasks of every client. More than one for some locks: neighbours in one process are a case of their own.
pub(crate) const WORK: [Work; 16] = [
    Work::Site("mutex"),
    Work::Site("mutex"),
    Work::Site("keeping"),
    Work::Site("keeping"),
    Work::Site("keeping"),
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
    Work::Site("touched-rw"),
];

impl Work {
    /// Whether this work takes the site at times.
    pub(crate) fn takes(self, site: Site) -> bool {
        match self {
            Self::Site(name) => name == site.name,
            Self::Several | Self::Single => members().any(|member| member.name == site.name),
        }
    }
}
