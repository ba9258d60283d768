use std::fmt::{self, Display, Formatter};

use lockkeeper_core::{Error, ReleaseError, ZnodePath};

/// Why several locks were not taken. Nothing of them is held.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MultiLockError {
    /// The member at which it stopped.
    pub path: ZnodePath,
    /// What happened there.
    pub cause: Error,
    /// What went wrong when the members taken before were given back.
    pub undo: Vec<ReleaseError>,
}

impl MultiLockError {
    pub(super) fn at(path: &ZnodePath, cause: Error) -> Self {
        Self { path: path.clone(), cause, undo: Vec::new() }
    }

    /// What happened, without the member at which it did. What went wrong afterwards is logged.
    pub(super) fn into_cause(self) -> Error {
        for error in &self.undo {
            tracing::warn!(path = %self.path, %error, "giving back what had been taken");
        }
        self.cause
    }

    /// Whether time was up.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.cause.is_timeout()
    }

    /// Whether trying again can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.cause.is_transient()
    }
}

impl Display for MultiLockError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "stopped at {}: {}", self.path, self.cause)?;
        for error in &self.undo {
            write!(formatter, "; giving back what had been taken: {error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for MultiLockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
