//! Sessions and their ephemeral nodes (`dump`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::{Role, role, session_id, word};
use crate::error::HarnessError;
use crate::timing::{Timing, eventually};
use crate::wire::RawClient;

/// The sessions that a server knows, and the nodes that go with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dump {
    /// Every session. A follower knows only those of its own clients.
    pub sessions: BTreeSet<i64>,
    /// The ephemeral nodes of each session that has some.
    pub ephemerals: BTreeMap<i64, BTreeSet<String>>,
}

/// The sessions that the server at `address` knows now. The leader knows all sessions, but may be behind a
/// follower that has answered already: [`Ensemble::dump`](crate::Ensemble::dump) waits for it.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a report of another shape.
pub async fn dump(address: SocketAddr) -> Result<Dump, HarnessError> {
    parse(&word(address, "dump").await?)
}

/// Waits until the leader among `servers` has forgotten `session`. Its ephemeral nodes are deleted before
/// that.
///
/// # Errors
///
/// [`HarnessError::Timeout`] if it lives on, or no leader could be asked.
pub async fn session_gone(servers: &[SocketAddr], session: i64) -> Result<(), HarnessError> {
    let what = format!("the servers forget session {session:#x}");
    eventually(what, Timing::event(), async || {
        let leader = leader(servers).await?;
        forgotten(leader, session).await.ok()?.then_some(())
    })
    .await
}

/// Whether `leader` has forgotten `session`, rather than not heard of it yet.
pub(crate) async fn forgotten(leader: SocketAddr, session: i64) -> Result<bool, HarnessError> {
    // The first report is cheap, and the second one is after all answers of any server.
    Ok(!dump(leader).await?.sessions.contains(&session)
        && !settled_dump(leader).await?.sessions.contains(&session))
}

/// The sessions that `leader` knows after it has applied all transactions that any server has answered.
///
/// A leader may apply a transaction later than a follower that has answered it already. A session made at the
/// leader is a write behind all these.
pub(crate) async fn settled_dump(leader: SocketAddr) -> Result<Dump, HarnessError> {
    RawClient::connect(leader).await?.close().await?;
    let first = dump(leader).await?;
    let mut second = dump(leader).await?;
    // A session that is touched moves from one set of the leader's to another, and a report that is written
    // meanwhile may miss it.
    second.sessions.extend(first.sessions);
    Ok(second)
}

/// The one among `servers` that leads or is standalone.
pub(crate) async fn leader(servers: &[SocketAddr]) -> Option<SocketAddr> {
    for &server in servers {
        if matches!(role(server).await, Ok(Role::Leader | Role::Standalone)) {
            return Some(server);
        }
    }
    None
}

fn parse(report: &str) -> Result<Dump, HarnessError> {
    enum Part {
        Other,
        Sessions,
        Ephemerals,
    }

    let mut dump = Dump::default();
    let mut part = Part::Other;
    let mut owner = None;
    for line in report.lines() {
        let entry = line.trim();
        match part {
            _ if entry.starts_with("SessionTracker dump") => part = Part::Sessions,
            _ if entry.starts_with("ephemeral nodes dump") => part = Part::Ephemerals,
            _ if entry.starts_with("Connections dump") => part = Part::Other,
            // `0x…`, on a follower with the timeout behind it; the other lines are headings.
            Part::Sessions if entry.starts_with("0x") => {
                let session = entry.split_whitespace().next().unwrap_or(entry);
                dump.sessions.insert(session_id(session)?);
            }
            Part::Ephemerals if entry.starts_with("0x") => {
                owner = Some(session_id(entry.trim_end_matches(':'))?)
            }
            Part::Ephemerals if entry.starts_with('/') => {
                let owner =
                    owner.ok_or_else(|| HarnessError::malformed("an ephemeral node without a session"))?;
                dump.ephemerals.entry(owner).or_default().insert(entry.to_owned());
            }
            _ => {}
        }
    }
    Ok(dump)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_yields_its_sessions_and_their_nodes() {
        let report = "SessionTracker dump:\nGlobal Session Sets (2)/(2):\n0 expire at Sat:\n\
                      2 expire at Sun:\n\t0x100a\n\t0xffffffffffffffff\nephemeral nodes dump:\n\
                      Sessions with Ephemerals (1):\n0x100a:\n\t/a/b\n\t/a/c d\n\
                      Connections dump:\nConnections Sets (1)/(1):\n\tip: /127.0.0.1 sessionId: 0x7\n";
        let dump = parse(report).unwrap_or_default();
        assert_eq!(dump.sessions, BTreeSet::from([0x100a, -1]));
        let nodes = BTreeSet::from(["/a/b".to_owned(), "/a/c d".to_owned()]);
        assert_eq!(dump.ephemerals, BTreeMap::from([(0x100a, nodes)]));
    }
}
