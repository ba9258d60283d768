//! States that change, and the watches that follow them.

use std::fmt::{self, Debug, Formatter};
use std::future::Future;

use futures::FutureExt;
use futures::future::BoxFuture;
use thiserror::Error;

use crate::error::Error;

/// A state that changes, followed: of a registration, of a candidate, the leader of an election, the share of
/// a member of a partition.
///
/// A clone follows on its own. The call that makes the watch says what the watch keeps alive.
pub struct Watch<T> {
    source: Box<dyn AnySource<T>>,
}

impl<T> Watch<T> {
    /// The state now, as far as is known. Costs no request.
    #[must_use]
    pub fn state(&self) -> T {
        self.source.state()
    }

    /// Waits for a state that this watch has not returned yet, and returns it. The first call returns the
    /// present state. A slow caller may miss states in between.
    ///
    /// # Errors
    ///
    /// [`Closed`]: no other state follows.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a state that was not returned is returned next time, unless a later one has replaced it.
    pub async fn changed(&mut self) -> Result<T, Closed> {
        self.source.changed().await.map_err(|cause| Closed { cause })
    }
}

impl<T> Clone for Watch<T> {
    fn clone(&self) -> Self {
        Self { source: self.source.boxed_clone() }
    }
}

impl<T> Debug for Watch<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Watch").field(&self.source).finish()
    }
}

/// The end of a [`Watch`], with the reason.
#[derive(Clone, Debug, Error)]
#[error("no other state follows: {cause}")]
pub struct Closed {
    cause: Error,
}

impl Closed {
    /// Why no other state follows: [`Error::Closed`] after a shutdown, or when what was followed is over.
    #[must_use]
    pub fn cause(&self) -> &Error {
        &self.cause
    }
}

impl From<Closed> for Error {
    fn from(closed: Closed) -> Self {
        closed.cause
    }
}

/// What a [`Watch`] follows. For authors of recipes.
pub trait WatchSource: Clone + Debug + Send + Sync + 'static {
    /// The state.
    type State: 'static;

    /// The state now.
    fn state(&self) -> Self::State;

    /// As [`Watch::changed`], with the reason of the end. Cancel safe.
    fn changed(&mut self) -> impl Future<Output = Result<Self::State, Error>> + Send;

    /// A watch of this source.
    fn into_watch(self) -> Watch<Self::State> {
        Watch { source: Box::new(self) }
    }
}

/// A [`WatchSource`] as an object.
trait AnySource<T>: Debug + Send + Sync {
    fn state(&self) -> T;
    fn changed(&mut self) -> BoxFuture<'_, Result<T, Error>>;
    fn boxed_clone(&self) -> Box<dyn AnySource<T>>;
}

impl<S: WatchSource> AnySource<S::State> for S {
    fn state(&self) -> S::State {
        WatchSource::state(self)
    }

    fn changed(&mut self) -> BoxFuture<'_, Result<S::State, Error>> {
        WatchSource::changed(self).boxed()
    }

    fn boxed_clone(&self) -> Box<dyn AnySource<S::State>> {
        Box::new(self.clone())
    }
}
