use lockkeeper_core::{ErrorKind, RecipeError};
use thiserror::Error;

/// The error of a blocking call in a place where it would block other tasks, perhaps for ever.
/// [`Error::recipe`](crate::Error::recipe) has it. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "cannot block here, in an async task or a thread that ends; call it from a thread, spawn_blocking or \
     block_in_place, or use the async face"
)]
pub struct CannotBlock;

impl RecipeError for CannotBlock {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Misuse
    }
}

/// The operating system gave no thread to a blocking manager. [`Error::recipe`](crate::Error::recipe) has
/// it. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no thread for the connection: {cause}; the process may be out of threads or files")]
#[non_exhaustive]
pub struct NoThread {
    /// The error of the operating system.
    pub cause: String,
}

impl RecipeError for NoThread {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Refused
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_core::{Error, Outcome};

    use super::*;

    #[test]
    fn a_refused_wait_is_a_misuse_and_a_refused_thread_a_refusal() {
        let (wait, thread) = (Error::from(CannotBlock), Error::from(NoThread { cause: "EAGAIN".to_owned() }));
        assert_eq!((wait.kind(), wait.outcome()), (ErrorKind::Misuse, Outcome::NotApplied));
        assert_eq!((thread.kind(), thread.outcome()), (ErrorKind::Refused, Outcome::NotApplied));
        assert!(!wait.is_transient() && !thread.is_transient());
    }
}
