use lockkeeper_core::{RecipeError, WholePath};
use thiserror::Error;

/// Why an entry of a [`Table`](crate::Table) was not read or not written. Nothing was changed.
/// [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The data of the node is no value of this type.
    #[error("the data of {path} is no value of this table ({cause}); remove the entry, or use its codec")]
    Undecodable {
        /// The node of the entry.
        path: WholePath,
        /// What is wrong with the data.
        cause: String,
    },
    /// A newer program wrote the entry.
    #[error(
        "{path} was written with schema {found}, and this program knows schemas up to {known}; update this \
         program"
    )]
    NewerSchema {
        /// The node of the entry.
        path: WholePath,
        /// The schema of the value.
        found: u32,
        /// The newest schema that this table knows.
        known: u32,
    },
    /// The codec has no bytes for the value.
    #[error("the value for {path} cannot be encoded ({cause}); choose a codec that has bytes for it")]
    Unencodable {
        /// The node of the entry.
        path: WholePath,
        /// What is wrong with the value.
        cause: String,
    },
}

impl RecipeError for TableError {}
