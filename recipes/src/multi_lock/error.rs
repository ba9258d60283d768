use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, ReleaseError, ZnodePath};

/// The reason why several locks were not taken. None of them is held.
#[derive(Clone, Debug)]
pub struct MultiLockError(Box<Stopped>);

#[derive(Clone, Debug)]
struct Stopped {
    path: ZnodePath,
    cause: Error,
    undo: Vec<ReleaseError>,
}

impl MultiLockError {
    pub(crate) fn at(path: &ZnodePath, cause: Error) -> Self {
        Self::after(path, cause, Vec::new())
    }

    pub(super) fn after(path: &ZnodePath, cause: Error, undo: Vec<ReleaseError>) -> Self {
        Self(Box::new(Stopped { path: path.clone(), cause, undo }))
    }

    /// The path of the member that failed.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.0.path
    }

    /// The error of that member.
    #[must_use]
    pub fn cause(&self) -> &Error {
        &self.0.cause
    }

    /// The errors from the release of the members that were taken before.
    #[must_use]
    pub fn undo(&self) -> &[ReleaseError] {
        &self.0.undo
    }

    /// Returns the error without the member. Errors from the release of other members are logged.
    pub(super) fn into_cause(self) -> Error {
        for error in &self.0.undo {
            tracing::warn!(path = %self.0.path, %error, "releasing the members that were taken");
        }
        self.0.cause
    }

    /// Whether the timeout passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.cause.is_timeout()
    }

    /// Whether another try can succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        // Nothing was done under a member that was lost.
        self.0.cause.is_transient() || self.0.cause.is_lost()
    }
}

/// Returns the error without the member.
impl From<MultiLockError> for Error {
    fn from(error: MultiLockError) -> Self {
        error.into_cause()
    }
}

impl Display for MultiLockError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped at {}: {}", self.0.path, self.0.cause)?;
        for error in &self.0.undo {
            write!(formatter, "; releasing the members that were taken: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MultiLockError {
    /// The text has the error of the member, so the source is the cause behind it.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.source()
    }
}
