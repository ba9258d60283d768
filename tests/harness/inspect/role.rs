//! The roles of the servers (`srvr`).

use std::net::SocketAddr;

use super::word;
use crate::error::HarnessError;

/// The part a server plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The only server, without peers.
    Standalone,
    /// It orders all writes.
    Leader,
    /// It votes, and serves reads.
    Follower,
}

/// The part that the server at `address` believes to play.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a part unknown here.
pub async fn role(address: SocketAddr) -> Result<Role, HarnessError> {
    let report = word(address, "srvr").await?;
    match report.lines().find_map(|line| line.strip_prefix("Mode: ")) {
        Some("standalone") => Ok(Role::Standalone),
        Some("leader") => Ok(Role::Leader),
        Some("follower") => Ok(Role::Follower),
        _ => Err(HarnessError::malformed("the mode in `srvr`")),
    }
}
