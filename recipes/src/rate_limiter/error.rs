use std::time::Duration;

use lockkeeper_core::{ErrorKind, Phase, RecipeError, WholePath};
use thiserror::Error;

/// The reason why starts were not admitted. [`Error::recipe`](crate::Error::recipe) has it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// More starts were asked for than any window admits: they would never be admitted.
    #[error(
        "asked for {asked} starts of {path}, which admits {limit} in a window; ask for fewer, \
         or raise the limit"
    )]
    TooManyStarts {
        /// The rate limiter.
        path: WholePath,
        /// The number of starts asked for.
        asked: u32,
        /// The number of starts in a window.
        limit: u32,
    },
    /// There is no room for so many starts before the time limit of the call. Nothing is used up.
    #[error(
        "no room for {asked} starts of {path} within {limit:.1?}: the call ended after {waited:.1?}, because \
         there is room only in {retry_after:.1?}"
    )]
    NoRoom {
        /// The rate limiter.
        path: WholePath,
        /// The number of starts asked for.
        asked: u32,
        /// The time limit of the call.
        limit: Duration,
        /// The time for which the call waited: it ends as soon as it is certain that its limit is too short.
        waited: Duration,
        /// The time after which another try can succeed.
        retry_after: Duration,
    },
    /// The path has the nodes of the layout of earlier versions, which recorded each start in a node of its
    /// own.
    #[error(
        "{path} is a rate limiter in the layout of an earlier version, which this one does not read; take \
         another path, or delete the nodes below this one when no process uses it"
    )]
    EarlierLayout {
        /// The rate limiter.
        path: WholePath,
    },
    /// The node was not made by a rate limiter: another client or another recipe made it, and it may be a
    /// container, which the servers delete.
    #[error(
        "the node {path} was not made by a rate limiter; give the limiter a path of its own, or delete the \
         node, or set its data to \"no starts\" and a line feed if it is persistent"
    )]
    ForeignNode {
        /// The rate limiter.
        path: WholePath,
    },
    /// Several admissions in a row arrived too late to be used.
    #[error(
        "{tries} admissions of {path} were stale when they arrived, after a grace of {grace:?}; \
         set a longer with_grace()"
    )]
    Stale {
        /// The rate limiter.
        path: WholePath,
        /// The time for which an admission is fresh after its request was sent.
        grace: Duration,
        /// The number of admissions, which are used up.
        tries: u32,
    },
}

impl RecipeError for RateLimiterError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoRoom { .. } => ErrorKind::Timeout,
            _ => ErrorKind::Recipe,
        }
    }

    fn is_transient(&self) -> bool {
        matches!(self, Self::NoRoom { .. })
    }
}

/// The head of the queue waits until earlier starts are over.
pub(super) fn waiting_for_starts(free: u32, asked: u32) -> Phase {
    Phase::Recipe(format!("waiting at the head of the queue for {asked} starts, {free} of them free").into())
}
