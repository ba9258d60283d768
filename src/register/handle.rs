use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::batch::{ChangeQueue, ChangeRequest, Decide};
use super::decide::{Change, Current};
use super::decision::Decision;
use super::memory::{Memory, RegisterInner, RegisterState};
use super::worker;
use crate::environment::ensure_runtime;
use crate::error::{ConfigError, Error, Operation, Phase};
use crate::manager::ConnectionManager;
use crate::telemetry::timers::UpdateTimer;
use crate::time::deadline::Deadline;
use crate::znode::path::{IntoPath, ZnodePath};
use crate::znode::zxid::Zxid;

/// One node whose changes are applied exactly once, for authors of recipes.
///
/// A clone is the same register. The changes of one register are applied one after the other; a register with
/// [`combining`](Self::combining) applies the changes that wait together in one transaction.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
/// use lockkeeper_core::{Change, Register};
///
/// let letters = Register::new(&manager, "/letters")?;
/// for letter in ["a", "b"] {
///     letters
///         .update(move |current| {
///             let before = current.data().unwrap_or_default();
///             (Change::Write([before, letter.as_bytes()].concat()), ())
///         })
///         .await?;
/// }
/// let (all, _) = letters.read(|current| current.data().map(<[u8]>::to_vec)).await?;
/// assert_eq!(all.as_deref(), Some(&b"ab"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Register {
    pub(super) inner: Arc<RegisterInner>,
}

impl Register {
    /// A register at `path`, below the manager's chroot. Nothing is sent. The first change creates the node
    /// if it does not exist, and its missing parents.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `path` is no path.
    pub fn new(manager: &ConnectionManager, path: impl IntoPath) -> Result<Self, Error> {
        let path = path.into_path()?;
        let full = manager.full_path(&path)?;
        if full.is_root() {
            let (value, advice) = (path.to_string(), "name a node below the root");
            return Err(ConfigError::Setting { name: "path", value, advice }.into());
        }
        let state = RegisterState { queue: ChangeQueue::default(), memory: Some(Memory::default()) };
        let (state, manager) = (Mutex::new(state), manager.clone());
        let inner = RegisterInner { state, path, full, combines: false, metric_name: "register", manager };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A new register of the same node that applies all changes that wait in one transaction. The state
    /// between two of them never exists on the servers.
    #[must_use]
    pub fn combining(self) -> Self {
        self.with(|inner| inner.combines = true)
    }

    /// The name of the recipe in metrics and spans. Default: `register`.
    #[must_use]
    pub fn with_metric_name(self, name: &'static str) -> Self {
        self.with(|inner| inner.metric_name = name)
    }

    fn with(self, set: impl FnOnce(&mut RegisterInner)) -> Self {
        let mut inner = RegisterInner {
            state: Mutex::new(RegisterState {
                queue: ChangeQueue::default(),
                memory: Some(Memory::default()),
            }),
            path: self.inner.path.clone(),
            full: self.inner.full.clone(),
            combines: self.inner.combines,
            metric_name: self.inner.metric_name,
            manager: self.inner.manager.clone(),
        };
        set(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// The path of the node, below the manager's chroot.
    #[must_use]
    pub fn path(&self) -> &ZnodePath {
        &self.inner.path
    }

    /// The manager.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.inner.manager
    }

    /// Decides a change from the node, and applies it exactly once. Returns the value that `decide` returned
    /// for the state from which the change was applied, and the zxid of the write, or of the state if nothing
    /// was to be written.
    ///
    /// `decide` may be called several times, and must depend on its argument alone. If it panics, nothing is
    /// written for this call, and the call panics.
    ///
    /// # Ordering
    ///
    /// Linearizable: the change takes effect at one instant between the call and its end. That holds also if
    /// nothing is to be written: the quorum is asked then, too.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`]: the change may be applied. [`Error::Timeout`], [`Error::Refused`],
    /// [`Error::Config`] (the data is too large, or no tokio runtime): it is not applied.
    /// [`Error::ServersReset`]: the servers have lost data, and the change is not applied.
    /// [`Error::Closed`] after a shutdown.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session. If the session ends before the answer, the writer node of the old
    /// session tells the outcome if it still exists, and otherwise the node does if it is unchanged since
    /// all attempts that had no answer. If neither does, the outcome is unknown; that of a change that was to
    /// create the node is so without the writer node.
    ///
    /// # Cancel safety
    ///
    /// The change of a dropped call may be applied, once. A call that still waits for its turn is not
    /// applied.
    pub async fn update<T: Send + 'static>(
        &self,
        decide: impl FnMut(Current<'_>) -> (Change, T) + Send + 'static,
    ) -> Result<(T, Zxid), Error> {
        if let Some(reset) = self.manager().servers_reset() {
            return Err(reset.error(self.inner.full.as_str()));
        }
        let outcome = Decision::default();
        let decide = outcome.recorded(decide);
        let zxid = self.submit(decide, false).await?;
        if let Some(reset) = self.manager().servers_reset() {
            // What was written, and its zxid, may go back behind what this process has seen.
            let (path, cause) = (self.inner.full.as_str(), reset.error(self.inner.full.as_str()).to_string());
            return Err(Error::Unknown { operation: Operation::Write, path: path.into(), cause });
        }
        outcome.take().map(|value| (value, zxid)).ok_or_else(|| self.task_ended())
    }

    /// Reads the node: what `read` returns for its present state, and the zxid of the last write of it, 0 if
    /// the node does not exist.
    ///
    /// # Ordering
    ///
    /// As [`update`](Self::update): a read behind a transaction of one check, which the servers propose as
    /// any other write. It shows every write that ended before.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`], [`Error::Refused`] (no right to read), [`Error::Closed`] after a shutdown, and
    /// [`Error::Config`] without a tokio runtime.
    ///
    /// # Session loss
    ///
    /// Goes on in the next session.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the call changes nothing.
    pub async fn read<T: Send + 'static>(
        &self,
        mut read: impl FnMut(Current<'_>) -> T + Send + 'static,
    ) -> Result<(T, Zxid), Error> {
        let outcome = Decision::default();
        let decide = outcome.recorded(move |current| (Change::Keep, read(current)));
        let zxid = self.submit(decide, true).await?;
        outcome.take().map(|value| (value, zxid)).ok_or_else(|| self.task_ended())
    }

    async fn submit(&self, decide: Decide, is_read: bool) -> Result<Zxid, Error> {
        let inner = &self.inner;
        let timer =
            UpdateTimer::begin(inner.manager.environment(), inner.metric_name, inner.full.as_str(), is_read);
        let deadline = Deadline::after(inner.manager.operation_timeout());
        let (done, answer) = oneshot::channel();
        let answered = self
            .queue_up(
                ChangeRequest { number: 0, decide, is_read, was_put_back: false, deadline, done: Some(done) },
                answer,
            )
            .await;
        timer.end(&answered);
        answered
    }

    async fn queue_up(
        &self,
        request: ChangeRequest,
        mut answer: oneshot::Receiver<Result<Zxid, Error>>,
    ) -> Result<Zxid, Error> {
        let (inner, deadline) = (&self.inner, request.deadline);
        // The time limit needs a runtime, also while the task of another call runs on one.
        ensure_runtime()?;
        let (number, memory) = {
            let mut state = inner.state.lock();
            (state.queue.push(request), state.memory.take())
        };
        if let Some(memory) = memory {
            worker::start(inner, memory);
        }
        let answered = tokio::select! {
            biased;
            answered = &mut answer => Some(answered),
            () = deadline.passed() => None,
        };
        let answered = match answered {
            Some(answered) => answered,
            None if inner.state.lock().queue.remove(number) => {
                let (path, waited) = (inner.full.as_str().into(), deadline.waited());
                return Err(Error::Timeout { phase: Phase::Connecting, path, waited });
            }
            // The task answers at the deadline.
            None => answer.await,
        };
        answered.unwrap_or_else(|_| Err(self.task_ended()))
    }

    /// The error if the task ended without an answer: its runtime was shut down.
    fn task_ended(&self) -> Error {
        Error::Unknown {
            operation: Operation::Write,
            path: self.inner.full.as_str().into(),
            cause: "the task of this register has ended".to_owned(),
        }
    }
}

impl Debug for Register {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Register").field("path", &self.inner.path).finish_non_exhaustive()
    }
}
