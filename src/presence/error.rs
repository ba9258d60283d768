use thiserror::Error;

use crate::error::recipe::RecipeError;
use crate::znode::whole_path::WholePath;

/// Why a registration has ended.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum PresenceError {
    /// Another client deleted the node, and the policy is [`OnDeletion::End`](crate::OnDeletion::End).
    #[error("another client deleted {path}, which ended the registration; register again to return")]
    Deleted {
        /// The path of the node.
        path: WholePath,
    },
}

impl RecipeError for PresenceError {}
