//! Ids from blocks.
//!
//! # Protocol
//!
//! A [`Counter`] has the last id of the last block. A process adds the size of a block, and owns the ids up
//! to the sum. It adds the next block while half of the present one is left.
//!
//! Sources: the "hi/lo" allocation of database sequences; Apache Curator's `CachedAtomicLong`.

mod block;
mod error;

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use lockkeeper_core::{
    ConfigError, ConnectionManager, Deadline, Error, IntoPath, ManagerExt, Phase, RegisterInfo, ZnodePath,
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::debug;

use self::block::{Blocks, Taken, WentBack};
pub use self::error::IdBlocksError;
use crate::counter::Counter;

/// Ids that are unique over all processes, with few requests: a process takes a block of them at a time.
///
/// No id is given out twice, whatever crashes, as long as the counter keeps its value. A process notices that
/// its counter was set back, was deleted, or is lost with the servers' data, by ids that it has owned before,
/// and gives out no ids then. The ids of one process increase; those of several processes interleave by
/// blocks. The rest of a block is never given out if its process ends, and neither is a block
/// whose answer was lost: ids have gaps.
///
/// The first id is 1, if the counter begins at zero. A clone takes from the same blocks.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper::IdBlocks;
///
/// let ids = IdBlocks::new(&manager, "/ids/orders", 1_000)?;
/// assert_eq!(ids.next().await?, 1); // one request for a thousand ids
/// assert_eq!(ids.next().await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct IdBlocks {
    inner: Arc<IdBlocksInner>,
}

struct IdBlocksInner {
    counter: Counter,
    size: u32,
    blocks: Mutex<Blocks>,
    /// Wakes those that wait for a block.
    arrived: Notify,
}

impl IdBlocks {
    /// Ids from blocks of `size`, of the counter at `path`, below the manager's chroot. Sends nothing.
    ///
    /// Processes with blocks of different sizes may share a path. The larger the block, the fewer requests,
    /// and the larger the gap after a crash.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the path is malformed or the root, or if `size` is zero.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath, size: u32) -> Result<Self, Error> {
        if size == 0 {
            let advice = "give a block one or more ids";
            return Err(ConfigError::Setting { name: "size", value: "0".to_owned(), advice }.into());
        }
        let counter = Counter::new(manager, path)?;
        let (blocks, arrived) = (Mutex::new(Blocks::default()), Notify::new());
        Ok(Self { inner: Arc::new(IdBlocksInner { counter, size, blocks, arrived }) })
    }

    /// The path of the counter, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        self.inner.counter.path()
    }

    /// An id that was given out nowhere before. Sends nothing while the block lasts.
    ///
    /// # Ordering
    ///
    /// The ids that one `IdBlocks` gives out, to any task, increase.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] if no block arrived within the manager's operation timeout,
    /// [`CounterError::Overflow`](crate::counter::CounterError::Overflow) after 2⁶³ − 1 ids,
    /// [`CounterError::NotANumber`](crate::counter::CounterError::NotANumber), [`Error::Refused`],
    /// [`IdBlocksError::WentBack`] if the counter gives ids that this process has owned,
    /// [`Error::ServersReset`] if the servers have lost data, [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Changes nothing: the blocks stay owned.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: an id that was not returned is given out later.
    pub async fn next(&self) -> Result<i64, Error> {
        let inner = &self.inner;
        if let Some(id) = self.try_next() {
            return Ok(id);
        }
        let manager = inner.counter.manager();
        let deadline = Deadline::after(manager.operation_timeout());
        loop {
            let mut arrived = std::pin::pin!(inner.arrived.notified());
            arrived.as_mut().enable();
            let failed = {
                let mut blocks = inner.blocks.lock();
                if let Taken { id: Some(id), .. } = blocks.take() {
                    return Ok(id);
                }
                if let Some(WentBack { greatest, first }) = blocks.went_back() {
                    let path = manager.whole_path(self.path());
                    return Err(IdBlocksError::WentBack { path, greatest, first }.into());
                }
                blocks.take_failure()
            };
            match failed {
                Some(error) if !error.is_transient() && !error.outcome_unknown() => return Err(error),
                Some(error) if error.is_closed() || deadline.has_passed() => return Err(error),
                _ => {}
            }
            self.fetch()?;
            tokio::select! {
                biased;
                () = arrived => {}
                () = deadline.passed() => {
                    let (path, waited) = (manager.whole_path(self.path()), deadline.waited());
                    let phase = Phase::Recipe("waiting for a block of ids".into());
                    return Err(Error::Timeout { phase, path, waited });
                }
            }
        }
    }

    /// An id of the present block; `None` if there is none left now. Sends at most the request for the next
    /// block, and waits for nothing.
    #[must_use]
    pub fn try_next(&self) -> Option<i64> {
        let taken = self.inner.blocks.lock().take();
        if taken.is_low && self.fetch().is_err() {
            debug!(path = self.path().as_str(), "no tokio runtime to take the next block in");
        }
        taken.id
    }

    /// Reads the counter and the sessions that take blocks of it: a snapshot, as
    /// [`Counter::inspect`](crate::Counter::inspect).
    ///
    /// # Errors
    ///
    /// As [`Counter::inspect`](crate::Counter::inspect).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn inspect(&self) -> Result<RegisterInfo, Error> {
        self.inner.counter.inspect().await
    }

    /// Takes the next block in the background, unless that is being done.
    fn fetch(&self) -> Result<(), Error> {
        self.inner.counter.manager().ensure_runtime()?;
        if !self.inner.blocks.lock().begin_fetch() {
            return Ok(());
        }
        let mut fetching = Fetching { inner: Arc::clone(&self.inner), added: None };
        self.inner.counter.manager().spawn(async move {
            let size = i64::from(fetching.inner.size);
            fetching.added = Some(fetching.inner.counter.add(size).await);
            drop(fetching);
        });
        Ok(())
    }
}

/// A request for a block. However it ends, another one may follow.
struct Fetching {
    inner: Arc<IdBlocksInner>,
    /// The counter after the addition; `None` until there is an answer.
    added: Option<Result<i64, Error>>,
}

impl Drop for Fetching {
    /// Ends the request in one step: what comes between two may be another request.
    fn drop(&mut self) {
        self.inner.blocks.lock().end_fetch(self.inner.size, self.added.take());
        self.inner.arrived.notify_waiters();
    }
}

impl Debug for IdBlocks {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("IdBlocks")
            .field("path", self.path())
            .field("size", &self.inner.size)
            .finish_non_exhaustive()
    }
}
