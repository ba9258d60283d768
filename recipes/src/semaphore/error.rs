use lockkeeper_core::{HeldHere, Phase, RecipeError, WholePath};
use thiserror::Error;

use crate::sharing::with_held_here;

/// The reason why permits were not granted. [`Error::recipe`](crate::Error::recipe) has it.
///
/// Nothing was taken. Remove the cause before you try again.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::Semaphore;
/// use lockkeeper::error::SemaphoreError;
///
/// let semaphore = Semaphore::new(&manager, "/licences", 2)?;
/// match semaphore.acquire_many(3).await {
///     Ok(lease) => lease.release().await?,
///     Err(error) => match error.recipe() {
///         Some(SemaphoreError::TooManyPermits { limit, .. }) => assert_eq!(*limit, 2),
///         _ => return Err(error.into()),
///     },
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SemaphoreError {
    /// More permits were asked for than the semaphore has in all: they would never be granted.
    #[error(
        "asked for {asked} permits of {path}, which has {limit} in all; ask for fewer, or raise the limit"
    )]
    TooManyPermits {
        /// The semaphore.
        path: WholePath,
        /// The number of permits asked for.
        asked: u32,
        /// The number of permits in all.
        limit: u32,
    },
    /// The users of a semaphore do not agree on its number of permits.
    #[error(
        "{path} is in use with the limit {recorded}, and this semaphore has the limit {mine}; give all users \
         the same limit, or keep it in a node that all read (SharedLimit)"
    )]
    LimitsDisagree {
        /// The semaphore.
        path: WholePath,
        /// The limit of this object.
        mine: u32,
        /// The limit of the holders of its permits.
        recorded: u32,
    },
    /// The node of a shared limit has no limit.
    #[error("no limit is kept at {path}: {found}; write one with SharedLimit::set()")]
    NoLimit {
        /// The node.
        path: WholePath,
        /// What is there instead.
        found: String,
    },
}

impl RecipeError for SemaphoreError {}

/// The head of the queue waits for permits that others hold.
pub(super) fn waiting_for_permits(free: u32, asked: u32, held_here: Option<HeldHere>) -> Phase {
    let text = format!("waiting at the head of the queue for {asked} permits, {free} of them free");
    Phase::Recipe(with_held_here(text, "one is", held_here).into())
}
