use lockkeeper_core::{Outcome, RecipeError, TxnError};
use thiserror::Error;

/// Why a visitor was not admitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TurnstileError {
    /// As many visitors as the turnstile admits were admitted.
    #[error("{path} has admitted {visits} visitors, and admits no more; delete the node to count anew")]
    Full { path: String, visits: u64 },
    /// The data of the node is not a number.
    #[error("{path} has no number; write one to it, or delete it")]
    NoNumber { path: String },
    /// The visit was not counted, or may not have been.
    #[error("counting the visit failed: {0}")]
    NotCounted(#[from] TxnError),
}

impl RecipeError for TurnstileError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::NotCounted(error) if error.is_transient())
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::NotCounted(error) if error.outcome_unknown() => Outcome::Unknown,
            _ => Outcome::NotApplied,
        }
    }
}
