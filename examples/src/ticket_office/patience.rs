//! What is worth another try: the connection comes back, and a lost lock can be had again.

use std::time::Duration;

use lockkeeper::Error;
use tokio::time::sleep;

/// Before another try.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Reads until there is an answer.
pub(crate) async fn patiently<T, F>(read: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match read().await {
            Err(error) if error.is_transient() => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
