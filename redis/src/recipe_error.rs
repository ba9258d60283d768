use thiserror::Error;

/// The reason why permits were not granted. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SemaphoreError {
    /// More permits were asked for than the semaphore has in all: they would never be granted.
    #[error(
        "asked for {asked} permits of {name}, which has {limit} in all; ask for fewer, or raise the limit"
    )]
    TooManyPermits {
        /// The semaphore.
        name: String,
        /// The number of permits asked for.
        asked: u32,
        /// The number of permits in all.
        limit: u32,
    },
    /// The users of a semaphore do not agree on its number of permits.
    #[error(
        "{name} is in use with the limit {recorded}, and this semaphore has the limit {mine}; give all users \
         the same limit"
    )]
    LimitsDisagree {
        /// The semaphore.
        name: String,
        /// The limit of this object.
        mine: u32,
        /// The limit of the holders and waiters.
        recorded: u32,
    },
}

/// The reason why starts were not admitted. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// More starts were asked for than any window admits: they would never be admitted.
    #[error(
        "asked for {asked} starts of {name}, which admits {limit} in a window; ask for fewer, \
         or raise the limit"
    )]
    TooManyStarts {
        /// The rate limiter.
        name: String,
        /// The number of starts asked for.
        asked: u32,
        /// The number of starts in a window.
        limit: u32,
    },
}
