//! Calls that are made again, by their outcome.

use std::time::Duration;

use tokio::time::sleep;
use tracing::debug;

use crate::config::retry::RetryPolicy;
use crate::error::Error;
use crate::manager::ConnectionManager;
use crate::time::deadline::Deadline;
use crate::time::fractions;

/// The pauses between calls.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Makes a call again while its error says that nothing was done, and that the same call can succeed
/// ([`Error::is_transient`]), for at most `timeout`.
///
/// It never repeats a write whose outcome is unknown, because both might be applied: it returns
/// [`Error::Unknown`] at once. A write that is [found again](crate::Txn::once) has no such outcome. Reads of
/// [`Znodes`](crate::Znodes) do not need this: they are sent again within the operation timeout.
///
/// The pauses between two calls grow from 50 ms to 1 s, and are varied randomly. A call that is in progress
/// when the time is over is not ended: give it a time limit of its own.
///
/// # Errors
///
/// That of the last call, or the first that another call would not change.
///
/// # Cancel safety
///
/// As `call`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
/// use std::time::Duration;
///
/// use lockkeeper_core::{CreateMode, Version, retry};
///
/// let znodes = manager.znodes();
/// znodes.create("/prices", "1", CreateMode::Persistent).await?;
/// let minute = Duration::from_secs(60);
/// let written = retry(minute, || znodes.write("/prices", "2", Version::Any)).await?;
/// assert_eq!(written.version, 1);
/// # Ok(())
/// # }
/// ```
pub async fn retry<T, F>(timeout: Duration, mut call: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let deadline = Deadline::after(timeout);
    let mut pauses = RetryPolicy::exponential(FIRST_PAUSE, LONGEST_PAUSE).start();
    loop {
        let error = match call().await {
            Err(error) if error.is_transient() => error,
            answer => return answer,
        };
        let pause = pauses.next();
        if deadline.left().is_some_and(|left| left <= pause) {
            return Err(error);
        }
        debug!(%error, ?pause, "nothing was done; the call is made again");
        sleep(pause).await;
    }
}

impl ConnectionManager {
    /// Makes a read of several requests again after a broken link, within the operation timeout.
    pub(crate) async fn until_answered<T, F>(&self, read: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let deadline = Deadline::after(self.operation_timeout());
        loop {
            match read().await {
                Err(error @ Error::NoAnswer { .. }) if !deadline.has_passed() => {
                    debug!(%error, "reading again");
                    sleep(fractions::retry_pause(self.session_timeout())).await;
                }
                answer => return answer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Operation, Phase};

    fn transient() -> Error {
        Error::Timeout { phase: Phase::Answer, path: "/a".into(), waited: Duration::ZERO }
    }

    fn unknown() -> Error {
        Error::Unknown { operation: Operation::Write, path: "/a".into(), cause: String::new() }
    }

    /// The number of calls, of which each ends with the next of these results.
    async fn calls_of(timeout: Duration, results: Vec<Result<u32, Error>>) -> (u32, Result<u32, Error>) {
        let (mut calls, mut results) = (0, results.into_iter());
        let result = retry(timeout, || {
            calls += 1;
            let result = results.next().unwrap_or_else(|| Err(transient()));
            async { result }
        });
        let result = result.await;
        (calls, result)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_made_again_while_nothing_was_done() {
        let (calls, result) =
            calls_of(Duration::from_secs(60), vec![Err(transient()), Err(transient()), Ok(7)]).await;
        assert_eq!((calls, result.unwrap()), (3, 7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_unknown_outcome_is_not_made_again() {
        let (calls, result) = calls_of(Duration::from_secs(60), vec![Err(unknown()), Ok(7)]).await;
        assert!(calls == 1 && result.unwrap_err().outcome_unknown());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_end_with_their_own_error_when_the_time_is_over() {
        let (calls, result) = calls_of(Duration::from_secs(10), Vec::new()).await;
        assert!(calls > 3 && result.unwrap_err().is_timeout(), "{calls}");
        let (calls, result) = calls_of(Duration::ZERO, Vec::new()).await;
        assert!(calls == 1 && result.unwrap_err().is_timeout(), "{calls}");
    }
}
