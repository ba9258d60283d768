use std::fmt::{self, Display, Formatter};

/// The meaning of an error for its caller: [`LockError::kind`](crate::LockError::kind), and the method `kind`
/// of the errors of each engine.
///
/// # Examples
///
/// ```
/// use lockkeeper_lock::{ErrorKind, LockError};
///
/// fn again(error: &LockError) -> bool {
///     match error.kind() {
///         ErrorKind::Timeout | ErrorKind::Disconnected => true,
///         // A write may be applied: read first.
///         ErrorKind::Unknown | ErrorKind::Lost => false,
///         _ => false,
///     }
/// }
/// # let _ = again;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument or a setting is wrong, or two uses do not fit together. Nothing was changed. Another try
    /// fails in the same way.
    Misuse,
    /// The time limit passed, and the lock was not taken, or the write was not sent. Try again.
    Timeout,
    /// No server was reached, or none answered a read. Try again.
    Disconnected,
    /// The hold was lost. Take the lock again, read, and then decide what is still to be done: a write under
    /// the hold may be applied.
    Lost,
    /// The server refused the request. Nothing was changed.
    Refused,
    /// A write may be applied, or may still be. Read before you repeat it, or repeat it only if it is found
    /// again: see `Txn::once` of `lockkeeper`.
    Unknown,
    /// A release is not confirmed. The work was protected to its end. The manager continues the release, so
    /// there is nothing to repeat.
    Unreleased,
    /// The manager was shut down, or the runtime has ended on which a view or a registration works.
    Closed,
    /// An error of one recipe: see the error of the engine.
    Recipe,
}

impl Display for ErrorKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Misuse => "misuse",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Unknown => "unknown outcome",
            Self::Unreleased => "not yet released",
            Self::Closed => "closed",
            Self::Recipe => "refused by the recipe",
        })
    }
}
