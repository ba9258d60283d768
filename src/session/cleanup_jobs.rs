//! The way of a job to the task that runs it in the background.
//!
//! A job is submitted through a channel, from anywhere: `Drop` neither blocks nor needs a runtime.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tracing::debug;

use crate::telemetry::metrics;

/// Accepts jobs.
#[derive(Clone, Debug)]
pub(crate) struct CleanupJobs {
    jobs: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
    pending: PendingJobs,
}

/// The number of jobs that are not done.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingJobs(Arc<AtomicU32>);

impl PendingJobs {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn add(&self) -> PendingGuard {
        self.0.fetch_add(1, Ordering::AcqRel);
        metrics::pending_deletes(1.0);
        PendingGuard(self.clone())
    }
}

/// Counts one job until it is dropped.
#[derive(Debug)]
pub(super) struct PendingGuard(PendingJobs);

impl Drop for PendingGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
        metrics::pending_deletes(-1.0);
    }
}

/// Runs the jobs.
pub(crate) struct CleanupWorker {
    receiver: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
}

impl CleanupJobs {
    pub(crate) fn new(pending: PendingJobs) -> (Self, CleanupWorker) {
        let (jobs, receiver) = mpsc::unbounded_channel();
        (Self { jobs, pending }, CleanupWorker { receiver })
    }

    /// Submits the job that deletes `what`. It counts as pending until it drops its guard.
    pub(super) fn submit<J>(&self, what: impl Display, job: impl FnOnce(PendingGuard) -> J)
    where
        J: Future<Output = ()> + Send + 'static,
    {
        // The manager's task has ended, so its sessions are closed, and their nodes are deleted with them.
        if self.jobs.send(job(self.pending.add()).boxed()).is_err() {
            debug!(job = %what, "the manager has ended; the end of its session deletes the node");
        }
    }
}

impl CleanupWorker {
    /// Runs jobs as long as it is polled.
    pub(crate) async fn run(mut self) {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                job = self.receiver.recv() => match job {
                    Some(job) => open.push(job),
                    None => break,
                },
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    }
}
