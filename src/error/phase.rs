use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::panic::Location;

use super::held_here::HeldHere;

/// The wait of an operation at the time when its deadline passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// A connection to the ensemble.
    Connecting,
    /// The server's answer to a request.
    Answer,
    /// The contenders ahead in the queue.
    Queued {
        /// The name of the predecessor's node.
        predecessor: String,
        /// The data of that node, which identifies its contender.
        predecessor_data: String,
        /// How many contenders were ahead when the queue was last read.
        ahead: u32,
        /// The manager's own hold of the lock, if it has one: then the wait may be for itself.
        held_here: Option<Box<HeldHere>>,
    },
    /// The confirmation of the session by the ensemble, after a gap.
    Confirmation,
    /// For what the recipe says. The text completes "gave up after 2 s while", such as
    /// `waiting for 3 permits`.
    Recipe(Cow<'static, str>),
    /// The end of a closure of the caller, which was called at this place and may have written.
    Call(&'static Location<'static>),
}

impl Display for Phase {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("waiting for a connection"),
            Self::Answer => formatter.write_str("waiting for the server's answer"),
            Self::Queued { predecessor, predecessor_data, ahead, held_here } => {
                write!(
                    formatter,
                    "waiting in the queue behind {predecessor} [{predecessor_data}], {ahead} ahead"
                )?;
                held_here.as_ref().map_or(Ok(()), |held| write!(formatter, "; the lock is {held}"))
            }
            Self::Confirmation => formatter.write_str("waiting for the ensemble to confirm the session"),
            Self::Recipe(text) => formatter.write_str(text),
            Self::Call(place) => write!(formatter, "waiting for the call at {place}"),
        }
    }
}
