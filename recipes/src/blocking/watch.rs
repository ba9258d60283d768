use std::future::Future;
use std::time::Duration;

use lockkeeper_core::{Error, WholePath};

use super::runtime_thread::RuntimeThread;
use crate::election::{CandidateState, Leader};

/// A state of an election that changes, followed by a thread. [`LeaderWatch`] and [`CandidateWatch`] are
/// watches.
///
/// A clone follows on its own. A slow reader may miss states in between.
#[derive(Clone, Debug)]
pub struct Watch<W> {
    // Dropped in this order.
    inner: W,
    thread: RuntimeThread,
    path: WholePath,
}

/// The leader of an election, followed by [`Election::observe`](super::Election::observe), for threads: see
/// the async [`LeaderWatch`](crate::election::LeaderWatch).
pub type LeaderWatch = Watch<crate::election::LeaderWatch>;

/// The state of an election's own participant, followed by [`Election::state`](super::Election::state), for
/// threads: see the async [`CandidateWatch`](crate::election::CandidateWatch).
pub type CandidateWatch = Watch<crate::election::CandidateWatch>;

impl<W> Watch<W> {
    pub(super) fn new(inner: W, thread: &RuntimeThread, path: WholePath) -> Self {
        Self { inner, thread: thread.clone(), path }
    }
}

impl<W: Watched> Watch<W> {
    /// Waits until the state is another one than the last call returned, without a limit of time, and
    /// returns it.
    ///
    /// A [`LeaderWatch`] returns `None` between two leaders. The first call returns the present state, as
    /// soon as one is known.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as the
    /// `changed` of the async type.
    pub fn changed(&mut self) -> Result<W::State, Error> {
        self.thread.block_checked(self.inner.next_state())?
    }

    /// As [`changed`](Self::changed), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the state has not changed, and a change is returned next time. Otherwise as
    /// [`changed`](Self::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<W::State, Error> {
        self.thread.block_within(timeout, self.inner.next_state(), W::WAITING, &self.path)?
    }
}

impl LeaderWatch {
    /// The leader now, as far as is known; `None` if there is none.
    #[must_use]
    pub fn leader(&self) -> Option<Leader> {
        self.inner.leader()
    }
}

impl CandidateWatch {
    /// The state now. Costs no request.
    #[must_use]
    pub fn state(&self) -> CandidateState {
        self.inner.state()
    }
}

/// The async side of a [`Watch`].
pub trait Watched {
    /// What a change leads to.
    type State;
    /// What a call waits for, for its error.
    #[doc(hidden)]
    const WAITING: &'static str;
    /// Cancel safe: a change that was not returned is returned next time.
    #[doc(hidden)]
    fn next_state(&mut self) -> impl Future<Output = Result<Self::State, Error>>;
}

impl Watched for crate::election::LeaderWatch {
    type State = Option<Leader>;
    const WAITING: &'static str = "waiting for another leader";

    fn next_state(&mut self) -> impl Future<Output = Result<Option<Leader>, Error>> {
        self.changed()
    }
}

impl Watched for crate::election::CandidateWatch {
    type State = CandidateState;
    const WAITING: &'static str = "waiting for another state of the candidate";

    fn next_state(&mut self) -> impl Future<Output = Result<CandidateState, Error>> {
        self.changed()
    }
}
