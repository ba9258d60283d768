use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::attached::Attached;
use super::servers::Servers;

/// Where the requests of a session go: to its client, or nowhere while the session moves to other servers.
pub(super) struct Route(RwLock<Present>);

struct Present {
    attached: Arc<Attached>,
    servers: Arc<Servers>,
    /// Cancelled when the move is over, if the session moves.
    moving: Option<CancellationToken>,
}

impl Route {
    pub(super) fn new(attached: Attached, servers: Arc<Servers>) -> Self {
        Self(RwLock::new(Present { attached: Arc::new(attached), servers, moving: None }))
    }

    /// The client; what is cancelled when there is one again, while the session moves.
    pub(super) fn attached(&self) -> Result<Arc<Attached>, CancellationToken> {
        let present = self.0.read();
        present.moving.clone().map_or_else(|| Ok(Arc::clone(&present.attached)), Err)
    }

    pub(super) fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.0.read().servers)
    }

    /// `None` while the session moves, otherwise what `read` returns. No move begins or ends meanwhile.
    pub(super) fn while_attached<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
        let present = self.0.read();
        present.moving.is_none().then(read)
    }

    /// From now on no request is sent. Returns the client, and what says at its drop that the move is over;
    /// `None` if the session moves already.
    pub(super) fn begin_move(&self) -> Option<(Arc<Attached>, DropGuard)> {
        let mut present = self.0.write();
        if present.moving.is_some() {
            return None;
        }
        let moving = present.moving.insert(CancellationToken::new()).clone();
        Some((Arc::clone(&present.attached), moving.drop_guard()))
    }

    /// The session is at other servers. Returns the client if they are not those to move to any more.
    pub(super) fn arrive(
        &self,
        attached: Attached,
        servers: Arc<Servers>,
        is_current: impl FnOnce() -> bool,
        before_requests: impl FnOnce(&Attached),
    ) -> Result<(), Attached> {
        let mut present = self.0.write();
        if !is_current() {
            return Err(attached);
        }
        before_requests(&attached);
        *present = Present { attached: Arc::new(attached), servers, moving: None };
        Ok(())
    }

    /// The session is over, and moves no more.
    pub(super) fn end(&self, before: impl FnOnce()) {
        let mut present = self.0.write();
        before();
        present.moving = None;
    }
}
