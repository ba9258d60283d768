//! The faults that struck servers and clients.

use serde::{Deserialize, Serialize};

/// A fault, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Incident {
    /// The kind's name.
    pub(crate) kind: String,
    /// Faults of one lane follow each other.
    pub(crate) lane: Lane,
    /// The target.
    pub(crate) target: String,
    /// Before the first thing was done.
    pub(crate) start: u64,
    /// After it was undone.
    pub(crate) stop: u64,
    /// The promises that it voids.
    pub(crate) voids: Vec<Void>,
    /// Why it could not be done as it was meant.
    pub(crate) failed: Option<String>,
}

/// Which faults follow each other, and which may coincide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Lane {
    Servers,
    Clients,
    Foreign,
}

/// A foreign change that only the promise of the transaction covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Void {
    /// The session of this client was closed by a foreign client, between the incident's start and its stop.
    Session { client: String },
    /// This node was deleted by hand, not before this instant.
    Node { path: String, at: u64 },
}
