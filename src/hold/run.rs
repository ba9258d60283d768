//! Work that may run only under a hold.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use futures::FutureExt;
use futures::future::select_all;

use super::held::Hold;
use crate::error::Lost;

impl Hold {
    /// Runs `work` for as long as the hold is valid.
    ///
    /// The hold is checked before each poll. Once it is lost, `work` is dropped and not polled again.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the hold was lost before `work` was done. The effects of `work` until then remain: give
    /// its writes the [fencing token](Self::fencing_token), or make them by [`txn`](Self::txn).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the hold stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        Self::run_under(&[self], work).await
    }

    /// As [`run`](Self::run), under several holds: until the first of them is lost.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_under<F: Future>(holds: &[&Self], work: F) -> Result<F::Output, Lost> {
        let mut work = pin!(work);
        let mut lost = pin!(Self::lost_any(holds));
        std::future::poll_fn(|context| {
            if let Poll::Ready(lost) = lost.as_mut().poll(context) {
                return Poll::Ready(Err(lost));
            }
            if let Err(lost) = holds.iter().try_for_each(|hold| hold.settle()) {
                return Poll::Ready(Err(lost));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Resolves when the first of these holds is lost. Never resolves for an empty slice.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call returns the same loss.
    pub async fn lost_any(holds: &[&Self]) -> Lost {
        if holds.is_empty() {
            return std::future::pending().await;
        }
        select_all(holds.iter().map(|hold| hold.lost().boxed())).await.0
    }
}
