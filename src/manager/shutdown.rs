//! The end of a manager, in order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::ConnectionManager;
use crate::error::{Error, Phase};
use crate::time::deadline::Deadline;

/// Of the time for an orderly end, so much is kept at most for closing the session.
pub(super) const CLOSING: Duration = Duration::from_secs(1);

impl ConnectionManager {
    /// Closes the session and waits until the server has done so: then every node of ours is gone.
    ///
    /// Nobody is let in any more: waiters get [`Error::Closed`] first, then guards are lost, then the session
    /// is closed. To let holders finish first, use [`shutdown_within`](Self::shutdown_within).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the server could not be reached to say so, at the latest after the session
    /// timeout, or when the last session had been lost just before: its nodes go with it, at the latest a
    /// session timeout and a tick from now.
    ///
    /// # Cancel safety
    ///
    /// The shutdown goes on when this future is dropped.
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.close(Deadline::never()).await
    }

    /// Ends in order within `limit`, for a service that is told to stop: nobody is let in any more, who holds
    /// may finish, and then the session is closed.
    ///
    /// 1. At once: whoever waits in a line, or for permits, gets [`Error::Closed`], and so does every new
    ///    acquire, every wait of a ticket, and whatever was asked of the servers and is not answered yet. A
    ///    holder that lets go from now on lets nobody of this process in. What an owner holds already it may
    ///    still take again, read under its own write, and downgrade; reads, writes and transactions go on.
    /// 2. Holders have the time until the last quarter of `limit` begins, and no less than until a second
    ///    before its end, to release what they hold. Once nothing is held it goes on.
    /// 3. The session is closed, as by [`shutdown`](Self::shutdown). What is held still is lost, and its
    ///    holders are told.
    ///
    /// Yields how many holds were cut off so: 0 is an end in order.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the server did not say within `limit` that the session is closed. Closing goes
    /// on for as long as [`shutdown`](Self::shutdown) would, and every guard is lost already: what is left on
    /// the server goes with the session, at the latest a session timeout and a tick from now.
    ///
    /// # Cancel safety
    ///
    /// Dropped while holders finish, nobody is let in any more all the same, and nothing is closed: call it
    /// again, or [`shutdown`](Self::shutdown). Dropped later, the closing goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = lockkeeper_testserver::TestServer::start().await?;
    /// # let manager = lockkeeper_core::ConnectionManager::connect(&server.connect_string()).await?;
    /// # let terminated = async {}; // tokio::signal::unix::signal(SignalKind::terminate())?.recv()
    /// use std::time::Duration;
    ///
    /// terminated.await;
    /// // What kills the process is set to somewhat more.
    /// let cut_off = manager.shutdown_within(Duration::from_secs(20)).await?;
    /// if cut_off > 0 {
    ///     eprintln!("{cut_off} locks were still held");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown_within(&self, limit: Duration) -> Result<usize, Error> {
        let shared = &self.0.shared;
        let deadline = Deadline::after(limit);
        let for_holders = limit.saturating_sub((limit / 4).min(CLOSING));
        shared.draining.cancel();
        let patience = Deadline::after(for_holders);
        tokio::select! {
            biased;
            () = shared.holds.nothing_held() => {}
            // There is nothing to wait for any more.
            () = shared.closing.cancelled() => {}
            () = patience.passed() => {}
        }
        let cut_off = shared.holds.held();
        self.close(deadline).await.map(|()| cut_off)
    }

    /// Resolves once the manager is about to end, be it only that
    /// [nobody is let in any more](Self::shutdown_within).
    ///
    /// For recipe authors: whoever waits for something else than a place in a line gives up then, with
    /// [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it is told again.
    pub async fn closing(&self) {
        self.0.shared.draining.cancelled().await;
    }

    /// Whether a shutdown of either kind has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.0.shared.draining.is_cancelled()
    }

    pub(super) async fn close(&self, deadline: Deadline) -> Result<(), Error> {
        let shared = &self.0.shared;
        shared.draining.cancel();
        shared.closing.cancel();
        let is_closed = tokio::select! {
            biased;
            () = shared.closed.cancelled() => shared.close_confirmed.load(Ordering::Acquire),
            () = deadline.passed() => false,
        };
        if is_closed {
            return Ok(());
        }
        Err(Error::Timeout {
            phase: Phase::Answer,
            path: shared.settings.servers.clone(),
            waited: deadline.waited(),
        })
    }
}
