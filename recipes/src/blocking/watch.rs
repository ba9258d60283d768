use std::future::Future;
use std::time::Duration;

use lockkeeper_core::{Error, PresenceState, WholePath};
use tokio::sync::watch;

use super::runtime_thread::RuntimeThread;
use crate::{CandidateState, Leader, PartitionShare};

/// A state that changes, followed by a thread. [`LeaderWatch`], [`CandidateWatch`], [`PresenceWatch`] and
/// [`ShareWatch`] are watches.
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
/// the async [`LeaderWatch`](crate::LeaderWatch).
pub type LeaderWatch = Watch<crate::LeaderWatch>;

/// The state of an election's own participant, followed by [`Election::state`](super::Election::state), for
/// threads: see the async [`CandidateWatch`](crate::CandidateWatch).
pub type CandidateWatch = Watch<crate::CandidateWatch>;

/// The states of a [`Registration`](super::Registration), of a [`Membership`](super::Membership) or of a
/// registered instance, for threads: see the async [`PresenceWatch`](crate::PresenceWatch).
///
/// # Examples
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # let server = runtime.block_on(lockkeeper_testserver::TestServer::start())?;
/// # let manager = lockkeeper::blocking::ConnectionManager::connect(&server.connect_string())?;
/// use lockkeeper::PresenceState;
/// use lockkeeper::blocking::Registration;
///
/// let worker = Registration::register(&manager, "/workers/7", "10.0.0.7:8080")?;
/// let mut states = worker.watch();
/// let czxid = worker.registered()?;
/// assert_eq!(states.changed()?, Some(PresenceState::Registered { czxid }));
/// worker.release()?;
/// assert_eq!(states.changed()?, Some(PresenceState::Closed));
/// assert_eq!(states.changed()?, None);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub type PresenceWatch = Watch<crate::PresenceWatch>;

/// The share of a [`PartitionMember`](super::PartitionMember), followed by
/// [`PartitionMember::assigned`](super::PartitionMember::assigned).
pub type ShareWatch = Watch<watch::Receiver<PartitionShare>>;

impl<W> Watch<W> {
    pub(super) fn new(inner: W, thread: &RuntimeThread, path: WholePath) -> Self {
        Self { inner, thread: thread.clone(), path }
    }
}

impl<W: Watched> Watch<W> {
    /// Waits until the state is another one than the last call returned, without a limit of time, and
    /// returns it.
    ///
    /// A [`LeaderWatch`] returns `None` between two leaders, and a [`PresenceWatch`] after a
    /// [final](PresenceState::is_final) state. The first call on a [`LeaderWatch`], a [`CandidateWatch`] or a
    /// [`ShareWatch`] returns the present state, as soon as one is known.
    ///
    /// # Errors
    ///
    /// [`CannotBlock`](super::CannotBlock) within an async task. Otherwise as the
    /// `changed` of the async type. That of a [`ShareWatch`] is [`Error::Closed`] once the member has left.
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

impl PresenceWatch {
    /// The latest state. Never blocks.
    #[must_use]
    pub fn state(&self) -> PresenceState {
        self.inner.state()
    }
}

impl ShareWatch {
    /// What belongs to the member now, and what it holds. Never blocks.
    #[must_use]
    pub fn share(&self) -> PartitionShare {
        self.inner.borrow().clone()
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

impl Watched for crate::LeaderWatch {
    type State = Option<Leader>;
    const WAITING: &'static str = "waiting for another leader";

    fn next_state(&mut self) -> impl Future<Output = Result<Option<Leader>, Error>> {
        self.changed()
    }
}

impl Watched for crate::CandidateWatch {
    type State = CandidateState;
    const WAITING: &'static str = "waiting for another state of the candidate";

    fn next_state(&mut self) -> impl Future<Output = Result<CandidateState, Error>> {
        self.changed()
    }
}

impl Watched for crate::PresenceWatch {
    type State = Option<PresenceState>;
    const WAITING: &'static str = "waiting for another state of the registration";

    async fn next_state(&mut self) -> Result<Option<PresenceState>, Error> {
        Ok(self.changed().await)
    }
}

impl Watched for watch::Receiver<PartitionShare> {
    type State = PartitionShare;
    const WAITING: &'static str = "waiting for another share of the items";

    async fn next_state(&mut self) -> Result<PartitionShare, Error> {
        self.changed().await.map_err(|_| Error::Closed)?;
        Ok(self.borrow_and_update().clone())
    }
}
