use thiserror::Error;

use super::bounds::Exceeded;
use crate::error::recipe::RecipeError;
use crate::znode::whole_path::WholePath;

/// Why a view is not complete, and may not become so by itself.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The tree exceeds a bound of the view.
    #[error("{path} has {exceeded}; raise the bound, or follow a smaller tree")]
    TooLarge {
        /// The path of the root of the view.
        path: WholePath,
        /// The bound.
        exceeded: Exceeded,
    },
}

impl RecipeError for ViewError {}
