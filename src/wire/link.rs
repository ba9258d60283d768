use crate::error::LossReason;

/// The connection to the ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Connected.
    Up,
    /// Not connected; the session may still exist.
    Down,
    /// The session is over.
    Ended(LossReason),
}
