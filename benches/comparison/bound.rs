//! The limit by the bare writes and the protocol.

use crate::plan::{DROPPED, HELD, HELD_US, KEPT, LED, Row, bare_name};
use crate::results::Results;
use crate::servers::Kind;
use crate::statistics::{Spread, ratios};

/// How much of its bound a row reaches, in the rounds that measured both.
pub(crate) fn share(results: &Results, kind: Kind, row: &Row) -> Option<Spread> {
    let rounds = results.by_round();
    ratios(rounds.iter().filter_map(|round| {
        let reached = round.median(kind, row.name, "lockkeeper", "ops_s")?;
        Some((reached, ops_per_second(round, kind, row)?))
    }))
}

/// The operations each second that a row could reach at best.
///
/// Two things bound it: the number of writes that the server accepts from this number of clients and
/// sessions, of any kind; and, where the next holder belongs to another session, that it can learn of its
/// grant only when the delete before it is committed.
fn ops_per_second(results: &Results, kind: Kind, row: &Row) -> Option<f64> {
    let bare = |field: &str, of: (usize, usize)| results.median(kind, &bare_name(of), "bare", field);
    // A cycle is a create and a delete.
    let cycles = bare("ops_s", row.bare)?;
    let across_sessions = row.bare.1 > 1;
    let handoffs = || Some(1e6 / bare("rel_p50_us", (1, 1))?);
    match row.scenario() {
        // Waits for the create, and for nothing else.
        "uncontended" if row.name == DROPPED => Some(1e6 / bare("acq_p50_us", row.bare)?),
        // Asks the servers for nothing.
        "handoff" if row.name == KEPT => None,
        "handoff" | "elect" if [HELD, LED].contains(&row.name) => {
            Some(1e6 / (HELD_US + bare("rel_p50_us", (1, 1))?))
        }
        "handoff" if across_sessions => Some(cycles.min(handoffs()?)),
        // The create, the exchange, and the lease's delete: three writes. Two grants are one exchange apart.
        "semaphore" if across_sessions => Some((cycles * 2.0 / 3.0).min(handoffs()?)),
        "semaphore" => Some(cycles * 2.0 / 3.0),
        // Every contender is queued already: one delete each.
        "herd" if across_sessions => Some((cycles * 2.0).min(handoffs()?)),
        "herd" => Some(cycles * 2.0),
        _ => Some(cycles),
    }
}
