use thiserror::Error as ThisError;

use super::{Error, Lost, Outcome, Refusal};
use crate::znode::whole_path::WholePath;

/// Why a transaction was not committed, or may not have been.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum TxnError {
    /// The hold is lost. Nothing was written.
    #[error("nothing was written: {0}")]
    Lost(Lost),
    /// The server refused one write. Nothing was written.
    #[error("nothing was written: write {index} of {path} was refused: {refusal}")]
    Refused {
        /// The index of the write, from 0.
        index: usize,
        /// The path of the write.
        path: WholePath,
        /// The answer of the server.
        refusal: Refusal,
    },
    /// The request failed as a whole. [`TxnError::outcome`] tells whether the transaction may be committed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl TxnError {
    /// Whether the hold was lost, and nothing written.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// Whether the same transaction may be committed again, and can succeed then; after a loss, under a new
    /// hold. Never after an [unknown outcome](Self::outcome_unknown): both might be applied.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Lost(_) => true,
            Self::Refused { refusal, .. } => refusal.is_transient(),
            Self::Failed(error) => error.is_transient(),
        }
    }

    /// Whether the transaction may be committed in spite of this error.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome() == Outcome::Unknown
    }

    /// The outcome of the transaction, as far as it is known: [`NotApplied`](Outcome::NotApplied) or
    /// [`Unknown`](Outcome::Unknown).
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Lost(_) | Self::Refused { .. } => Outcome::NotApplied,
            Self::Failed(error) => error.outcome(),
        }
    }
}
