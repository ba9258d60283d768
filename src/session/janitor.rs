//! Deletes nodes that no task waits for: those of dropped guards, of cancelled waits and of creates without
//! an answer.
//!
//! A job is submitted through a channel, from anywhere: `Drop` neither blocks nor needs a runtime. A job is
//! repeated until the node is deleted or its session is over, which deletes the node as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tracing::{debug, error};

use crate::config::retry::RetryPauses;
use crate::error::{Outcome, Refusal};
use crate::session::{Session, lost_create};
use crate::telemetry::metrics;
use crate::time::deadline::Deadline;
use crate::wire::{Created, Reply, WireError};
use crate::znode::name::CreateId;
use crate::znode::path::ZnodePath;

/// The pause before each search for the node of a create without an answer, in session timeouts.
const SEARCH_PAUSES: [u32; 5] = [0, 1, 1, 2, 4];

/// The number of searches during which such a job counts as pending.
const SEARCHES_PENDING: usize = 2;

/// Accepts jobs.
#[derive(Clone, Debug)]
pub(crate) struct Janitor {
    jobs: mpsc::UnboundedSender<(CleanupJob, PendingGuard)>,
    pending: Pending,
}

/// The number of jobs that are not done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(Arc<AtomicU32>);

impl Pending {
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
struct PendingGuard(Pending);

impl Drop for PendingGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
        metrics::pending_deletes(-1.0);
    }
}

/// Runs the jobs.
pub(crate) struct CleanupWorker {
    receiver: mpsc::UnboundedReceiver<(CleanupJob, PendingGuard)>,
}

enum CleanupJob {
    /// A node to be deleted. Its first delete is in flight.
    Delete { session: Session, path: String, reply: Reply<()> },
    /// A create that no task waits for. Its reply may still come.
    CleanUnresolved {
        session: Session,
        directory: ZnodePath,
        create_id: CreateId,
        reply: Option<Reply<Created>>,
    },
    /// A node without a sequence number, which other sessions may create as well.
    DeleteOwn {
        session: Session,
        path: String,
        seen: Option<SeenVersion>,
        /// A create without an answer may be applied late.
        in_doubt: bool,
        /// Called when no node of the session exists at the path.
        done: Box<dyn FnOnce() + Send>,
    },
}

/// The version of a node that the session owns, and the connection over which this was seen.
///
/// A delete by a version has no regard to the owner. So it is sent only over the same connection: one that is
/// sent while the link is down reaches the server at the next connect, and the path may have the node of
/// another session by then, with the same version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenVersion {
    pub(crate) version: i32,
    pub(crate) connection: u64,
}

impl std::fmt::Debug for CleanupJob {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Delete { path, .. } => formatter.debug_tuple("Delete").field(path).finish(),
            Self::DeleteOwn { path, .. } => formatter.debug_tuple("DeleteOwn").field(path).finish(),
            Self::CleanUnresolved { create_id, .. } => {
                formatter.debug_tuple("CleanUnresolved").field(&create_id.to_string()).finish()
            }
        }
    }
}

impl Janitor {
    pub(crate) fn new(pending: Pending) -> (Self, CleanupWorker) {
        let (jobs, receiver) = mpsc::unbounded_channel();
        (Self { jobs, pending }, CleanupWorker { receiver })
    }

    /// Deletes a node. The first request is sent before this function returns, so the server processes it
    /// before a later create of the same session.
    pub(crate) fn delete(&self, session: &Session, path: &str) {
        let reply = session.write(|wire| wire.delete(path, None));
        self.delete_sent(session, path, reply);
    }

    /// Ensures that a delete that is in flight succeeds, or is repeated.
    pub(crate) fn delete_sent(&self, session: &Session, path: &str, reply: Reply<()>) {
        self.submit(CleanupJob::Delete { session: session.clone(), path: path.to_owned(), reply });
    }

    /// Ensures that a create of unknown outcome leaves no node.
    pub(crate) fn clean_unresolved(
        &self,
        session: &Session,
        directory: &ZnodePath,
        create_id: CreateId,
        reply: Option<Reply<Created>>,
    ) {
        self.submit(CleanupJob::CleanUnresolved {
            session: session.clone(),
            directory: directory.clone(),
            create_id,
            reply,
        });
    }

    /// Deletes the node at `path` if the session owns it, and never one of another session. `seen` is the
    /// version of our node, if it is known.
    pub(crate) fn delete_own(
        &self,
        session: &Session,
        path: &str,
        seen: Option<SeenVersion>,
        in_doubt: bool,
        done: Box<dyn FnOnce() + Send>,
    ) {
        let (session, path) = (session.clone(), path.to_owned());
        self.submit(CleanupJob::DeleteOwn { session, path, seen, in_doubt, done });
    }

    fn submit(&self, job: CleanupJob) {
        // The manager's task has ended, so its sessions are closed, and their nodes are deleted with them.
        if let Err(late) = self.jobs.send((job, self.pending.add())) {
            debug!(job = ?late.0.0, "the manager has ended; the end of its session deletes the node");
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
                    Some((job, guard)) => open.push(run_job(job, guard)),
                    None => break,
                },
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    }
}

async fn run_job(job: CleanupJob, guard: PendingGuard) {
    match job {
        CleanupJob::Delete { session, path, reply } => delete(&session, &path, Some(reply)).await,
        CleanupJob::CleanUnresolved { session, directory, create_id, reply } => {
            clean_unresolved(&session, &directory, create_id, reply, guard).await;
        }
        CleanupJob::DeleteOwn { session, path, seen, in_doubt, done } => {
            delete_own(&session, &path, seen).await;
            if in_doubt {
                // As for an unresolved create: after a session timeout it has arrived, or is lost.
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(session.timeout()) => delete_own(&session, &path, None).await,
                    _ = session.ended() => {}
                }
            }
            session.node_bytes().forget(&path);
            done();
        }
    }
}

/// Deletes the node at `path` until no node of the session is there. Each delete has the version of a node
/// that the session owns: an answer may be lost, and another session may have the path by then.
async fn delete_own(session: &Session, path: &str, mut seen: Option<SeenVersion>) {
    let mut pauses = session.settings().retry.start();
    loop {
        let connection = session.live_connection();
        let error = match seen.take().filter(|seen| connection == Some(seen.connection)) {
            Some(SeenVersion { version, .. }) => {
                let mut reply = session.write(|wire| wire.delete(path, Some(version)));
                match session.await_reply(&mut reply, Deadline::never()).await {
                    Ok(()) | Err(WireError::Refused(Refusal::NoNode) | WireError::SessionEnded(_)) => return,
                    Err(WireError::Refused(Refusal::BadVersion)) => continue,
                    Err(error) => error,
                }
            }
            None => {
                let mut sync = session.quorum_sync();
                let mut reply = session.read(|wire| wire.exists(path));
                let synced = session.await_reply(&mut sync, Deadline::never()).await;
                match (synced, session.await_reply(&mut reply, Deadline::never()).await) {
                    (Ok(()), Ok(Some(stat))) if stat.ephemeral_owner == session.id() => {
                        let of = |connection| SeenVersion { version: stat.version, connection };
                        seen = connection.map(of);
                        continue;
                    }
                    (Ok(()), Ok(_)) | (_, Err(WireError::SessionEnded(_))) => return,
                    (Err(error), _) | (_, Err(error)) => error,
                }
            }
        };
        match error {
            WireError::Refused(refusal) if !refusal.is_transient() => {
                error!(path, %refusal, "a node cannot be deleted and exists until its session ends");
            }
            error => debug!(path, %error, "deleting again"),
        }
        if !pause(session, &mut pauses).await {
            return;
        }
    }
}

async fn delete(session: &Session, path: &str, mut sent: Option<Reply<()>>) {
    let mut pauses = session.settings().retry.start();
    loop {
        let mut reply = sent.take().unwrap_or_else(|| session.write(|wire| wire.delete(path, None)));
        match session.await_reply(&mut reply, Deadline::never()).await {
            Ok(()) | Err(WireError::Refused(Refusal::NoNode) | WireError::SessionEnded(_)) => return,
            Err(WireError::Refused(refusal)) if !refusal.is_transient() => {
                error!(path, %refusal, "a node cannot be deleted and exists until its session ends");
            }
            Err(error) => debug!(path, %error, "deleting again"),
        }
        if !pause(session, &mut pauses).await {
            return;
        }
    }
}

async fn clean_unresolved(
    session: &Session,
    directory: &ZnodePath,
    create_id: CreateId,
    sent: Option<Reply<Created>>,
    guard: PendingGuard,
) {
    let mut pending = Some(guard);
    if let Some(mut reply) = sent {
        match session.await_reply(&mut reply, Deadline::never()).await {
            Ok(created) => return delete(session, &created.path, None).await,
            Err(WireError::SessionEnded(_)) => return,
            Err(error) if error.outcome() == Outcome::NotApplied => return,
            // This is safe without an answer, too: the search is sent after the create.
            Err(error) => debug!(%directory, %error, "searching for a node that may have been created"),
        }
    }
    // A search without a result proves nothing yet. The server of the old connection may still apply a
    // request that it has read, or a follower may be behind. After a session timeout every request in flight
    // has arrived or is lost: the later searches are for servers that are slower than that, because the node
    // would block all contenders as long as this session lives.
    for (search, timeouts) in SEARCH_PAUSES.into_iter().enumerate() {
        if search == SEARCHES_PENDING {
            session.node_bytes().create_left_nothing(directory, create_id);
            pending = None;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(session.timeout() * timeouts) => {}
            _ = session.ended() => return,
        }
        let mut pauses = session.settings().retry.start();
        let found = loop {
            match lost_create::find(session, directory, create_id).await {
                Ok(found) => break found,
                Err(refusal) => {
                    error!(%directory, %refusal, "a node that may exist cannot be searched for");
                }
            }
            if !pause(session, &mut pauses).await {
                return;
            }
        };
        if let Some(found) = found {
            delete(session, &found, None).await;
            break;
        }
    }
    session.node_bytes().create_left_nothing(directory, create_id);
    drop(pending);
}

/// Pauses before the next attempt. Returns `false` if the session ended meanwhile.
async fn pause(session: &Session, pauses: &mut RetryPauses) -> bool {
    session.pause(pauses.next(), Deadline::never()).await;
    session.loss().is_none()
}
