//! The thread behind a blocking manager, or behind those of a pool.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use lockkeeper_core::{ConfigError, ConnectError, Transitions};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::wait::{is_in_task, wait_for};

/// Keeps the thread of a manager running. Everything that may come to wait has one, and drops it last.
#[derive(Clone, Debug)]
pub(super) struct RuntimeThread(Arc<Running>);

#[derive(Debug)]
struct Running {
    runtime: Handle,
    thread: ThreadId,
    /// Dropped with the last driver: what the thread waits for.
    _in_use: oneshot::Sender<Infallible>,
}

/// Where to tell the thread of the managers it is for. Dropped, there are none.
pub(super) type Client = oneshot::Sender<Vec<Transitions>>;

impl RuntimeThread {
    /// Starts the thread. It ends when the last driver is gone, and then its client has come to its end.
    pub(super) fn start() -> Result<(Self, Client), ConnectError> {
        if is_in_task() {
            return Err(ConfigError::CannotBlock.into());
        }
        let failed = |error: std::io::Error| ConnectError::NoThread { cause: error.to_string() };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (in_use, unused) = oneshot::channel();
        let (client, follow) = oneshot::channel();
        let thread = thread::Builder::new().name("lockkeeper".to_owned()).spawn(move || {
            let (_unused, ()) = runtime.block_on(async { tokio::join!(unused, ended(follow)) });
            // A look-up of a name may take long, and nobody waits for it any more.
            runtime.shutdown_background();
        });
        let thread = thread.map_err(failed)?.thread().id();
        Ok((Self(Arc::new(Running { runtime: handle, thread, _in_use: in_use })), client))
    }

    /// Waits for what may take long, where waiting is right.
    pub(super) fn block_checked<F: Future>(&self, work: F) -> Result<F::Output, ConfigError> {
        self.may_block()?;
        Ok(self.run(work))
    }

    /// Waits for what the servers alone may hold up. `None` where the wait could never end.
    pub(super) fn block_always<F: Future>(&self, work: F) -> Option<F::Output> {
        self.can_block().then(|| self.run(work))
    }

    /// Whether this is a place for waiting.
    pub(super) fn may_block(&self) -> Result<(), ConfigError> {
        let may = self.can_block() && !is_in_task();
        may.then_some(()).ok_or(ConfigError::CannotBlock)
    }

    /// Not on the thread that would have to do the work, and not without the thread's locals.
    fn can_block(&self) -> bool {
        let is_ending = Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed());
        !is_ending && thread::current().id() != self.0.thread
    }

    /// To be called where it [can](Self::can_block).
    pub(super) fn run<F: Future>(&self, work: F) -> F::Output {
        // Timers and tasks belong to our thread, whatever runtime is around.
        let _entered = self.0.runtime.enter();
        wait_for(work)
    }
}

/// The managers that are told have closed; none has if none is.
async fn ended(client: oneshot::Receiver<Vec<Transitions>>) {
    for mut transitions in client.await.unwrap_or_default() {
        while transitions.next().await.is_some() {}
    }
}
