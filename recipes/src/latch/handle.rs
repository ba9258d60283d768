use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use lockkeeper_core::{
    Change, ConfigError, ConnectionManager, Current, Deadline, Error, IntoPath, Phase, RegisterInfo,
    ZnodePath,
};

use super::state::LatchState;
use crate::limits::own_path;
use crate::shared_value::SharedValue;

/// A latch that opens after a number of counts, and stays open until it is reset: the counterpart of
/// Redisson's and Hazelcast's countdown latches.
///
/// Give every process the same count. The first count creates the node. A clone is the same latch.
///
/// # Ordering
///
/// Each [`count_down`](Self::count_down) takes effect at one instant between its beginning and its end, and
/// counts once. A waiter returns only after the last count.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::CountDownLatch;
///
/// let loaded = CountDownLatch::new(&manager, "/latches/loaded", 2)?;
/// let (open, first, second) = tokio::join!(loaded.wait(), loaded.count_down(), loaded.count_down());
/// open?;
/// assert_eq!(first?.min(second?), 0);
///
/// let state = loaded.state().await?;
/// assert!(loaded.reset(state.generation).await?); // another round
/// assert_eq!(loaded.state().await?.left, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CountDownLatch {
    value: SharedValue<LatchState>,
    count: u32,
}

impl CountDownLatch {
    /// Makes the latch at `path`, below the manager's chroot, which opens after `count` counts. Sends
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root, or `count` is 0.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, count: u32) -> Result<Self, Error> {
        if count == 0 {
            let advice = "let the latch wait for one count or more";
            return Err(ConfigError::Setting { name: "count", value: "0".to_owned(), advice }.into());
        }
        let path = own_path(path, "give the latch a path of its own")?;
        let closed = LatchState { left: count, generation: 0 };
        Ok(Self { value: SharedValue::named(manager, path, closed, "count_down_latch")?, count })
    }

    /// The path of the latch, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.value.path()
    }

    /// The manager of the latch.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        self.value.manager()
    }

    /// Counts one down, exactly once, in the present generation. Returns what is left: 0 if the latch is
    /// open. Counts of an open latch change nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the call may be counted, once. Every other error says that it is not:
    /// [`SharedValueError::Undecodable`](crate::error::SharedValueError) (the node is that of no latch),
    /// [`Error::Timeout`] after the manager's operation timeout, [`Error::Refused`] (no right to write the
    /// node, or to create its child) and [`Error::ServersReset`] (the servers have lost data).
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. The outcome is unknown only if the operation timeout passed while a
    /// request had no answer, or if the session ended before the answer, its nodes have been deleted, and the
    /// latch was changed since or did not exist before.
    ///
    /// # Cancel safety
    ///
    /// The call may be counted, once.
    pub async fn count_down(&self) -> Result<u32, Error> {
        let after = self.change(|state| state.counted_down()).await?;
        Ok(after.map_or(0, |state| state.left))
    }

    /// Closes the latch again, with its whole count, as the next generation: if its generation is still this
    /// one. Returns whether this call did so. Of many calls with one generation one does, and none of them
    /// resets a later one.
    ///
    /// Waiters of earlier generations return. A count that comes late counts in the new generation: reset
    /// after the last count of the old one, as a waiter does that has seen the latch open.
    ///
    /// # Errors
    ///
    /// As [`count_down`](Self::count_down).
    ///
    /// # Session loss
    ///
    /// As [`count_down`](Self::count_down).
    ///
    /// # Cancel safety
    ///
    /// The latch may be reset, once.
    pub async fn reset(&self, generation: u64) -> Result<bool, Error> {
        let left = self.count;
        let next = move |state: LatchState| {
            let next = generation.checked_add(1).filter(|_| state.generation == generation)?;
            Some(LatchState { left, generation: next })
        };
        Ok(self.change(next).await?.is_some())
    }

    /// What is left to count, and the generation: that of the last change that ended before the call, or of a
    /// later one.
    ///
    /// # Errors
    ///
    /// As [`SharedValue::get`](crate::SharedValue::get).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn state(&self) -> Result<LatchState, Error> {
        Ok(self.value.get().await?.value)
    }

    /// Waits until the latch is open, without a limit of time. Returns at once if it is. A waiter whose
    /// generation was reset meanwhile returns as well: the latch was open, or given up.
    ///
    /// Costs two reads, and one watch; one more read for each change.
    ///
    /// # Errors
    ///
    /// [`SharedValueError::Undecodable`](crate::error::SharedValueError) and
    /// [`DecodeError`](crate::error::DecodeError) (the node is that of no latch), [`Error::Refused`] (no
    /// right to read), [`Error::Closed`] after a shutdown, and [`Error::Timeout`] if there is no answer to
    /// the first read within the manager's operation timeout.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn wait(&self) -> Result<(), Error> {
        self.wait_by(Deadline::never()).await
    }

    /// As [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]. Otherwise as [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_by(Deadline::after(timeout)).await
    }

    /// Reads the node and the sessions that count: a snapshot, no older than the call. It writes nothing, and
    /// needs only the right to read.
    ///
    /// # Errors
    ///
    /// As [`SharedValue::inspect`](crate::SharedValue::inspect).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.value.inspect().await
    }

    /// Changes the state by `next`, once. Returns the state that was written; `None` if none was.
    async fn change(
        &self,
        next: impl Fn(LatchState) -> Option<LatchState> + Send + 'static,
    ) -> Result<Option<LatchState>, Error> {
        let value = self.value.clone();
        let decide = move |current: Current<'_>| match value.value_of(&current).map(&next) {
            Ok(Some(written)) => {
                let data = crate::shared_value::SharedData::encode(&written);
                (Change::Write(data), Ok(Some(written)))
            }
            Ok(None) => (Change::Keep, Ok(None)),
            Err(error) => (Change::Keep, Err(error)),
        };
        self.value.register().update(decide).await?.0
    }

    async fn wait_by(&self, deadline: Deadline) -> Result<(), Error> {
        let timeout = || {
            let phase = Phase::Recipe("waiting for the latch".into());
            let path = self.manager().whole_path(self.path());
            Error::Timeout { phase, path, waited: deadline.waited() }
        };
        tokio::select! {
            biased;
            opened = self.until_open() => opened,
            () = deadline.passed() => Err(timeout()),
        }
    }

    async fn until_open(&self) -> Result<(), Error> {
        let LatchState { left, generation } = self.state().await?;
        if left == 0 {
            return Ok(());
        }
        let view = self.value.view()?;
        // From before the look, so that no change is missed.
        let mut changes = view.changes();
        loop {
            let snapshot = view.ready().await?;
            if let Some(node) = snapshot.root() {
                if node.value()?.is_open_for(generation) {
                    return Ok(());
                }
            }
            if changes.next().await.is_none() {
                return Err(Error::Closed);
            }
        }
    }
}

impl Debug for CountDownLatch {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CountDownLatch")
            .field("path", self.path())
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
