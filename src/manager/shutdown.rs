//! The shutdown of a manager.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::connection_manager::ConnectionManager;
use super::state::State;
use crate::error::{Error, Phase};
use crate::time::deadline::Deadline;

/// The part of the time limit that is reserved for closing the session.
pub(super) const CLOSING: Duration = Duration::from_secs(1);

/// The time to close without a connection: for this process alone.
const NOW: Duration = Duration::from_millis(10);

impl ConnectionManager {
    /// Closes the session and waits for the server's confirmation. After that none of this session's nodes
    /// exists.
    ///
    /// Nothing is granted from now on: waiters get [`Error::Closed`] first, then guards are lost, then the
    /// session is closed. To let holders finish first, use [`shutdown_within`](Self::shutdown_within).
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when no server confirms the close within the session timeout, or when the last
    /// session was lost just before. [`Error::RuntimeEnded`] when the runtime ended before the session was
    /// closed. The nodes are deleted with their session, at the latest a session
    /// timeout and a tick from now.
    ///
    /// # Cancel safety
    ///
    /// The shutdown continues when this future is dropped.
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.close(Deadline::never()).await
    }

    /// Shuts down within `limit`, for a service that has to stop: nothing is granted any more, holders may
    /// finish, and then the session is closed.
    ///
    /// 1. At once: every waiter, also one for permits, gets [`Error::Closed`], and so does every new acquire,
    ///    every wait of a ticket, and every acquire whose requests are not answered yet. A release hands off
    ///    to no waiter of this process. An owner may still acquire again what it holds, read under its own
    ///    write, and downgrade. Reads, writes and transactions continue.
    /// 2. Holders have time to release until the last quarter of `limit` begins, or until a second before its
    ///    end if that is later. When nothing is held, the next step begins.
    /// 3. The session is closed, as by [`shutdown`](Self::shutdown). The remaining holds are lost, and their
    ///    guards report it.
    ///
    /// Returns the number of these remaining holds: 0 for a shutdown without a loss.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] when the server does not confirm the close within `limit`; at once when nothing is
    /// held and there is no connection, because no server can confirm the close then. Closing continues as
    /// long as [`shutdown`](Self::shutdown) would, and every guard is lost already. The remaining nodes are
    /// deleted with the session, at the latest a session timeout and a tick from now.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while holders finish, nothing is granted any more, but the session stays
    /// open: call this again, or [`shutdown`](Self::shutdown). If it is dropped later, closing continues.
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
    pub async fn shutdown_within(&self, limit: Duration) -> Result<u32, Error> {
        let shared = &self.0.shared;
        let deadline = Deadline::after(limit);
        let for_holders = limit.saturating_sub((limit / 4).min(CLOSING));
        shared.draining.cancel();
        let patience = Deadline::after(for_holders);
        tokio::select! {
            biased;
            () = shared.holds.nothing_held() => {}
            // The session is being closed already.
            () = shared.closing.cancelled() => {}
            () = patience.passed() => {}
        }
        let cut_off = shared.holds.held();
        // Without a connection no server can confirm the close, and there is nothing to wait for.
        let is_connected = matches!(self.state(), State::Connected(_));
        let deadline = if cut_off > 0 || is_connected { deadline } else { Deadline::after(NOW) };
        self.close(deadline).await.map(|()| cut_off)
    }

    /// Resolves once a shutdown of either kind has begun: nothing is [granted](Self::shutdown_within) any
    /// more.
    ///
    /// For recipe authors: a wait for anything but the queue ends then, with [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a later call resolves as well.
    pub async fn closing(&self) {
        self.0.shared.draining.cancelled().await;
    }

    /// Whether a shutdown of either kind has begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.0.shared.draining.is_cancelled()
    }

    /// Begins a [`shutdown`](Self::shutdown), which goes on in the background.
    pub(super) fn begin_close(&self) {
        self.0.shared.draining.cancel();
        self.0.shared.closing.cancel();
    }

    pub(super) async fn close(&self, deadline: Deadline) -> Result<(), Error> {
        let shared = &self.0.shared;
        self.begin_close();
        let is_closed = tokio::select! {
            biased;
            () = async { tokio::join!(shared.closed.cancelled(), self.views_closed()); } => {
                shared.close_confirmed.load(Ordering::Acquire)
            }
            () = deadline.passed() => false,
        };
        if is_closed {
            return Ok(());
        }
        if shared.publisher.has_runtime_ended() {
            return Err(self.closed_error(shared.settings.servers().into()));
        }
        Err(Error::Timeout {
            phase: Phase::Answer,
            path: shared.settings.servers().into(),
            waited: deadline.waited(),
        })
    }
}
