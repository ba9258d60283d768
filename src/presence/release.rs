//! The end of a presence: deletes its node, and says so when none is left.

use tokio::sync::oneshot;
use tracing::debug;

use super::decide::Leftover;
use super::requests;
use super::state::PresenceState;
use super::task::Task;
use crate::error::{Error, LossReason, Operation};
use crate::session::Session;
use crate::session::janitor::{self, SeenVersion};
use crate::time::deadline::Deadline;
use crate::time::fractions;

impl Task {
    /// Deletes what may exist, and answers the release once no node of this manager is at the path.
    pub(super) async fn end(&mut self) {
        let session = self.place.as_ref().map(|(session, _)| session.clone());
        let session = session.or_else(|| self.manager.present_session());
        let left = self.leave();
        let state = *self.state.borrow();
        if !state.is_final() {
            self.enter(PresenceState::Closed);
        }
        let Some(mut release) = self.release.take() else { return };
        let answer = async {
            if let Some(left) = left {
                // An error: the manager has ended, and with it the job of the janitor.
                left.await.ok()?;
            }
            Some(self.until_gone(session).await)
        };
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            () = release.closed() => return,
        };
        let _ = answer.map(|answer| release.send(answer));
    }

    /// Deletes the node of the current session, through the janitor. The path is free afterwards, which the
    /// receiver is told.
    pub(super) fn leave(&mut self) -> Option<oneshot::Receiver<()>> {
        let (session, turn) = self.place.take()?;
        let unanswered = self.is_sending.then_some(Leftover { version: None, in_doubt: true });
        let Some(Leftover { version, in_doubt }) = unanswered.or_else(|| self.engine.leftover()) else {
            session.node_bytes().forget(self.path.as_str());
            return None;
        };
        let (left, leaving) = oneshot::channel();
        let done = move || {
            drop(turn);
            let _ = left.send(());
        };
        let seen =
            version.zip(self.seen_over).map(|(version, connection)| SeenVersion { version, connection });
        janitor::delete_own(&session, self.path.as_str(), seen, in_doubt, Box::new(done));
        Some(leaving)
    }

    /// Waits until the node of an earlier session of this manager is gone, if there is one. The server
    /// deletes it when it ends that session; a delete by path might hit the node of another process.
    async fn until_gone(&self, session: Option<Session>) -> Result<(), Error> {
        let Some(session) = session else { return Err(self.not_deleted(LossReason::SessionExpired)) };
        let earlier = self.table.earlier_than(session.id());
        loop {
            if let Some(reason) = session.loss() {
                return Err(self.not_deleted(reason));
            }
            if earlier.is_empty() {
                return Ok(());
            }
            match requests::owner(&session, &self.path).await {
                Ok(Some(owner)) if earlier.contains(&owner) => {
                    debug!(path = %self.path, owner, "a node of an earlier session is not deleted yet");
                    let pause = fractions::poll_interval(session.timeout());
                    tokio::select! {
                        biased;
                        _ = session.ended() => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                }
                Ok(_) => return Ok(()),
                Err(error) => {
                    debug!(path = %self.path, %error, "looking again");
                    session.backoff(Deadline::never()).await;
                }
            }
        }
    }

    /// The session ended before a delete was confirmed. The server deletes the node with the session.
    fn not_deleted(&self, reason: LossReason) -> Error {
        let (operation, path) = (Operation::Delete, self.path.as_str().into());
        Error::Unknown { operation, path, cause: reason.to_string() }
    }
}
