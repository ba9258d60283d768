//! Two looks at the locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lockkeeper_core::Zxid;
use lockkeeper_core::{ConnectionManager, ContenderInfo, Deadline, Error, ZnodePath};

use super::actors::Certainty;
use super::report::{Deadlock, Deadlocks, deadlocks_of};
use crate::inspection::Inspection;
use crate::survey::inspect_each;

/// The deadlocks of the first look that the second look shows again: with the same nodes, which still wait
/// for each other.
///
/// The queues of a look are read one after another, so one look may combine moments that never were one. A
/// node that waits in both looks waited in between, and a holder of both looks held in between. So the nodes
/// of a circle that is in both looks were a circle at the moment between the looks.
pub(super) fn confirmed(first: Vec<Deadlock>, second: &[Deadlock]) -> Vec<Deadlock> {
    let again: Vec<(Certainty, Waits)> =
        second.iter().map(|deadlock| (deadlock.certainty(), waits(deadlock))).collect();
    let is_seen_again = |deadlock: &Deadlock| {
        let mine = waits(deadlock);
        again.iter().any(|(certainty, waits)| {
            // A permit may have changed hands, so one blocker in common is enough.
            let has_common = |(waiter, blockers): (&Zxid, &BTreeSet<Zxid>)| {
                waits.get(waiter).is_some_and(|again| !again.is_disjoint(blockers))
            };
            *certainty == deadlock.certainty() && waits.len() == mine.len() && mine.iter().all(has_common)
        })
    };
    first.into_iter().filter(is_seen_again).collect()
}

/// The blockers of each waiter, by the transactions that created their nodes.
type Waits = BTreeMap<Zxid, BTreeSet<Zxid>>;

fn waits(deadlock: &Deadlock) -> Waits {
    let mut waits = Waits::new();
    for edge in deadlock.edges() {
        let blockers = edge.blockers().iter().map(ContenderInfo::czxid);
        waits.entry(edge.waiter().czxid()).or_default().extend(blockers);
    }
    waits
}

pub(super) async fn look_again(
    manager: &ConnectionManager,
    locks: &[Inspection],
    pause: Duration,
) -> Result<Vec<Deadlock>, Error> {
    let first = deadlocks_of(locks);
    if first.is_empty() {
        return Ok(first);
    }
    if !pause.is_zero() {
        Deadline::after(pause).passed().await;
    }
    let paths: BTreeSet<ZnodePath> = first.iter().flat_map(Deadlock::paths).collect();
    let paths: Vec<ZnodePath> = paths.into_iter().collect();
    let second = inspect_each(manager, &paths).await?;
    Ok(confirmed(first, &deadlocks_of(&second)))
}

impl Deadlocks {
    /// Finds the deadlocks among these locks, which [`Survey::locks`](crate::survey::Survey::locks) or
    /// `inspect()` of recipes read. The locks of a suspected deadlock are read once more, after `pause`.
    /// The deadlock is reported only if the same nodes still wait for each other. Without a suspicion
    /// nothing is sent.
    ///
    /// A `pause` of a second or two leaves out waits that are about to end. The proof needs none.
    ///
    /// # Errors
    ///
    /// As [`LockQueue::inspect`](lockkeeper_core::LockQueue::inspect).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn among(
        manager: &ConnectionManager,
        locks: &[Inspection],
        pause: Duration,
    ) -> Result<Self, Error> {
        let deadlocks = look_again(manager, locks, pause).await?;
        Ok(Self { deadlocks, pause })
    }
}
