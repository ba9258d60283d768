//! A session that a proxy has seen.

use std::time::Duration;

/// A session whose handshake a proxy has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayedSession {
    /// Its number.
    pub id: i64,
    /// The secret that proves its ownership.
    pub password: Vec<u8>,
    /// The timeout that the server granted.
    pub timeout: Duration,
    /// Index of the server it was last attached to.
    pub server: usize,
}
