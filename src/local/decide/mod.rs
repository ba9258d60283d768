//! The nodes of one session in one directory, and the grants that need no request.
//!
//! The server gives every sequence number of a directory once, and in order. Between two nodes of this
//! session with consecutive numbers there is no other node.
//!
//! [`LocalQueue`] is a state machine without I/O: its methods take events and return [`Effect`]s. There is
//! one for each session and directory, behind one lock. Requests whose order matters are sent while that lock
//! is held: creates ([`LocalQueue::send_create`]) and the deletes of released nodes
//! ([`LocalQueue::begin_release`]). The server processes the requests of one connection in the order in which
//! they are sent.
//!
//! | file | decides |
//! |---|---|
//! | `local_queue` | which contender waits for which: the state that the others change |
//! | `creates` | what a create is likely to find, and the wait for the numbers of earlier creates |
//! | `by_sequence` | the predecessor of a new node, by its sequence number alone |
//! | `hand_off` | which successors of a released head are granted: the only proof of a hand-off |
//! | `released` | which released heads are remembered, and whether the directory is still the same one |

mod by_sequence;
mod contender_kind;
mod creates;
mod entry;
mod hand_off;
mod in_flight;
mod local_queue;
mod prediction;
mod released;
mod released_head;
#[cfg(test)]
mod tests;

pub(crate) use self::by_sequence::Judgement;
pub(crate) use self::contender_kind::ContenderKind;
pub(crate) use self::entry::{EntryKey, NodeId};
pub(crate) use self::hand_off::ReleaseInFlight;
pub(crate) use self::in_flight::{CreateInFlight, ListInFlight};
pub(crate) use self::local_queue::{Effect, LocalQueue, Wait};
pub(crate) use self::prediction::Prediction;
