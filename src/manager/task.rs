//! The task of a manager: opens one session after the other until the manager ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tracing::{debug, info, warn};

use super::diagnosis::Diagnosis;
use super::granted_timeout;
use super::shared::{ManagerInner, Settings};
use super::state::State;
use crate::config::retry::RetryPauses;
use crate::error::{ConnectError, LossReason};
use crate::session::{CleanupJobs, ClosingNodes, Epoch, Session};
use crate::time::deadline::Deadline;
use crate::wire::{Backend, Link, Wire, WireError};

/// Starts the task and waits for its first session.
pub(super) async fn start(shared: Arc<ManagerInner>, connect_deadline: Duration) -> Result<(), ConnectError> {
    let (first, opened) = oneshot::channel();
    spawn(&shared, |task| async move { task.run_from_first(first, connect_deadline).await });
    match opened.await {
        Ok(result) => result,
        Err(_) => Err(timeout(&shared, Duration::ZERO, "the runtime ended")),
    }
}

/// Starts the task, which opens its first session however long that takes.
pub(super) fn start_detached(shared: &Arc<ManagerInner>) {
    spawn(shared, |task| async move {
        let mut pauses = task.shared.settings.session.retry.start();
        tokio::select! {
            biased;
            session = task.open_until_done(Epoch(1), &mut pauses) => task.run(session).await,
            () = task.shared.closing.cancelled() => task.close(true),
        }
    });
}

fn spawn<F>(shared: &Arc<ManagerInner>, run: impl FnOnce(ManagerTask) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (cleanup_jobs, cleanup) = CleanupJobs::new(shared.pending_jobs.clone());
    let (shared, backend) = (Arc::clone(shared), Arc::clone(&shared.backend));
    let task =
        ManagerTask { shared: Arc::clone(&shared), backend, cleanup_jobs, diagnosis: Diagnosis::default() };
    let run = run(task);
    let environment = Arc::clone(&shared.settings.session.environment);
    environment.spawn(Box::pin(async move {
        let mut closes_on_drop = CloseOnDrop { shared, is_done: false };
        tokio::select! {
            biased;
            () = run => {}
            () = cleanup.run() => {}
        }
        closes_on_drop.is_done = true;
    }));
}

/// Closes the manager even if the task is aborted, by the end of its runtime or by a panic: holds are lost,
/// waiters are notified, and no call waits for a task that does not exist.
struct CloseOnDrop {
    shared: Arc<ManagerInner>,
    /// Whether the task has run to its end.
    is_done: bool,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let ManagerInner { publisher, settings, closing, closed, .. } = &*self.shared;
        let session = publisher.session();
        let mut reason = LossReason::Closed;
        if !self.is_done {
            let purpose = settings.session.purpose;
            warn!(
                %purpose,
                "the runtime ended before the session was closed: its nodes exist until its timeout"
            );
            // Of a manager that is being shut down, the shutdown is the reason.
            if !closing.is_cancelled() {
                publisher.set_runtime_ended();
                reason = LossReason::RuntimeEnded;
            }
        }
        publisher.enter(State::Closed, None);
        if let Some(session) = session {
            session.end(reason);
        }
        closing.cancel();
        closed.cancel();
    }
}

fn timeout(shared: &ManagerInner, waited: Duration, cause: &str) -> ConnectError {
    ConnectError::Timeout { servers: shared.settings.servers(), waited, cause: cause.to_owned() }
}

struct ManagerTask {
    shared: Arc<ManagerInner>,
    backend: Arc<dyn Backend>,
    cleanup_jobs: CleanupJobs,
    diagnosis: Diagnosis,
}

impl ManagerTask {
    async fn run_from_first(
        &self,
        first: oneshot::Sender<Result<(), ConnectError>>,
        connect_deadline: Duration,
    ) {
        let opening = self.open_first(Deadline::after(connect_deadline));
        let session = match self.diagnosis.during(&*self.backend, opening).await {
            Ok(session) => session,
            Err(error) => {
                self.close(true);
                let _ = first.send(Err(error));
                return;
            }
        };
        let _ = first.send(Ok(()));
        self.run(session).await;
    }

    async fn run(&self, mut session: Session) {
        let mut pauses = self.shared.settings.session.retry.start();
        loop {
            let opened = self.shared.settings.session.environment.now();
            let reason = tokio::select! {
                biased;
                reason = session.run(|link| self.follow(&session, link)) => reason,
                () = self.shared.closing.cancelled() => break,
            };
            session.end(reason);
            let reason = session.loss().unwrap_or(reason);
            self.shared.publisher.enter(State::Lost(session.epoch(), reason), None);
            let next = Epoch(session.epoch().0 + 1);
            if self.shared.settings.session.environment.now().since(opened) > session.timeout() {
                pauses = self.shared.settings.session.retry.start();
            }
            session = tokio::select! {
                biased;
                session = self.open_until_done(next, &mut pauses) => session,
                // The nodes of the lost session may exist until the server expires it.
                () = self.shared.closing.cancelled() => return self.close(false),
            };
        }
        self.close_session(&session).await;
    }

    async fn open_first(&self, deadline: Deadline) -> Result<Session, ConnectError> {
        let mut pauses = self.shared.settings.session.retry.start();
        let mut cause = self.backend.no_answer_hint().to_owned();
        loop {
            let opened = tokio::select! {
                biased;
                opened = self.open(Epoch(1)) => opened,
                () = deadline.passed() => return Err(self.no_session(deadline, cause)),
                () = self.shared.closing.cancelled() => {
                    return Err(timeout(&self.shared, deadline.waited(), "shut down"));
                }
            };
            match opened {
                Ok(session) => {
                    granted_timeout::require(&self.shared.settings, &session)?;
                    self.require_chroot(&session, deadline).await?;
                    return Ok(session);
                }
                Err(WireError::AuthFailed) => {
                    return Err(ConnectError::AuthFailed { servers: self.shared.settings.servers() });
                }
                Err(WireError::Timeout) => self.backend.no_answer_hint().clone_into(&mut cause),
                Err(error) => cause = error.to_string(),
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(pauses.next()) => {}
                () = deadline.passed() => return Err(self.no_session(deadline, cause)),
            }
        }
    }

    /// The error names the fault of each server, if a look at the servers has found one.
    fn no_session(&self, deadline: Deadline, last: String) -> ConnectError {
        timeout(&self.shared, deadline.waited(), &self.diagnosis.cause().unwrap_or(last))
    }

    /// Opens a session, however long that takes. A session that ends at once is replaced after a pause.
    async fn open_until_done(&self, epoch: Epoch, pauses: &mut RetryPauses) -> Session {
        self.shared.publisher.enter(State::Connecting, None);
        let opening = async {
            loop {
                tokio::time::sleep(pauses.next()).await;
                match self.open(epoch).await {
                    Ok(session) => return session,
                    Err(error) => {
                        let purpose = self.shared.settings.session.purpose;
                        info!(%purpose, %error, %epoch, "no session yet; trying again");
                    }
                }
            }
        };
        self.diagnosis.during(&*self.backend, opening).await
    }

    async fn open(&self, epoch: Epoch) -> Result<Session, WireError> {
        // Read before anything is sent, so the server's first sign of life is not earlier.
        let opened = self.shared.settings.session.environment.now();
        let wire: Arc<dyn Wire> = self.backend.open().await?;
        let session = Session::new(
            epoch,
            wire,
            opened,
            Arc::clone(&self.shared.settings.session),
            self.cleanup_jobs.clone(),
        );
        info!(
            %epoch, session = format_args!("{:#x}", session.id()), timeout = ?session.timeout(),
            purpose = %self.shared.settings.session.purpose, "session opened"
        );
        granted_timeout::warn_of(&self.shared.settings, session.timeout());
        self.shared.publisher.enter(State::Connected(epoch), Some(session.clone()));
        Ok(session)
    }

    /// A chroot that does not exist is created by the first use of it, so a misspelt one shows no error.
    async fn require_chroot(&self, session: &Session, deadline: Deadline) -> Result<(), ConnectError> {
        let Settings { chroot, needs_chroot, .. } = &self.shared.settings;
        if chroot.is_root() {
            return Ok(());
        }
        let mut exists = session.read(|wire| wire.exists(chroot.as_str()));
        if !needs_chroot {
            let (session, chroot) = (session.clone(), chroot.clone());
            self.shared.settings.session.environment.spawn(Box::pin(async move {
                let limit = Deadline::after(session.timeout());
                if matches!(session.await_reply(&mut exists, limit).await, Ok(None)) {
                    warn!(%chroot, "the chroot does not exist; the first use creates it: is it spelt right?");
                }
            }));
            return Ok(());
        }
        let (chroot, servers) = (chroot.to_string(), self.shared.settings.servers());
        let cause = match session.await_reply(&mut exists, deadline).await {
            // A refusal shows that the node exists.
            Ok(Some(_)) | Err(WireError::Refused(_)) => return Ok(()),
            Ok(None) => {
                warn!(chroot, "the chroot does not exist, and is required to");
                ConnectError::NoChroot { chroot, servers }
            }
            Err(error) => timeout(&self.shared, deadline.waited(), &error.to_string()),
        };
        session.end(LossReason::Closed);
        Err(cause)
    }

    fn follow(&self, session: &Session, link: Link) {
        let epoch = session.epoch();
        match link {
            Link::Up => self.shared.publisher.enter(State::Connected(epoch), Some(session.clone())),
            Link::Down => self.shared.publisher.enter(State::Suspended(epoch), Some(session.clone())),
            Link::Ended(_) => {}
        }
    }

    /// Notifies waiters first, so that a closing manager grants nothing, then holders, deletes nodes that
    /// would make the record of the close large, and then closes the session.
    async fn close_session(&self, session: &Session) {
        let wire = session.wire().ok();
        let ended = wire.as_ref().map(|wire| wire.ended());
        let leased_until = session.lease_valid_until();
        let nodes = ClosingNodes::of(session);
        self.shared.publisher.enter(State::Closed, None);
        session.end(LossReason::Closed);
        let limit = Deadline::after(session.timeout());
        if let Some(wire) = wire {
            nodes.delete(&*wire, limit).await;
        }
        let confirmed = match ended {
            // The session was over before the close. Its nodes exist until the server expires it.
            None => false,
            Some(ended) => tokio::select! {
                biased;
                reason = ended => match reason {
                    LossReason::Closed => true,
                    // The client may lose the answer to its close, reconnect and find the session expired.
                    // Before the end of the lease only our close can have ended the session, and the client
                    // does not give it up by itself.
                    LossReason::SessionExpired => {
                        self.shared.settings.session.environment.now() < leased_until
                    }
                    _ => false,
                },
                () = limit.passed() => false,
            },
        };
        debug!(confirmed, "session closed");
        self.close(confirmed);
    }

    fn close(&self, confirmed: bool) {
        self.shared.publisher.enter(State::Closed, None);
        self.shared.close_confirmed.store(confirmed, Ordering::Release);
    }
}
