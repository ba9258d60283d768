//! Watches (`wchs`, `wchp`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::{session_id, word};
use crate::error::HarnessError;

/// The sessions that watch each path.
pub type Watches = BTreeMap<String, BTreeSet<i64>>;

/// The watches and their sessions on the server at `address`: a server knows the watches of its own clients
/// only.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a report of another shape.
pub async fn watches(address: SocketAddr) -> Result<Watches, HarnessError> {
    let mut watches = Watches::new();
    let mut path = None;
    for line in word(address, "wchp").await?.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('\t') {
            None => path = Some(line.to_owned()),
            Some(session) => {
                let path = path
                    .clone()
                    .ok_or_else(|| HarnessError::malformed("a watch without a path in `wchp`"))?;
                watches.entry(path).or_default().insert(session_id(session.trim())?);
            }
        }
    }
    Ok(watches)
}

/// How many watches the clients of the server at `address` have.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a report of another shape.
pub async fn watch_count(address: SocketAddr) -> Result<u64, HarnessError> {
    let report = word(address, "wchs").await?;
    report
        .lines()
        .find_map(|line| line.strip_prefix("Total watches:"))
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| HarnessError::malformed("the total in `wchs`"))
}
