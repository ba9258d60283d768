use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What happens to the program when the lock is about to be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OnLoss {
    /// SIGTERM, and SIGKILL at the end.
    Term,
    /// SIGKILL at the end.
    Kill,
    /// Nothing: the program continues without the lock.
    Ignore,
    /// A command of the shell, and SIGKILL at the end.
    Run(String),
}

/// The limits that one run of a program has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(crate) on_loss: OnLoss,
    pub(crate) grace: Duration,
}
