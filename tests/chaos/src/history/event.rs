//! The events that a client records.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::token::Token;

/// One line of a client's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Nanoseconds of the machine's boot clock.
    pub(crate) at: u64,
    /// Index of the task in [`work`](crate::fixture::work).
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
    Permits(u32),
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
    /// So many starts that a rate limiter admitted began.
    Started { attempt: u64, lock: String, starts: u32 },
    /// It is a slot of a schedule, which begins at this time. It is recorded as done if it is released.
    Due { hold: u64, slot: u64 },
    /// A call for the value of a once cell returned this one.
    Value { cell: u64, value: String },
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
    /// The addition of one to the counter of all clients began.
    Adding { attempt: u64 },
    /// It was applied.
    Added { attempt: u64, sum: i64 },
    /// It was not applied.
    NotAdded { attempt: u64 },
    /// A call to put these items into the work queue of all clients began.
    Putting { attempt: u64, items: Vec<String> },
    /// They were put, by this call or by an earlier one with the same id.
    Put { attempt: u64 },
    /// This call put nothing.
    NotPut { attempt: u64 },
    /// The item of this hold has this node.
    Taken { hold: u64, path: String },
    /// The item of this hold was ended, and its effect committed.
    Done { hold: u64 },
    /// Nothing was committed.
    NotDone { hold: u64 },
    /// The item of this hold has failed for good.
    MovedToFailed { hold: u64 },
    /// The addition of one to an entry of the table of all clients began.
    Updating { attempt: u64, entry: String },
    /// It was applied.
    Updated { attempt: u64, sum: i64 },
    /// It was not applied.
    NotUpdated { attempt: u64 },
    /// A view showed a change: the register has this version.
    Shown { register: String, version: i32 },
    /// The view was synced, which was asked for at `asked`, and shows these versions.
    Synced { asked: u64, registers: BTreeMap<String, i32> },
    /// An attempt to enter the double barrier began.
    Entering { attempt: u64 },
    /// The client was let in.
    Entered { attempt: u64 },
    /// The client has left, and so have all members of its round.
    Left { attempt: u64 },
    /// By its registration of this name, the process has the node that this transaction created.
    Registered { name: String, czxid: i64 },
    /// A view of the group shows these members and their payloads.
    Sees { members: BTreeMap<String, String> },
    /// A client of the service knows these instances and their addresses, which are the processes.
    Finds { instances: BTreeMap<String, String> },
    /// Everything was released and dropped; the session stays.
    Quiet,
}
