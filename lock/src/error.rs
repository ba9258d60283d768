use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::error_kind::ErrorKind;

/// The error type of an engine, which [`LockError`] carries.
pub trait EngineError: Error + Send + Sync + 'static {
    /// The meaning of the error for the caller.
    fn kind(&self) -> ErrorKind;
}

/// An [`EngineError`] that can be told by its type. The oldest Rust makes no `dyn Error` of it by itself.
trait AnyEngineError: EngineError {
    fn as_error(&self) -> &(dyn Error + 'static);
}

impl<E: EngineError> AnyEngineError for E {
    fn as_error(&self) -> &(dyn Error + 'static) {
        self
    }
}

/// The error of a lock of any engine. `?` and `into()` make one of each engine's own error.
///
/// # Examples
///
/// ```
/// use lockkeeper_lock::{Lock, LockError};
///
/// async fn sell(lock: &dyn Lock) -> Result<bool, LockError> {
///     match lock.acquire().await {
///         Ok(guard) => guard.release().await.map(|()| true),
///         Err(error) if error.is_timeout() => Ok(false),
///         Err(error) => Err(error),
///     }
/// }
/// # let _ = sell;
/// ```
#[derive(Clone, Debug)]
pub struct LockError(Arc<dyn AnyEngineError>);

impl LockError {
    /// The meaning of the error for the caller.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind()
    }

    /// Whether the deadline passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout
    }

    /// Whether a hold was lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.kind() == ErrorKind::Lost
    }

    /// The engine's own error, if it is of this type.
    #[must_use]
    pub fn engine<E: EngineError>(&self) -> Option<&E> {
        self.0.as_error().downcast_ref()
    }
}

impl<E: EngineError> From<E> for LockError {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl Display for LockError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, formatter)
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("closed for the night")]
    struct Night;

    impl EngineError for Night {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Closed
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("too slow")]
    struct Slow;

    impl EngineError for Slow {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Timeout
        }
    }

    #[test]
    fn the_error_of_an_engine_keeps_its_kind_its_text_and_its_type() {
        let (night, slow) = (LockError::from(Night), LockError::from(Slow));
        assert_eq!((night.kind(), night.to_string()), (ErrorKind::Closed, "closed for the night".to_owned()));
        assert!(night.engine::<Night>().is_some() && night.engine::<Slow>().is_none());
        assert!(slow.is_timeout() && !night.is_timeout() && !slow.is_lost());
    }
}
