//! The versions of the servers (`srvr`).

use std::net::SocketAddr;

use super::word;
use crate::error::HarnessError;
use crate::version::{Version, parse};

/// The release of the server at `address`.
///
/// # Errors
///
/// As [`word`]; [`HarnessError::Malformed`] for a report of another shape.
pub async fn version(address: SocketAddr) -> Result<Version, HarnessError> {
    let report = word(address, "srvr").await?;
    let named = report.lines().find_map(|line| line.strip_prefix("Zookeeper version: "));
    named.and_then(parse).ok_or_else(|| HarnessError::malformed("the version in `srvr`"))
}
