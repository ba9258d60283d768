use crate::backend::{CreateMode, Created, Reply, Stat, WireError};
use crate::deadline::Deadline;
use crate::error::Outcome;
use crate::path::ZnodePath;
use crate::session::Session;

use super::name::{Label, Protection};

/// A node that was asked for and, from the moment the request is sent, is never forgotten.
///
/// Dropped at any point, it leaves the rest to the janitor: a reply that is still coming, an outcome that is not
/// known, a node that stands.
pub(super) struct Claim {
    session: Session,
    directory: ZnodePath,
    protection: Protection,
    state: State,
}

enum State {
    /// The create is on its way.
    Asked(Reply<Created>),
    /// The create's answer did not come: the node may stand, or still come to stand.
    Unresolved,
    /// The node stands, as far as we know.
    Standing(String),
    /// Its delete is on its way.
    Leaving { path: String, reply: Reply<()> },
    /// There is no node.
    Over,
}

impl Claim {
    /// Sends the create.
    pub(super) fn ask(session: &Session, directory: &ZnodePath, label: Label, data: &[u8]) -> Self {
        let protection = Protection::new();
        let path = directory.listed_child(&protection.name(label));
        let reply = session.create(&path, data, CreateMode::EphemeralSequential);
        Self {
            session: session.clone(),
            directory: directory.clone(),
            protection,
            state: State::Asked(reply),
        }
    }

    /// Waits for the create's answer. Cancel safe.
    pub(super) async fn answered(&mut self, deadline: Deadline) -> Result<Created, WireError> {
        let State::Asked(reply) = &mut self.state else {
            return Err(WireError::Broken("the create was answered already".to_owned()));
        };
        let result = self.session.answer(reply, deadline).await;
        match &result {
            Ok(created) => self.state = State::Standing(created.path.clone()),
            // The reply may still come: it stays here, for the janitor.
            Err(WireError::Timeout) => {}
            Err(WireError::SessionEnded(_)) => self.state = State::Over,
            Err(error) if error.outcome() == Outcome::NotApplied => self.state = State::Over,
            Err(_) => self.state = State::Unresolved,
        }
        result
    }

    /// Takes the node found at `path` for the one this claim made: its session is ours.
    pub(super) fn found(&mut self, path: String) {
        self.state = State::Standing(path);
    }

    pub(super) fn protection(&self) -> Protection {
        self.protection
    }

    /// Deletes the node and waits for the answer. `Ok(false)` when it was gone already.
    ///
    /// Without a definite answer the janitor goes on.
    pub(super) async fn delete(mut self, deadline: Deadline) -> Result<bool, WireError> {
        let State::Standing(path) = std::mem::replace(&mut self.state, State::Over) else {
            return Ok(false);
        };
        let reply = self.session.write(|wire| wire.delete(&path, None));
        self.state = State::Leaving { path, reply };
        let State::Leaving { reply, .. } = &mut self.state else {
            return Ok(false);
        };
        let result = self.session.answer(reply, deadline).await;
        match result {
            Ok(()) => {
                self.state = State::Over;
                Ok(true)
            }
            Err(WireError::Refused(crate::error::Refusal::NoNode)) => {
                self.state = State::Over;
                Ok(false)
            }
            Err(error) => {
                if error != WireError::Timeout {
                    self.retry_delete();
                }
                Err(error)
            }
        }
    }

    /// The reply is spent; the delete has to be sent again.
    fn retry_delete(&mut self) {
        if let State::Leaving { path, .. } = std::mem::replace(&mut self.state, State::Over) {
            self.session.janitor().delete_sent(&self.session, &path, None);
        }
    }

    /// The node is known to be gone.
    pub(super) fn is_gone(&mut self) {
        self.state = State::Over;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let (session, janitor) = (&self.session, self.session.janitor());
        if session.loss().is_some() {
            return;
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Asked(reply) => janitor.disown(session, &self.directory, self.protection, Some(reply)),
            State::Unresolved => janitor.disown(session, &self.directory, self.protection, None),
            State::Standing(path) => janitor.delete(session, &path),
            State::Leaving { path, reply } => janitor.delete_sent(session, &path, Some(reply)),
            State::Over => {}
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Asked(_) => "asked",
            State::Unresolved => "unresolved",
            State::Standing(path) | State::Leaving { path, .. } => path,
            State::Over => "over",
        };
        formatter.debug_tuple("Claim").field(&state).finish()
    }
}

/// The creation zxid, if the server told one.
pub(super) fn czxid(stat: Option<&Stat>) -> Option<i64> {
    stat.map(|stat| stat.czxid).filter(|czxid| *czxid > 0)
}
