use lockkeeper_core::{RecipeError, WholePath};
use thiserror::Error;

/// The reason why no id is given out. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdBlocksError {
    /// The counter was set back or deleted, or the servers have lost its data: it gives ids that this process
    /// has owned before. This `IdBlocks` gives none out any more.
    #[error(
        "the counter {path} went back: this process has had ids up to {greatest}, and the next block begins \
         with {first}; set the counter to the greatest id of all processes or above, and start them again"
    )]
    WentBack {
        /// The counter.
        path: WholePath,
        /// The greatest id that this process has owned.
        greatest: i64,
        /// The first id of the block that the counter gave.
        first: i64,
    },
}

impl RecipeError for IdBlocksError {}
