//! The report on a deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime};

use lockkeeper_core::Zxid;
use lockkeeper_core::{ContenderInfo, Kind, WholePath, ZnodePath};

use super::actors::{Certainty, LocksSnapshot};
use super::circles::{Circle, circles};
use super::graph::{At, Blockers};
use crate::inspection::{Inspection, age_text};

/// How many blockers of one wait are printed.
const BLOCKERS_SHOWN: usize = 3;

/// The deadlocks among some locks, each seen twice.
///
/// [`Certainty::Found`] is never a false alarm, as long as an owner does nothing else while it waits: an
/// owner that waits in one task, and releases in another one, ends its deadlock by itself. Not every deadlock
/// is found: only a wait for a named [`Owner`](crate::Owner), or for a [`MultiLock`](crate::MultiLock) that
/// is taken at once, says what its contender holds. Other deadlocks are [`Certainty::Possible`].
///
/// Tickets name no holds, because their owner works while they wait. Nor does a mutex that keeps its node,
/// whose waiters change within the process.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
/// use lockkeeper::inspect::{Deadlocks, Survey};
///
/// let survey = Survey::below(&manager, "/locks").await?;
/// let deadlocks = Deadlocks::among(&manager, survey.locks(), Duration::from_secs(1)).await?;
/// assert!(!deadlocks.is_any_found(), "{deadlocks}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlocks {
    pub(super) deadlocks: Vec<Deadlock>,
    pub(super) pause: Duration,
}

/// Contenders that wait for each other, so that none of them can ever be served.
///
/// # Format
///
/// `{}` prints a report of several lines: each wait with its blockers, the other waiters behind them, when
/// the deadlock ends by itself, and what would have avoided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    certainty: Certainty,
    edges: Vec<WaitEdge>,
    behind: Vec<(ZnodePath, u32)>,
}

/// One wait of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitEdge {
    path: ZnodePath,
    whole: WholePath,
    waiter: ContenderInfo,
    blockers: Vec<ContenderInfo>,
    needs_all: bool,
}

impl Deadlocks {
    /// The deadlocks: the certain ones first.
    #[must_use]
    pub fn all(&self) -> &[Deadlock] {
        &self.deadlocks
    }

    /// The certain deadlocks.
    pub fn found(&self) -> impl Iterator<Item = &Deadlock> {
        self.deadlocks.iter().filter(|deadlock| deadlock.certainty() == Certainty::Found)
    }

    /// Whether there is a certain deadlock.
    #[must_use]
    pub fn is_any_found(&self) -> bool {
        self.found().next().is_some()
    }

    /// The time between the two looks.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.pause
    }
}

impl Display for Deadlocks {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.deadlocks.is_empty() {
            return formatter.write_str("no deadlock");
        }
        for (index, deadlock) in self.deadlocks.iter().enumerate() {
            formatter.write_str(if index == 0 { "" } else { "\n\n" })?;
            write!(formatter, "{deadlock}")?;
        }
        Ok(())
    }
}

/// All deadlocks of a snapshot: the certain ones, and the possible ones that no certain one explains.
pub(super) fn deadlocks_of(locks: &[Inspection]) -> Vec<Deadlock> {
    let mut all = of_certainty(locks, Certainty::Found);
    let explained: BTreeSet<Zxid> =
        all.iter().flat_map(|deadlock| &deadlock.edges).map(|edge| edge.waiter.czxid()).collect();
    let possible = of_certainty(locks, Certainty::Possible);
    let is_new =
        |deadlock: &Deadlock| !deadlock.edges.iter().any(|edge| explained.contains(&edge.waiter.czxid()));
    all.extend(possible.into_iter().filter(is_new));
    all
}

fn of_certainty(locks: &[Inspection], certainty: Certainty) -> Vec<Deadlock> {
    let snapshot = LocksSnapshot::of(locks, certainty);
    let stuck = snapshot.graph.reduce();
    let circles = circles(&snapshot.graph, &stuck);
    circles.into_iter().map(|circle| Deadlock::of(&snapshot, certainty, circle)).collect()
}

impl Deadlock {
    fn of(snapshot: &LocksSnapshot<'_>, certainty: Certainty, circle: Circle) -> Self {
        let edges =
            circle.waits.into_iter().filter_map(|(at, blockers)| WaitEdge::of(snapshot, at, blockers));
        let mut behind: BTreeMap<ZnodePath, u32> = BTreeMap::new();
        for lock in circle.behind.iter().filter_map(|at| snapshot.locks.get(at.0)) {
            *behind.entry(lock.lock.path().clone()).or_default() += 1;
        }
        Self { certainty, edges: edges.collect(), behind: behind.into_iter().collect() }
    }

    /// Whether the deadlock is certain, or only possible.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// The waits of the circle. The blockers of each wait have the next wait, and those of the last wait have
    /// the first one.
    #[must_use]
    pub fn edges(&self) -> &[WaitEdge] {
        &self.edges
    }

    /// For each lock, how many other contenders wait for those of the circle.
    #[must_use]
    pub fn waiting_behind(&self) -> &[(ZnodePath, u32)] {
        &self.behind
    }

    /// When the first of the waiters gives up, and so ends the deadlock: by the time of day of its machine.
    /// `None` if no waiter says that it gives up.
    #[must_use]
    pub fn ends_by(&self) -> Option<SystemTime> {
        self.edges.iter().filter_map(|edge| edge.waiter.identity().until()).min()
    }

    /// The wait that closed the circle: the youngest one.
    #[must_use]
    pub fn closed_by(&self) -> Option<&WaitEdge> {
        self.edges.iter().max_by_key(|edge| edge.waiter.czxid())
    }

    /// Advice: how the deadlock could have been avoided.
    #[must_use]
    pub fn advice(&self) -> String {
        let paths: BTreeSet<&str> = self.edges.iter().map(|edge| edge.whole.as_str()).collect();
        let mut paths = paths.into_iter();
        match (paths.next(), paths.next()) {
            (Some(first), Some(second)) => {
                let all: Vec<&str> = [first, second].into_iter().chain(paths).collect();
                let all = all.join(", ");
                format!("take {all} together as one MultiLock, or always in the order of their paths")
            }
            (Some(one), None) => {
                format!("take everything that is needed of {one} by one call, before anything else")
            }
            (None, _) => String::new(),
        }
    }

    /// The locks whose queues prove the deadlock.
    pub(super) fn paths(&self) -> Vec<ZnodePath> {
        self.edges.iter().map(|edge| edge.path.clone()).collect()
    }
}

impl WaitEdge {
    fn of(snapshot: &LocksSnapshot<'_>, at: At, blockers: Blockers) -> Option<Self> {
        let lock = snapshot.locks.get(at.0)?;
        let waiter = snapshot.info(at)?.clone();
        let (blockers, needs_all): (Vec<ContenderInfo>, bool) = match blockers {
            Blockers::Nodes(nodes) => {
                (nodes.into_iter().filter_map(|at| snapshot.info(at)).cloned().collect(), true)
            }
            Blockers::Leases(leases) => {
                let leases = leases.into_iter().filter_map(|index| lock.leases.get(index).copied());
                (leases.cloned().collect(), false)
            }
        };
        let (path, whole) = (lock.lock.path().clone(), lock.lock.whole_path().clone());
        Some(Self { path, whole, waiter, blockers, needs_all })
    }

    /// The path of the lock, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.path
    }

    /// The path of the lock on the server, for people.
    #[must_use]
    pub fn whole_path(&self) -> &WholePath {
        &self.whole
    }

    /// The contender that waits.
    #[must_use]
    pub fn waiter(&self) -> &ContenderInfo {
        &self.waiter
    }

    /// The contenders that it waits for, in the order of the queue: a holder first.
    #[must_use]
    pub fn blockers(&self) -> &[ContenderInfo] {
        &self.blockers
    }

    /// Whether it waits for all of its blockers. `false` for permits, which any of the blockers can give
    /// back.
    #[must_use]
    pub fn needs_all(&self) -> bool {
        self.needs_all
    }

    /// The purpose of the wait: `to lock`, `to read`, `to write`, `to lead` or `for permits of`.
    #[must_use]
    pub fn wanted(&self) -> &'static str {
        match self.waiter.kind() {
            _ if !self.needs_all => "for permits of",
            Some(Kind::READ) => "to read",
            Some(Kind::WRITE) => "to write",
            Some(Kind::LATCH) => "to lead",
            _ => "to lock",
        }
    }
}

impl Display for Deadlock {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let count = self.edges.len();
        match self.certainty {
            Certainty::Found if count == 1 => {
                write!(formatter, "deadlock: 1 owner waits for itself")?;
            }
            Certainty::Found => write!(formatter, "deadlock: {count} owners wait for each other")?,
            Certainty::Possible => write!(
                formatter,
                "possible deadlock: {count} sessions wait for each other, if each of them is one task"
            )?,
        }
        for edge in &self.edges {
            write!(formatter, "\n  {edge}")?;
        }
        if !self.behind.is_empty() {
            let behind: Vec<String> =
                self.behind.iter().map(|(path, count)| format!("{count} on {path}")).collect();
            write!(formatter, "\n  also waiting for them: {}", behind.join(", "))?;
        }
        match self.ends_by() {
            Some(until) => {
                let until = humantime::format_rfc3339_seconds(until);
                write!(formatter, "\n  ends by itself: at {until}, when the first of the waits gives up")?;
            }
            None => formatter.write_str("\n  ends by itself: never, no wait has a timeout that is known")?,
        }
        write!(formatter, "\n  to avoid it: {}", self.advice())
    }
}

impl Display for WaitEdge {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (who, wanted, path) = (name(&self.waiter), self.wanted(), &self.whole);
        let age = age_text(self.waiter.age());
        write!(formatter, "{who}  waits {wanted} {path}  ({age})  ")?;
        formatter.write_str(if self.needs_all { "behind" } else { "behind any of" })?;
        let mut separator = "  ";
        for blocker in self.blockers.iter().take(BLOCKERS_SHOWN) {
            write!(formatter, "{separator}{}  [{}]", name(blocker), blocker.czxid())?;
            separator = ",  ";
        }
        match self.blockers.len().saturating_sub(BLOCKERS_SHOWN) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// A contender in a few words: its process and its owner, or all that its node says.
fn name(of: &ContenderInfo) -> String {
    let identity = of.identity();
    let note = identity.note().map_or_else(String::new, |note| format!(" {note}"));
    match (identity.host(), identity.pid(), identity.owner()) {
        (Some(host), Some(pid), Some(owner)) => format!("host={host} pid={pid}{note} owner={owner}"),
        (Some(host), Some(pid), None) => format!("host={host} pid={pid}{note} session={:#x}", of.session()),
        _ => format!("session={:#x}", of.session()),
    }
}
