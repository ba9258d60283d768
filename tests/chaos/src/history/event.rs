//! The events that a client records.

use serde::{Deserialize, Serialize};

use super::token::Token;

/// One line of a client's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Nanoseconds of the machine's boot clock.
    pub(crate) at: u64,
    /// Index of the task in [`WORK`](crate::fixture::WORK).
    pub(crate) task: usize,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// By one owner.
    Alone,
    /// Beside other readers.
    Reading,
    /// By this number of permits.
    Permits(usize),
}

/// The kind of an event. Attempts and holds are numbered within their process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// An attempt began.
    Asked { attempt: u64, locks: Vec<String> },
    /// It ended without a lock, which is allowed; `why` is empty without a reason, as for a try.
    GaveUp { attempt: u64, why: String },
    /// It ended with an error.
    Failed { attempt: u64, error: String, transient: bool },
    /// A lock was granted, or one member of several locks.
    Granted { attempt: u64, hold: u64, lock: String, mode: Mode, token: Token, nodes: Vec<String> },
    /// An owner acquired the lock once more, within the hold.
    Again { hold: u64, token: Token },
    /// The guard was valid at this instant, and until when it would be.
    Valid { hold: u64, until: u64 },
    /// The guard was invalid.
    Invalid { hold: u64, why: String },
    /// `lost()` resolved, though the guard says that it is valid; or did not, though it is not.
    Contradiction { hold: u64, text: String },
    /// From here on the client claims nothing: the guard was released, dropped or turned into another.
    Ended { hold: u64 },
    /// The result of the release.
    Released { hold: u64, outcome: String },
    /// A guarded transaction wrote the lock's register, which now has this version.
    Committed { hold: u64, version: i32 },
    /// The transaction wrote nothing, or its result is unknown.
    Uncommitted { hold: u64, why: String },
    /// The fenced register has answered. The validity of the guard is checked after that.
    Stamped { hold: u64, accepted: bool, valid: bool },
    /// Everything was released and dropped; the session stays.
    Quiet,
}
