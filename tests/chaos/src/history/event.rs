//! What a client writes down.

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
    /// By so many permits.
    Permits(usize),
}

/// What happened. Attempts and holds are numbered within their process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(crate) enum What {
    /// An attempt began.
    Asked { attempt: u64, locks: Vec<String> },
    /// It ended without a lock, as may be; `why` is empty where nothing was said, as by a try.
    GaveUp { attempt: u64, why: String },
    /// It ended with an error.
    Failed { attempt: u64, error: String, transient: bool },
    /// A lock was granted; of several taken together, one of them.
    Granted { attempt: u64, hold: u64, lock: String, mode: Mode, token: Token, nodes: Vec<String> },
    /// An owner took it once more, within the hold.
    Again { hold: u64, token: Token },
    /// At this instant the guard said that it was valid, and until when it would be.
    Valid { hold: u64, until: u64 },
    /// The guard said that it was not.
    Invalid { hold: u64, why: String },
    /// `lost()` resolved, though the guard says that it is valid; or did not, though it is not.
    Contradiction { hold: u64, text: String },
    /// From here on the client claims nothing: the guard was given back, dropped or turned into another.
    Ended { hold: u64 },
    /// How giving it back ended.
    Released { hold: u64, outcome: String },
    /// A guarded transaction wrote the lock's register, whose version became this.
    Committed { hold: u64, version: i32 },
    /// It wrote nothing, or nobody knows.
    Uncommitted { hold: u64, why: String },
    /// The fenced register has answered. Whether the guard was valid is asked after that.
    Stamped { hold: u64, accepted: bool, valid: bool },
    /// Everything was given back and dropped; the session stays.
    Quiet,
}
