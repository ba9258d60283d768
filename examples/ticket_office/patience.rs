//! What is worth another try: the connection comes back, and a lost lock can be had again.

use std::time::Duration;

use lockkeeper::{Error, Refusal};
use tokio::time::sleep;

/// Before another try.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Whether trying again can help.
pub(crate) fn is_passing(error: &Error) -> bool {
    let busy = [Refusal::Throttled, Refusal::SessionMoved];
    error.is_timeout()
        || error.is_lost()
        || error.outcome_unknown()
        || matches!(error, Error::Refused { refusal, .. } if busy.contains(refusal))
}

/// Reads until there is an answer.
pub(crate) async fn patiently<T, F>(read: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match read().await {
            Err(error) if is_passing(&error) => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
