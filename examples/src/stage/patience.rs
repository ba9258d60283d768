//! What is worth another try: the connection comes back, and a lost lock can be had again.

use std::time::Duration;

use lockkeeper::Error;
use tokio::time::sleep;

/// Before another try.
pub const PAUSE: Duration = Duration::from_millis(50);

/// An error that may pass.
pub trait Passing {
    /// Whether trying again can help.
    fn is_passing(&self) -> bool;
}

impl Passing for Error {
    fn is_passing(&self) -> bool {
        self.is_transient()
    }
}

/// Does it again until there is an answer: for what may be done twice.
///
/// # Errors
///
/// What does not pass.
pub async fn patiently<T, E: Passing, F>(work: impl Fn() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    loop {
        match work().await {
            Err(error) if error.is_passing() => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
