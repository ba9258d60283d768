use lockkeeper_core::{RecipeError, WholePath};
use thiserror::Error;

/// The reason why a shared value was not read. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SharedValueError {
    /// The data of the node is no value of this type. Nothing was changed.
    #[error("the data of {path} is no value of this type ({cause}); set it, or read it by another type")]
    Undecodable {
        /// The value.
        path: WholePath,
        /// What is wrong with the data.
        cause: String,
    },
}

impl RecipeError for SharedValueError {}
