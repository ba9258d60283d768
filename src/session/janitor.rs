//! Deletes nodes that no task waits for: those of dropped guards, of cancelled waits and of creates without
//! an answer.
//!
//! Each function may be called from anywhere, also from `Drop`. A job is repeated until the node is deleted
//! or its session is over, which deletes the node as well.

use tracing::{debug, error};

use super::cleanup_jobs::PendingGuard;
use super::handle::Session;
use super::lost_create;

use crate::config::retry::RetryPauses;
use crate::error::{Outcome, Refusal};
use crate::time::deadline::Deadline;
use crate::wire::{Created, Reply, WireError};
use crate::znode::name::CreateId;
use crate::znode::path::ZnodePath;

/// The pause before each search for the node of a create without an answer, in session timeouts.
const SEARCH_PAUSES: [u32; 5] = [0, 1, 1, 2, 4];

/// The number of searches during which such a job counts as pending.
const SEARCHES_PENDING: usize = 2;

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

/// Deletes a node. The first request is sent before this function returns, so the server processes it before
/// a later create of the same session.
pub(crate) fn delete(session: &Session, path: &str) {
    delete_sent(session, path, session.write(|wire| wire.delete(path, None)));
}

/// Ensures that a delete that is in flight succeeds, or is repeated.
pub(crate) fn delete_sent(session: &Session, path: &str, reply: Reply<()>) {
    let job = |pending| run_delete(pending, session.clone(), path.to_owned(), reply);
    session.cleanup_jobs().submit(path, job);
}

/// Ensures that a create of unknown outcome, for which no task waits, leaves no node. Its reply may still
/// come.
pub(crate) fn clean_unresolved(
    session: &Session,
    directory: &ZnodePath,
    create_id: CreateId,
    reply: Option<Reply<Created>>,
) {
    let job = |pending| run_search(pending, session.clone(), directory.clone(), create_id, reply);
    session.cleanup_jobs().submit(create_id, job);
}

/// Deletes the node at `path` if the session owns it, and never one of another session. The node has no
/// sequence number, so other sessions may create it as well.
///
/// `seen` is the version of our node, if it is known. `in_doubt`: a create without an answer may be applied
/// late. `done` is called when no node of the session exists at the path.
pub(crate) fn delete_own(
    session: &Session,
    path: &str,
    seen: Option<SeenVersion>,
    in_doubt: bool,
    done: Box<dyn FnOnce() + Send>,
) {
    let job = |pending| run_delete_own(pending, session.clone(), path.to_owned(), seen, in_doubt, done);
    session.cleanup_jobs().submit(path, job);
}

/// As [`delete_own`], for a node that transactions create which check the node at `rests_on`. If that is
/// given, it is deleted first: so no such transaction is applied later.
pub(crate) fn delete_named(
    session: &Session,
    path: &str,
    rests_on: Option<&str>,
    done: impl FnOnce() + Send + 'static,
) {
    let (path, rests_on, of) = (path.to_owned(), rests_on.map(str::to_owned), session.clone());
    session.cleanup_jobs().submit(path.clone(), |pending| async move {
        if let Some(rests_on) = rests_on {
            delete_until_gone(&of, &rests_on, None).await;
        }
        run_delete_own(pending, of, path, None, false, Box::new(done)).await;
    });
}

async fn run_delete(_pending: PendingGuard, session: Session, path: String, reply: Reply<()>) {
    delete_until_gone(&session, &path, Some(reply)).await;
}

async fn run_delete_own(
    _pending: PendingGuard,
    session: Session,
    path: String,
    seen: Option<SeenVersion>,
    in_doubt: bool,
    done: Box<dyn FnOnce() + Send>,
) {
    delete_own_until_gone(&session, &path, seen).await;
    if in_doubt {
        // As for an unresolved create: after a session timeout it has arrived, or is lost.
        tokio::select! {
            biased;
            () = tokio::time::sleep(session.timeout()) => delete_own_until_gone(&session, &path, None).await,
            _ = session.ended() => {}
        }
    }
    session.node_bytes().forget(&path);
    done();
}

/// Deletes the node at `path` until no node of the session is there. Each delete has the version of a node
/// that the session owns: an answer may be lost, and another session may have the path by then.
async fn delete_own_until_gone(session: &Session, path: &str, mut seen: Option<SeenVersion>) {
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

async fn delete_until_gone(session: &Session, path: &str, mut sent: Option<Reply<()>>) {
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

async fn run_search(
    pending: PendingGuard,
    session: Session,
    directory: ZnodePath,
    create_id: CreateId,
    sent: Option<Reply<Created>>,
) {
    let mut pending = Some(pending);
    if let Some(mut reply) = sent {
        match session.await_reply(&mut reply, Deadline::never()).await {
            Ok(created) => return delete_until_gone(&session, &created.path, None).await,
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
            session.node_bytes().create_left_nothing(&directory, create_id);
            pending = None;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep(session.timeout() * timeouts) => {}
            _ = session.ended() => return,
        }
        let mut pauses = session.settings().retry.start();
        let found = loop {
            match lost_create::find(&session, &directory, create_id).await {
                Ok(found) => break found,
                Err(refusal) => {
                    error!(%directory, %refusal, "a node that may exist cannot be searched for");
                }
            }
            if !pause(&session, &mut pauses).await {
                return;
            }
        };
        if let Some(found) = found {
            delete_until_gone(&session, &found, None).await;
            break;
        }
    }
    session.node_bytes().create_left_nothing(&directory, create_id);
    drop(pending);
}

/// Pauses before the next attempt. Returns `false` if the session ended meanwhile.
async fn pause(session: &Session, pauses: &mut RetryPauses) -> bool {
    session.pause(pauses.next(), Deadline::never()).await;
    session.loss().is_none()
}
