//! The servers of a manager, replaced while it lives.

use std::sync::Arc;

use super::connection_manager::ConnectionManager;
use crate::config::connect_string::ConnectString;
use crate::environment::ensure_runtime;
use crate::error::{ConfigError, Error, Phase};
use crate::time::deadline::Deadline;

impl ConnectionManager {
    /// Replaces the servers of this manager, and waits until its sessions are at the new ones: that of the
    /// locks, and that of the [views](crate::View). After that no connection to a server that is not in
    /// `servers` is left, and none will be opened: that server may be stopped.
    ///
    /// `servers` is a connect string, as for [`connect`](Self::connect). The chroot stays: give the one that
    /// the manager has. Servers that have the same addresses as before, in whatever order, change nothing.
    /// A [pool](crate::ConnectionPool) has several managers: call this for each of them.
    ///
    /// # Session loss
    ///
    /// To the session this is a link that breaks and comes back: the state is
    /// [`Suspended`](crate::State::Suspended), then [`Connected`](crate::State::Connected) again in the same
    /// epoch. Holds, places in queues, registrations and views stay, as long as a new server can be reached
    /// before the lease runs out. Requests in flight go the way of a broken link: a write without an answer
    /// is found out, or its outcome is unknown.
    ///
    /// This needs servers of the same ensemble: the new list may have no server of the old one, if both lists
    /// are servers of one ensemble. **Another ensemble does not know the session.** The session is over then,
    /// as an expired one, and so is everything that was held; the manager opens a new session there. The
    /// former ensemble keeps the nodes until the session timeout has passed, and may give the lock to
    /// another contender after that. Two ensembles exclude nobody from each other: stop all users of a lock
    /// before it moves to another ensemble. `docs/operations.md` has the steps.
    ///
    /// The session also ends if a new server grants a shorter session timeout than that of this session.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for an invalid connect string, another chroot, a server without TLS beside TLS
    /// settings, or without a tokio runtime; nothing has changed then. [`Error::Closed`] once a shutdown has
    /// begun. [`Error::Timeout`] if a session is not connected after the
    /// [operation timeout](Self::operation_timeout): the servers are replaced, and the manager continues to
    /// try.
    ///
    /// # Cancel safety
    ///
    /// The servers are replaced at the first poll. If the future is dropped after that, the sessions move
    /// all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let ensemble = lockkeeper_testserver::TestEnsemble::start(3).await?;
    /// # let [a, b, c] = [0, 1, 2].map(|index| ensemble.server(index).unwrap().connect_string());
    /// use lockkeeper_core::ConnectionManager;
    ///
    /// let manager = ConnectionManager::connect(&format!("{a},{b}")).await?;
    /// manager.set_servers(&format!("{b},{c}")).await?;
    /// // Server a may be stopped.
    /// # ensemble.server(0).unwrap().stop().await;
    /// # manager.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_servers(&self, servers: &str) -> Result<(), Error> {
        ensure_runtime()?;
        let parsed: ConnectString = servers.parse().map_err(ConfigError::from)?;
        if parsed.chroot() != self.chroot() {
            return Err(Error::Config(ConfigError::Setting {
                name: "servers",
                value: format!("{servers}, and the chroot of this manager is {}", self.chroot()),
                advice: "give the chroot that the manager has, or connect another manager for another chroot",
            }));
        }
        let shared = &self.0.shared;
        if shared.draining.is_cancelled() || shared.closing.is_cancelled() {
            return Err(self.closed_error("/".into()));
        }
        shared.backend.set_servers(&parsed)?;
        shared.settings.servers.store(Arc::new(servers.to_owned()));
        let deadline = Deadline::after(self.operation_timeout());
        let views = shared.views.lock().upgrade().map(Self);
        let of_views = async {
            match views {
                Some(views) => views.linked(deadline).await,
                None => Ok(()),
            }
        };
        match tokio::join!(self.linked(deadline), of_views) {
            // The last view has ended its session meanwhile.
            (Ok(()), Err(Error::Closed)) => Ok(()),
            (of_locks, of_views) => of_locks.and(of_views),
        }
    }

    /// Waits until the link of the present session is up.
    async fn linked(&self, deadline: Deadline) -> Result<(), Error> {
        let servers = self.0.shared.settings.servers();
        loop {
            let session = self.session(deadline, &servers).await?;
            if session.live_connection().is_some() {
                return Ok(());
            }
            tokio::select! {
                biased;
                () = self.0.shared.closing.cancelled() => {}
                _ = session.ended() => {}
                () = session.reconnected(None) => {}
                () = deadline.passed() => {
                    let (path, waited) = (servers.as_str().into(), deadline.waited());
                    return Err(Error::Timeout { phase: Phase::Connecting, path, waited });
                }
            }
        }
    }
}
