use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, ReleaseError, ZnodePath};

/// Why several locks were not taken. Nothing of them is held.
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

    /// The whole path of the member at which it stopped.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.0.path
    }

    /// What happened there.
    #[must_use]
    pub fn cause(&self) -> &Error {
        &self.0.cause
    }

    /// What went wrong when the members taken before were given back.
    #[must_use]
    pub fn undo(&self) -> &[ReleaseError] {
        &self.0.undo
    }

    /// What happened, without the member at which it did. What went wrong afterwards is logged.
    pub(super) fn into_cause(self) -> Error {
        for error in &self.0.undo {
            tracing::warn!(path = %self.0.path, %error, "giving back what had been taken");
        }
        self.0.cause
    }

    /// Whether time was up.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.cause.is_timeout()
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.cause.is_transient()
    }
}

/// What happened, without the member at which it did.
impl From<MultiLockError> for Error {
    fn from(error: MultiLockError) -> Self {
        error.into_cause()
    }
}

impl Display for MultiLockError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped at {}: {}", self.0.path, self.0.cause)?;
        for error in &self.0.undo {
            write!(formatter, "; giving back what had been taken: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MultiLockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.cause)
    }
}
