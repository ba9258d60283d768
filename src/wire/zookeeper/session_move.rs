//! The move of a session to other servers.
//!
//! The client of the crate has its servers for ever, so another client attaches to the session: for the
//! servers this is a client that reconnects. The first one is ended before, because two of them would take
//! the session from each other.
//!
//! A client that reconnects says what it has seen, and a server that is behind refuses it. The second client
//! cannot say that. So it carries nothing until the quorum has processed a request of it: then its server
//! has all that the first one has seen, also if that server was cut off from the others.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::DropGuard;
use tracing::{debug, info, warn};
use zookeeper_client as client;

use super::attached::Attached;
use super::convert::multi_error;
use super::link_watch::LinkWatch;
use super::route::Route;
use super::servers::Servers;
use crate::wire::MultiError;

/// The pause after a request that the quorum did not process.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct SessionMove {
    /// The client that arrives is dropped with it, if the session is over by then.
    pub(super) route: Arc<Route>,
    pub(super) links: Arc<LinkWatch>,
    pub(super) first: Arc<Attached>,
    /// The timeout of the session.
    pub(super) timeout: Duration,
    /// The latest are the target.
    pub(super) servers: watch::Receiver<Arc<Servers>>,
    /// Requests that were made meanwhile wait for its drop.
    pub(super) _over: DropGuard,
}

impl SessionMove {
    pub(super) async fn run(mut self) {
        self.first.stop().await;
        self.links.interrupt();
        let session = self.first.client.session().clone();
        loop {
            let servers = Arc::clone(&self.servers.borrow_and_update());
            debug!(session = %session.id(), ?servers, "the session moves");
            let attached = tokio::select! {
                biased;
                () = replaced(&mut self.servers) => continue,
                attached = Attached::connect(&servers, Some(session.clone())) => attached,
            };
            let attached = match attached {
                Ok(attached) => attached,
                Err(error) => return self.end(&error),
            };
            if attached.client.session_id() != session.id() {
                return self.end(&client::Error::SessionExpired);
            }
            if attached.client.session_timeout() < self.timeout {
                // The lease counts with the timeout that was granted first.
                warn!(
                    granted = ?attached.client.session_timeout(), before = ?self.timeout,
                    "the servers grant a shorter session timeout, so the session ends"
                );
                return self.end(&client::Error::SessionExpired);
            }
            let is_current = tokio::select! {
                biased;
                () = replaced(&mut self.servers) => false,
                () = pass_quorum(&attached.client) => true,
            };
            let left = if is_current { self.arrive(attached, servers).err() } else { Some(attached) };
            match left {
                None => return,
                // Not dropped before: that would close the session.
                Some(attached) => attached.stop().await,
            }
        }
    }

    fn end(self, error: &client::Error) {
        info!(%error, "the session could not move to other servers, and is over");
        let state = match error {
            client::Error::AuthFailed => client::SessionState::AuthFailed,
            _ => client::SessionState::Expired,
        };
        self.route.end(|| self.links.end(state));
    }

    /// Returns the client if its servers are not those to move to any more.
    fn arrive(&self, attached: Attached, servers: Arc<Servers>) -> Result<(), Attached> {
        let is_current = || !self.servers.has_changed().unwrap_or(false);
        self.route.arrive(attached, servers, is_current, |attached| self.links.resume(&attached.client))
    }
}

/// Resolves when there are newer servers.
async fn replaced(servers: &mut watch::Receiver<Arc<Servers>>) {
    if servers.changed().await.is_err() {
        // The manager is gone, and names no other ones.
        pending().await
    }
}

/// Resolves once the quorum has processed a request over the connection of this client, or the session is
/// over.
async fn pass_quorum(client: &client::Client) {
    while !client.state().is_terminated() {
        let mut writer = client.new_multi_writer();
        let commit = async {
            let check = writer.add_check_version("/", -1);
            check.map_err(|error| client::MultiWriteError::RequestFailed { source: error })?;
            writer.commit().await
        };
        match commit.await.map_err(multi_error) {
            // A refusal is an answer of the quorum as well.
            Ok(_) | Err(MultiError::Operation { .. }) => return,
            Err(MultiError::Request(error)) => debug!(%error, "the quorum has not answered; trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
