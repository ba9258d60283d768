use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::connection_manager::ConnectionManager;
use super::state::State;
use crate::session::{Epoch, Session};

/// The health of a manager, for probes and for people. Reading it sends nothing and waits for nothing.
///
/// It shows what the manager has seen so far. A connection that broke silently is detected when an answer
/// does not come, within the session timeout. So is a server that is cut off from the other servers, while
/// locks are in use and the session is being confirmed.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = lockkeeper_testserver::TestServer::start().await?;
/// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
/// let health = manager.health();
/// let status = if health.is_ready() { 200 } else { 503 };
/// println!("{status} {health}"); // 200 connected, epoch 1, for 0.0s; …
/// # assert_eq!(status, 200);
/// # manager.shutdown().await?;
/// # assert!(!manager.health().is_ready());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The state of the connection.
    pub state: State,
    /// How long it has been in this state.
    pub since: Duration,
    /// The epoch of the session in use; `None` while there is none.
    pub epoch: Option<Epoch>,
    /// The time for which the servers cannot expire the session: holds stay valid for this long even if no
    /// further answer comes. Without a node it is not renewed, and ends after an idle time or a reconnect:
    /// the next acquire confirms the session. `None` while there is no session.
    pub lease_left: Option<Duration>,
    /// The number of holds.
    pub held: u32,
    /// The number of nodes that still have to be deleted or searched for in the background: those of dropped
    /// guards, of cancelled acquires and of creates without an answer.
    pub pending_deletes: u32,
    /// Whether reads are possible now: the session is connected.
    pub can_read: bool,
    /// Whether writes, and so acquires and releases, are possible now: the session is connected, and the
    /// quorum answered the last confirmation within a third of the session timeout.
    pub can_write: bool,
    /// Whether a shutdown has begun: nothing is granted any more.
    pub is_closing: bool,
}

impl Health {
    /// Whether this process should get work that acquires locks: writes are possible, and no shutdown has
    /// begun.
    ///
    /// For a *readiness* probe. Do not use it as a liveness probe: a restart of the process does not repair
    /// an ensemble, and the manager reconnects by itself.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.can_write && !self.is_closing
    }
}

/// One line of text.
impl Display for Health {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, for {:.1}s; ", self.state, self.since.as_secs_f64())?;
        match self.lease_left {
            Some(left) => write!(formatter, "lease {:.1}s", left.as_secs_f64())?,
            None => formatter.write_str("no lease")?,
        }
        write!(formatter, ", {} held, {} to delete", self.held, self.pending_deletes)?;
        match (self.can_read, self.can_write) {
            (true, true) => formatter.write_str("; reads and writes")?,
            (true, false) => formatter.write_str("; reads only")?,
            _ => formatter.write_str("; neither reads nor writes")?,
        }
        if self.is_closing { formatter.write_str("; closing") } else { Ok(()) }
    }
}

impl ConnectionManager {
    /// The present health. Costs no request.
    #[must_use]
    pub fn health(&self) -> Health {
        let shared = &self.0.shared;
        let now = self.now();
        let snapshot = shared.publisher.snapshot();
        let session = snapshot.session.as_ref().filter(|session| session.loss().is_none());
        let can_read = matches!(snapshot.state, State::Connected(_)) && session.is_some();
        let is_answered = session.is_some_and(|session| !session.quorum_silent());
        Health {
            state: snapshot.state,
            since: now.since(snapshot.since),
            epoch: session.map(Session::epoch),
            lease_left: session.map(|session| session.lease_valid_until().since(now)),
            held: shared.holds.held(),
            pending_deletes: shared.pending_jobs.count(),
            can_read,
            can_write: can_read && is_answered,
            is_closing: shared.draining.is_cancelled(),
        }
    }
}
