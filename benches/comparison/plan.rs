//! The runs, and the aims.

use crate::options::Options;
use crate::peers::Peer;
use crate::servers::Kind;

/// One load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its name on the page.
    pub(crate) name: &'static str,
    scenario: &'static str,
    keys: &'static str,
    /// More of them, for us alone.
    ours: &'static str,
    length: Length,
    /// Workers and sessions of the bare writes that it is measured against.
    pub(crate) bare: (usize, usize),
    /// How often as many operations as Curator.
    pub(crate) target: f64,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    /// For a time.
    Timed,
    /// This number of cycles.
    Counted,
    /// To its end.
    Whole,
}

const fn row(
    name: &'static str,
    scenario: &'static str,
    keys: &'static str,
    length: Length,
    bare: (usize, usize),
    target: f64,
) -> Row {
    Row { name, scenario, keys, ours: "", length, bare, target }
}

pub(crate) const UNCONTENDED: &str = "uncontended, release awaited";
pub(crate) const DROPPED: &str = "uncontended, guard dropped";
/// Between sessions, as between processes, with some work under the lock.
pub(crate) const HELD: &str = "handoff w=10 s=10, held for 3 ms";
/// For how long that is, in microseconds.
pub(crate) const HELD_US: f64 = 3000.0;
/// The same of an election.
pub(crate) const LED: &str = "elect w=10 s=10, leading for 3 ms";
pub(crate) const KEPT: &str = "handoff w=100 s=1, node kept";

use self::Length::{Counted, Timed, Whole};

/// All rows of the page.
pub(crate) const ROWS: &[Row] = &[
    row(UNCONTENDED, "uncontended", "release=await", Counted, (1, 1), 1.4),
    row(DROPPED, "uncontended", "release=drop", Counted, (1, 1), 2.0),
    row("handoff w=2 s=1", "handoff", "w=2 s=1 hold=0", Timed, (2, 1), 2.0),
    row("handoff w=10 s=1", "handoff", "w=10 s=1 hold=0", Timed, (10, 1), 4.0),
    row("handoff w=100 s=1", "handoff", "w=100 s=1 hold=0", Timed, (100, 1), 6.0),
    row("handoff w=2 s=2", "handoff", "w=2 s=2 hold=0", Timed, (2, 2), 1.6),
    row("handoff w=10 s=10", "handoff", "w=10 s=10 hold=0", Timed, (10, 10), 1.4),
    row("handoff w=100 s=100", "handoff", "w=100 s=100 hold=0", Timed, (100, 100), 1.4),
    row(HELD, "handoff", "w=10 s=10 hold=3", Timed, (10, 10), 1.0),
    Row { ours: "keep=1", ..row(KEPT, "handoff", "w=100 s=1 hold=0", Timed, (100, 1), 50.0) },
    // Curator takes a latch for each term: it cannot resign without closing it.
    row("elect w=2 s=2", "elect", "w=2 s=2 hold=0", Timed, (2, 2), 1.0),
    row("elect w=10 s=10", "elect", "w=10 s=10 hold=0", Timed, (10, 10), 1.0),
    row("elect w=1000 s=10", "elect", "w=1000 s=10 hold=0", Timed, (100, 10), 1.0),
    row(LED, "elect", "w=10 s=10 hold=3", Timed, (10, 10), 1.0),
    row("rw 90 % reads w=10 s=10", "rw", "w=10 s=10 readpct=90", Timed, (10, 10), 2.5),
    row("rw 90 % reads w=10 s=1", "rw", "w=10 s=1 readpct=90", Timed, (10, 1), 2.5),
    row("semaphore 10 of w=32 s=32", "semaphore", "w=32 s=32 leases=10", Timed, (32, 32), 2.5),
    row("semaphore 10 of w=32 s=1", "semaphore", "w=32 s=1 leases=10", Timed, (32, 1), 2.5),
    row("additions w=1 s=1", "count", "w=1 s=1", Timed, (1, 1), 1.5),
    row("additions w=10 s=1", "count", "w=10 s=1", Timed, (10, 1), 1.5),
    row("additions w=100 s=1", "count", "w=100 s=1", Timed, (100, 1), 1.5),
    row("additions w=10 s=10", "count", "w=10 s=10", Timed, (10, 10), 1.5),
    row("additions w=100 s=10", "count", "w=100 s=10", Timed, (100, 10), 1.5),
    row("multi of 5", "multi", "k=5", Counted, (1, 1), 5.0),
    row("many w=100 k=100 s=1", "many", "w=100 k=100 s=1", Timed, (100, 1), 1.6),
    Row { ours: "pool=8", ..row("many w=100 k=100 s=8", "many", "w=100 k=100 s=8", Timed, (100, 8), 4.0) },
    // The ratio is that of the delays; the first load and its memory are in the lines of the runs.
    row("view of 10,000 nodes, changes", "view", "k=10000", Counted, (1, 1), 1.0),
    row("view of 100,000 nodes, changes", "view", "k=100000", Counted, (1, 1), 1.0),
    row("join and leave w=10 s=2, 1,000 members", "members", "w=10 s=2 k=1000", Timed, (10, 2), 1.0),
    // The same; the lookups in a second are in the lines of the runs.
    row("service of 100 instances, changes", "lookup", "k=100 w=4", Counted, (1, 1), 1.0),
    row("herd w=1000 s=1", "herd", "w=1000 s=1", Whole, (100, 1), 5.0),
    row("herd w=1000 s=10", "herd", "w=1000 s=10", Whole, (100, 10), 1.5),
];

/// Leaders that are killed. The aim is not a rate: the slowest one, of the session timeout and a tick.
pub(crate) const FAILOVERS: &[Row] =
    &[row("failover, session of 4 s", "failover", "n=5 timeout=4 tick=2000", Whole, (1, 1), 1.0)];

/// Registrations that come back after the end of their session, beside Curator's. The aim is the time of
/// that, and not a rate.
pub(crate) const EXPIRIES: &[Row] = &[
    row("registration after session loss, 1 node", "expire", "k=1 n=5 timeout=4", Whole, (1, 1), 1.0),
    row("registration after session loss, 1,000 nodes", "expire", "k=1000 n=5 timeout=4", Whole, (1, 1), 1.0),
];

/// A member that joins a partition and leaves it, beside kazoo's, which waits for 30 s at each change: so it
/// changes once. The aim is the time of that.
pub(crate) const REBALANCES: &[Row] = &[Row {
    ours: "n=10 warmn=1",
    ..row("rebalance of 64 items", "rebalance", "w=4 s=4 k=64 n=1 warmn=0", Whole, (1, 1), 1.0)
}];

/// The rows that a network is measured with.
const FAR: &[&str] = &[
    UNCONTENDED,
    DROPPED,
    "handoff w=10 s=10",
    HELD,
    "rw 90 % reads w=10 s=10",
    "semaphore 10 of w=32 s=32",
    "multi of 5",
    "admissions w=100 s=4",
];

/// Starts of a rate limiter, beside limiters that promise less. Each aim is a rate.
pub(crate) const LIMITS: &[Row] = &[
    Row {
        ours: "try=1",
        ..row("admissions w=100 s=1", "admit", "w=100 s=1 limit=10000000", Timed, (100, 1), 20_000.0)
    },
    row("admissions w=100 s=4", "admit", "w=100 s=4 limit=10000000", Timed, (100, 4), 10_000.0),
    Row {
        ours: "objects=1",
        ..row(EACH, "admit", "w=100 s=1 limit=10000000 window=1000", Timed, (100, 1), 20_000.0)
    },
    Row {
        ours: "ahead=5000 grace=100",
        ..row(AHEAD, "admit", "w=100 s=1 limit=50000", Timed, (100, 1), 20_000.0)
    },
    row("admissions w=32 s=1, 200 a second", "admit", "w=32 s=1 limit=200", Timed, (10, 1), 0.0),
    row("admissions w=32 s=16, 200 a second", "admit", "w=32 s=16 limit=200", Timed, (10, 10), 0.0),
];

/// Items of a work queue, beside Curator's `DistributedQueue` with its locks, and kazoo's `LockingQueue`. The
/// aim is how often as many items as Curator.
pub(crate) const QUEUES: &[Row] = &[
    row("queue p=1 w=1 s=1", "queue", "p=1 w=1 s=1 batch=1 waiting=0", Timed, (1, 1), ITEMS),
    row("queue p=10 w=10 s=1", "queue", "p=10 w=10 s=1 batch=1 waiting=0", Timed, (10, 1), ITEMS),
    row("queue p=10 w=10 s=10", "queue", "p=10 w=10 s=10 batch=1 waiting=0", Timed, (10, 10), ITEMS),
    row(BATCHES, "queue", "p=10 w=10 s=10 batch=10 waiting=0", Timed, (10, 10), ITEMS),
    row("queue p=1 w=1 s=1, many waiting", "queue", LONG_ALONE, Timed, (1, 1), ITEMS),
    row("queue p=10 w=10 s=10, many waiting", "queue", LONG, Timed, (10, 10), ITEMS),
];

/// How often as many items as Curator.
const ITEMS: f64 = 5.0;

/// Puts of ten items each.
pub(crate) const BATCHES: &str = "queue p=10 w=10 s=10, batches of 10";

/// As many items wait as the queue has room for, without those that the load adds.
const LONG_ALONE: &str = "p=1 w=1 s=1 batch=1 waiting=30000";
const LONG: &str = "p=10 w=10 s=10 batch=1 waiting=30000";

/// Starts that are taken before they are asked for.
pub(crate) const AHEAD: &str = "admissions w=100 s=1, ahead";

/// Each task has an object of its own.
const EACH: &str = "admissions w=100 s=1, 100 objects";

/// Permits and readers that stay in the process. Each aim is a rate.
pub(crate) const KEPT_NODES: &[Row] = &[
    Row {
        ours: "keep=1",
        ..row("semaphore 10 of w=32 s=1, kept", "semaphore", "w=32 s=1 leases=10", Timed, (32, 1), 100_000.0)
    },
    Row {
        ours: "keep=1",
        ..row("readers w=32 s=1, kept", "rw", "w=32 s=1 readpct=100", Timed, (32, 1), 100_000.0)
    },
    Row {
        ours: "keep=1",
        ..row(
            "semaphore 1,000 of w=100 s=4, kept",
            "semaphore",
            "w=100 s=4 leases=1000",
            Timed,
            (100, 4),
            10_000.0,
        )
    },
];

/// Limiters of many keys: what they leave. Ours alone.
pub(crate) const KEYED: &[Row] =
    &[row("100,000 keys", "keyed", "k=100000 w=100 limit=10 window=10000", Whole, (100, 1), 0.0)];

/// The rows of all tables.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    [ROWS, LIMITS, QUEUES, KEPT_NODES, KEYED, FAILOVERS, EXPIRIES, REBALANCES].into_iter().flatten()
}

/// The memory of a waiting task and of a held lock: ours alone, once.
pub(crate) const MEMORY: &[(&str, &str)] = &[
    ("10,000 waiters on one path", "herd w=10000 s=1"),
    ("10,000 locks of one session", "keep k=10000 s=1"),
];

impl Row {
    pub(crate) fn scenario(&self) -> &'static str {
        self.scenario
    }

    /// Whether `peer` can do this.
    pub(crate) fn is_for(&self, peer: Peer) -> bool {
        match self.scenario {
            "multi" | "count" | "view" | "elect" | "failover" | "expire" | "members" | "lookup" => {
                peer == Peer::Lockkeeper || peer == Peer::Curator
            }
            "rebalance" => peer == Peer::Lockkeeper || peer == Peer::Kazoo,
            "keyed" => peer == Peer::Lockkeeper,
            "admit" if peer == Peer::Governor => self.keys.contains("s=1 "),
            "admit" => peer == Peer::Lockkeeper || peer == Peer::Redis,
            _ => !matches!(peer, Peer::Governor | Peer::Redis),
        }
    }

    /// Whether the load is measured on these servers. On those that are far: what waits for a round trip.
    pub(crate) fn is_on(&self, kind: Kind) -> bool {
        kind != Kind::Far || FAR.contains(&self.name)
    }

    /// The words behind the connect string.
    pub(crate) fn words(&self, peer: Peer, kind: Kind, options: &Options) -> String {
        let length = match self.length {
            Whole => String::new(),
            Timed if options.quick => "t=1 warm=1".to_owned(),
            // Java compiles its code while it runs, which takes long on two cores.
            Timed if peer == Peer::Curator => "t=2 warm=12".to_owned(),
            Timed => "t=2 warm=3".to_owned(),
            Counted if options.quick => "n=200 warmn=200".to_owned(),
            // A cycle takes some ten milliseconds.
            Counted if kind == Kind::Far => "n=300 warmn=50".to_owned(),
            Counted if kind == Kind::Tmpfs => "n=3000 warmn=3000".to_owned(),
            Counted => "n=1500 warmn=1500".to_owned(),
        };
        let own = match peer {
            Peer::Lockkeeper => self.ours,
            Peer::Governor => "by=governor",
            Peer::Redis => return format!("gcra {} {} {length}", self.scenario, self.keys),
            Peer::Curator | Peer::Kazoo => "",
        };
        format!("{} timeout=30 {} {own} {length}", self.scenario, self.keys)
    }
}

/// The bare writes of `workers` workers over `sessions` sessions.
pub(crate) fn bare(workers: usize, sessions: usize, options: &Options) -> String {
    let seconds = if options.quick { 1 } else { 2 };
    format!("bare w={workers} s={sessions} t={seconds} warm=1 timeout=30")
}

/// Their names in the results.
pub(crate) fn bare_name((workers, sessions): (usize, usize)) -> String {
    format!("bare w={workers} s={sessions}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        let mut names: Vec<_> = all().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
    }

    #[test]
    fn the_loads_of_a_network_are_loads() {
        assert_eq!(all().filter(|row| row.is_on(Kind::Far)).count(), FAR.len());
    }

    #[test]
    fn a_pool_is_for_us_alone() {
        let options = Options::parse([]).unwrap();
        let pools = |peer| {
            let words = ROWS.iter().map(|row| row.words(peer, Kind::Tmpfs, &options));
            words.filter(|words| words.contains("pool=")).count()
        };
        assert_eq!(Peer::ALL.map(pools), [1, 0, 0, 0, 0]);
    }

    #[test]
    fn a_peer_does_the_loads_of_the_recipes_that_it_has() {
        let count = |rows: &[Row], peer| rows.iter().filter(|row| row.is_for(peer)).count();
        assert_eq!(Peer::ALL.map(|peer| count(EXPIRIES, peer)), [2, 2, 0, 0, 0]);
        assert_eq!(Peer::ALL.map(|peer| count(REBALANCES, peer)), [1, 0, 1, 0, 0]);
        assert_eq!(Peer::ALL.map(|peer| count(LIMITS, peer)), [6, 0, 0, 4, 6]);
        assert_eq!(Peer::ALL.map(|peer| count(FAILOVERS, peer)), [1, 1, 0, 0, 0]);
        assert_eq!(Peer::ALL.map(|peer| count(QUEUES, peer)), [6, 6, 6, 0, 0]);
    }

    #[test]
    fn every_row_says_all_that_its_peers_need() {
        let options = Options::parse([]).unwrap();
        for row in all() {
            let words = row.words(Peer::Lockkeeper, Kind::Tmpfs, &options);
            let timed = words.contains(" t=") && words.contains(" warm=");
            let counted = words.contains(" n=") && words.contains(" warmn=");
            assert!(timed || counted || matches!(row.length, Whole), "{words}");
        }
    }
}
