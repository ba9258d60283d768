use std::time::Duration;

use lockkeeper_core::{Phase, RecipeError, WholePath};
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
    /// Several admissions in a row arrived too late to be used.
    #[error(
        "{tries} admissions of {path} were stale when they arrived, after a grace of {grace:?}; \
         set a longer grace()"
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

impl RecipeError for RateLimiterError {}

/// The head of the queue waits until earlier starts are over.
pub(super) fn waiting_for_starts(free: u32, asked: u32) -> Phase {
    Phase::Recipe(format!("waiting at the head of the queue for {asked} starts, {free} of them free").into())
}
