//! The task behind a manager: one session after the other, until nobody needs one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{debug, info};

use super::Shared;
use super::state::State;
use crate::backend::{Backend, Link, Wire, WireError};
use crate::clock::{Clock, SystemClock};
use crate::deadline::Deadline;
use crate::error::{ConnectError, LossReason};
use crate::janitor::Janitor;
use crate::session::{Epoch, Session};

/// Starts the task and waits for its first session.
pub(super) async fn start(
    shared: Arc<Shared>,
    backend: Arc<dyn Backend>,
    connect_deadline: Duration,
) -> Result<(), ConnectError> {
    let (first, opened) = oneshot::channel();
    let (janitor, chores) = Janitor::new();
    let task = Task { shared: Arc::clone(&shared), backend, janitor, clock: Arc::new(SystemClock) };
    tokio::spawn(async move {
        let shared = Arc::clone(&task.shared);
        // Set also when this task is ended by force, so that nobody waits for it.
        let _closed = shared.closed.clone().drop_guard();
        tokio::select! {
            () = task.run(first, connect_deadline) => {}
            () = chores.work() => {}
        }
    });
    match opened.await {
        Ok(result) => result,
        Err(_) => Err(timeout(&shared, Duration::ZERO, "the runtime shut down")),
    }
}

fn timeout(shared: &Shared, waited: Duration, cause: &str) -> ConnectError {
    ConnectError::Timeout { servers: shared.settings.servers.clone(), waited, cause: cause.to_owned() }
}

struct Task {
    shared: Arc<Shared>,
    backend: Arc<dyn Backend>,
    janitor: Janitor,
    clock: Arc<dyn Clock>,
}

impl Task {
    async fn run(&self, first: oneshot::Sender<Result<(), ConnectError>>, connect_deadline: Duration) {
        let mut session = match self.open_first(Deadline::after(connect_deadline)).await {
            Ok(session) => session,
            Err(error) => {
                self.close(true);
                let _ = first.send(Err(error));
                return;
            }
        };
        let _ = first.send(Ok(()));
        loop {
            let reason = tokio::select! {
                reason = session.keep(|link| self.follow(&session, link)) => reason,
                () = self.shared.closing.cancelled() => break,
            };
            session.end(reason);
            self.shared.board.enter(State::Lost(session.epoch(), reason), None);
            let next = Epoch(session.epoch().0 + 1);
            session = tokio::select! {
                session = self.open_until_done(next) => session,
                () = self.shared.closing.cancelled() => return self.close(true),
            };
        }
        self.close_session(&session).await;
    }

    async fn open_first(&self, deadline: Deadline) -> Result<Session, ConnectError> {
        let mut pauses = self.shared.settings.retry.start();
        let mut cause = "no answer".to_owned();
        loop {
            let opened = tokio::select! {
                opened = self.open(Epoch(1)) => opened,
                () = deadline.passed() => return Err(timeout(&self.shared, deadline.waited(), &cause)),
                () = self.shared.closing.cancelled() => return Err(timeout(&self.shared, deadline.waited(), "shut down")),
            };
            match opened {
                Ok(session) => return Ok(session),
                Err(WireError::AuthFailed) => {
                    return Err(ConnectError::AuthFailed { servers: self.shared.settings.servers.clone() });
                }
                Err(error) => cause = error.to_string(),
            }
            tokio::select! {
                () = tokio::time::sleep(pauses.next()) => {}
                () = deadline.passed() => return Err(timeout(&self.shared, deadline.waited(), &cause)),
            }
        }
    }

    /// Opens a session, however long it takes.
    async fn open_until_done(&self, epoch: Epoch) -> Session {
        self.shared.board.enter(State::Connecting, None);
        let mut pauses = self.shared.settings.retry.start();
        loop {
            match self.open(epoch).await {
                Ok(session) => return session,
                Err(error) => info!(%error, %epoch, "no session yet; trying again"),
            }
            tokio::time::sleep(pauses.next()).await;
        }
    }

    async fn open(&self, epoch: Epoch) -> Result<Session, WireError> {
        // Taken before anything is sent: the server heard of us no earlier.
        let opened = self.clock.now();
        let wire: Arc<dyn Wire> = self.backend.open().await?;
        let session = Session::new(
            epoch,
            wire,
            opened,
            Arc::clone(&self.shared.settings),
            Arc::clone(&self.clock),
            self.janitor.clone(),
        );
        info!(%epoch, session = format_args!("{:#x}", session.id()), timeout = ?session.timeout(), "session opened");
        self.shared.board.enter(State::Connected(epoch), Some(session.clone()));
        Ok(session)
    }

    fn follow(&self, session: &Session, link: Link) {
        let epoch = session.epoch();
        match link {
            Link::Up => self.shared.board.enter(State::Connected(epoch), Some(session.clone())),
            Link::Down => self.shared.board.enter(State::Suspended(epoch), Some(session.clone())),
            Link::Ended(_) => {}
        }
    }

    /// Waiters are told first, so that nothing is granted into a closing manager; then the session is closed.
    async fn close_session(&self, session: &Session) {
        let ended = session.wire().ok().map(|wire| wire.ended());
        self.shared.board.enter(State::Closed, None);
        session.end(LossReason::Closed);
        let limit = Deadline::after(session.timeout());
        let confirmed = match ended {
            None => true,
            Some(ended) => tokio::select! {
                () = ended => true,
                () = limit.passed() => false,
            },
        };
        debug!(confirmed, "session closed");
        self.close(confirmed);
    }

    fn close(&self, confirmed: bool) {
        self.shared.board.enter(State::Closed, None);
        self.shared.close_confirmed.store(confirmed, Ordering::Release);
    }
}
