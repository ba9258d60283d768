//! The hold under which a request is served.

use std::fmt::{self, Debug, Formatter};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use lockkeeper::locks::HoldSet;
use lockkeeper::{Guard, Lost};

/// Why the body of a response ended before its end: the lock, the permit or the leadership under which the
/// request was served is lost.
#[derive(Debug, thiserror::Error)]
#[error("the response is cut off, because the hold of its request is lost: {lost}")]
pub struct HoldLost {
    #[source]
    lost: Lost,
}

impl From<Lost> for HoldLost {
    fn from(lost: Lost) -> Self {
        Self { lost }
    }
}

/// Keeps a guard while a request is served and its response is read, and tells when the guard is lost.
pub(crate) struct HoldWatch {
    guard: Arc<dyn Held>,
    lost: BoxFuture<'static, Lost>,
}

/// A guard of any kind.
trait Held: Send + Sync {
    fn check(&self) -> Result<(), Lost>;
}

impl<H: HoldSet + Send + Sync> Held for Guard<H> {
    fn check(&self) -> Result<(), Lost> {
        Self::check(self)
    }
}

impl HoldWatch {
    pub(crate) fn new<H: HoldSet + Send + Sync + 'static>(guard: &Arc<Guard<H>>) -> Self {
        let watched = Arc::clone(guard);
        let guard: Arc<dyn Held> = Arc::<Guard<H>>::clone(guard);
        Self { guard, lost: Box::pin(async move { watched.lost().await }) }
    }

    /// Resolves when the guard is lost. Check it before each poll of what the guard protects: after a pause
    /// that was too long, the first call resolves. Not called again after it has resolved.
    pub(crate) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<Lost> {
        if let Poll::Ready(lost) = self.lost.poll_unpin(context) {
            return Poll::Ready(lost);
        }
        match self.guard.check() {
            Ok(()) => Poll::Pending,
            Err(lost) => Poll::Ready(lost),
        }
    }

    /// Runs `work` as long as the guard is valid.
    pub(crate) async fn run<F: Future>(&mut self, work: F) -> Result<F::Output, Lost> {
        let mut work = pin!(work);
        poll_fn(|context| match self.poll_lost(context) {
            Poll::Ready(lost) => Poll::Ready(Err(lost)),
            Poll::Pending => work.as_mut().poll(context).map(Ok),
        })
        .await
    }
}

impl Debug for HoldWatch {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HoldWatch").field("is_valid", &self.guard.check().is_ok()).finish()
    }
}
