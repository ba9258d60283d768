use lockkeeper_core::Error;
use thiserror::Error as ThisError;

/// Why [`OnceCell::get_or_try_init`](super::OnceCell::get_or_try_init) has no value. `E` is the error of the
/// initialiser.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum InitError<E> {
    /// The initialiser failed, and another one may try.
    #[error("the initialiser failed: {0}")]
    Failed(E),
    /// The value could not be read or stored.
    #[error(transparent)]
    Cell(#[from] Error),
}
