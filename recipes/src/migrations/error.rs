use lockkeeper_core::{Error, ErrorKind, Outcome, RecipeError, WholePath};
use thiserror::Error as ThisError;

/// Why the steps of [`Migrations`](crate::Migrations) were not done.
/// [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum MigrationError {
    /// Another step was done at this position, or this one with another version. A step that was done must
    /// not be changed, moved or left out: add a new one behind it.
    #[error(
        "step {position} of {path} is {name:?} version {version}, and {recorded} was done there; restore the \
         step, and add a new one behind the others"
    )]
    Changed {
        /// The path of the migrations.
        path: WholePath,
        /// The position of the step, from 0.
        position: u32,
        /// The name of the step.
        name: String,
        /// The version of the step.
        version: u32,
        /// What the record says.
        recorded: String,
    },
    /// A step was done that this program does not have: a newer program did it.
    #[error(
        "{recorded} was done at position {position} of {path}, and this program has no such step; update \
         this program"
    )]
    Ahead {
        /// The path of the migrations.
        path: WholePath,
        /// The position of the first such step, from 0.
        position: u32,
        /// What the record says.
        recorded: String,
    },
    /// A step failed. The steps before it are done and recorded, and the next call goes on with this one.
    #[error("step {name:?} of {path} failed: {cause}")]
    Failed {
        /// The path of the migrations.
        path: WholePath,
        /// The name of the step.
        name: String,
        /// Why it failed.
        cause: Error,
    },
}

impl RecipeError for MigrationError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Changed { .. } | Self::Ahead { .. } => ErrorKind::Misuse,
            Self::Failed { cause, .. } => cause.kind(),
        }
    }

    fn is_transient(&self) -> bool {
        matches!(self, Self::Failed { cause, .. } if cause.is_transient())
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Changed { .. } | Self::Ahead { .. } => Outcome::NotApplied,
            Self::Failed { cause, .. } => cause.outcome(),
        }
    }
}
