//! The background thread of a blocking manager, or of all managers of a pool.

use std::convert::Infallible;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

use lockkeeper_core::{Error, Phase, Transitions, WholePath};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::error::{CannotBlock, NoThread};
use super::wait::{is_in_task, wait_for};

/// Keeps the thread of a manager running. Every type with blocking calls has one, and drops it last.
#[derive(Clone, Debug)]
pub(super) struct RuntimeThread(Arc<Running>);

#[derive(Debug)]
struct Running {
    runtime: Handle,
    thread: ThreadId,
    /// Dropped with the last handle: the thread waits for that.
    _in_use: oneshot::Sender<Infallible>,
}

/// Sends the managers of the thread to it. If it is dropped, there are none.
pub(super) type Client = oneshot::Sender<Vec<Transitions>>;

impl RuntimeThread {
    /// Starts the thread. It ends when the last handle is dropped and all managers are closed.
    pub(super) fn start() -> Result<(Self, Client), Error> {
        if is_in_task() {
            return Err(CannotBlock.into());
        }
        let failed = |error: std::io::Error| NoThread { cause: error.to_string() };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (in_use, unused) = oneshot::channel();
        let (client, follow) = oneshot::channel();
        let thread = thread::Builder::new().name("lockkeeper".to_owned()).spawn(move || {
            let (_unused, ()) = runtime.block_on(async { tokio::join!(unused, ended(follow)) });
            // A name look-up may take long, and no call waits for it any more.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(failed)?.thread().id();
        Ok((Self(Arc::new(Running { runtime: handle, thread, _in_use: in_use })), client))
    }

    /// Waits for a future that may take long. Refuses where a wait blocks other tasks.
    pub(super) fn block_checked<F: Future>(&self, work: F) -> Result<F::Output, CannotBlock> {
        self.may_block()?;
        Ok(self.run(work))
    }

    /// As [`block_checked`](Self::block_checked), for at most `timeout`. `waiting` is the phase of the error.
    pub(super) fn block_within<F: Future>(
        &self,
        timeout: Duration,
        work: F,
        waiting: &'static str,
        path: &WholePath,
    ) -> Result<F::Output, Error> {
        self.block_in_phase(timeout, work, Phase::Recipe(waiting.into()), path)
    }

    /// Waits for a call of the caller's, which may write, for at most `timeout`.
    pub(super) fn call_within<R>(
        &self,
        timeout: Duration,
        work: impl Future<Output = Result<R, Error>>,
        place: &'static Location<'static>,
    ) -> Result<R, Error> {
        self.block_in_phase(timeout, work, Phase::Call(place), &"/".into())?
    }

    fn block_in_phase<F: Future>(
        &self,
        timeout: Duration,
        work: F,
        phase: Phase,
        path: &WholePath,
    ) -> Result<F::Output, Error> {
        let limited = async { tokio::time::timeout(timeout, work).await };
        let late = |_| Error::Timeout { phase, path: path.clone(), waited: timeout };
        self.block_checked(limited)?.map_err(late)
    }

    /// Waits for a future that only waits for answers of the servers. `None` where the wait could never end.
    pub(super) fn block_always<F: Future>(&self, work: F) -> Option<F::Output> {
        self.can_block().then(|| self.run(work))
    }

    /// Refuses a wait within an async task, and where it could never end.
    pub(super) fn may_block(&self) -> Result<(), CannotBlock> {
        let may = self.can_block() && !is_in_task();
        may.then_some(()).ok_or(CannotBlock)
    }

    /// Whether a wait can end: not on the background thread itself, and not without the thread's locals.
    fn can_block(&self) -> bool {
        let is_ending = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        !is_ending && thread::current().id() != self.0.thread
    }

    /// Call it only where the thread [can block](Self::can_block).
    pub(super) fn run<F: Future>(&self, work: F) -> F::Output {
        // Timers and tasks belong to our thread, whichever runtime is current.
        let _entered = self.0.runtime.enter();
        wait_for(work)
    }
}

/// Waits until the managers that are sent have closed. Returns at once if none is sent.
async fn ended(client: oneshot::Receiver<Vec<Transitions>>) {
    for mut transitions in client.await.unwrap_or_default() {
        while transitions.next().await.is_some() {}
    }
}
