//! The task of a presence: sends the engine's requests and publishes its state.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Instrument, debug, debug_span, info, warn};

use super::decide::{Engine, Event, Request, Status, Step};
use super::requests;
use super::state::PresenceState;
use super::table::{PathTurn, PresenceTable};
use crate::config::retry::RetryPauses;
use crate::error::{Error, Operation, Outcome};
use crate::manager::ConnectionManager;
use crate::session::{NodeWatch, Session, Witness};
use crate::telemetry::metrics;
use crate::time::deadline::Deadline;
use crate::time::fractions;
use crate::wire::WireError;
use crate::znode::path::ZnodePath;

/// After this many requests in a row that change the node and have no answer, the log says so.
const UNANSWERED_MAX: u32 = 4;

/// Tells the caller of a command how it ended.
pub(super) type Done = oneshot::Sender<Result<(), Error>>;

pub(super) enum Command {
    SetData(Arc<[u8]>, Done),
    Release(Done),
}

pub(super) struct Task {
    pub(super) manager: ConnectionManager,
    /// On the server.
    pub(super) path: ZnodePath,
    pub(super) engine: Engine,
    pub(super) table: Arc<PresenceTable>,
    commands: mpsc::UnboundedReceiver<Command>,
    /// The calls that wait for their data to be written, by number.
    writing: Vec<(u64, Done)>,
    /// The handle was dropped or released.
    is_released: bool,
    pub(super) release: Option<Done>,
    pub(super) state: watch::Sender<PresenceState>,
    /// The connection over which the node was seen last.
    pub(super) seen_over: Option<u64>,
    /// The session in which a node may exist, and the turn for its path.
    pub(super) place: Option<(Session, PathTurn)>,
    /// A request has been sent, and its answer is not handled.
    pub(super) is_sending: bool,
    /// The requests in a row that change the node and had no answer, and the pauses behind them.
    unanswered: Option<(u32, RetryPauses)>,
}

impl Task {
    pub(super) fn new(
        manager: ConnectionManager,
        path: ZnodePath,
        engine: Engine,
        commands: mpsc::UnboundedReceiver<Command>,
        state: watch::Sender<PresenceState>,
    ) -> Self {
        let table = manager.shared_table();
        Self {
            manager,
            path,
            engine,
            table,
            commands,
            writing: Vec::new(),
            is_released: false,
            release: None,
            state,
            seen_over: None,
            place: None,
            is_sending: false,
            unanswered: None,
        }
    }

    /// Runs until the handle is dropped or released, the presence ends, or the manager is shut down.
    pub(super) async fn run(mut self) {
        let span = debug_span!("presence", path = %self.path);
        self.run_sessions().instrument(span).await;
    }

    async fn run_sessions(&mut self) {
        let Some(mut turn) = self.wait_for_turn().await else {
            // It sent no request, so it has no node.
            let _ = self.release.take().map(|release| release.send(Ok(())));
            return;
        };
        while let Some(session) = self.wait_for_session().await {
            self.place = Some((session.clone(), turn));
            self.follow(&session).await;
            if self.is_released || self.engine.next() == Step::End {
                return self.end().await;
            }
            let Some((_, kept)) = self.place.take() else { return };
            turn = kept;
        }
        // A later presence may have the path.
        drop(turn);
        self.end().await;
    }

    /// Waits while another presence of this manager has the path.
    async fn wait_for_turn(&mut self) -> Option<PathTurn> {
        let turn = Arc::clone(&self.table).turn(self.path.as_str().into());
        let mut turn = std::pin::pin!(turn);
        let mut was_free = true;
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return Some(turn),
                () = std::future::ready(()), if was_free => {
                    was_free = false;
                    let session = self.manager.present_session();
                    let owner_session = session.map_or(0, |session| session.id());
                    self.enter(PresenceState::Conflict { owner_session });
                }
                command = self.commands.recv() => self.take(command),
                () = self.manager.closed() => return None,
            }
            if self.is_released {
                return None;
            }
        }
    }

    async fn wait_for_session(&mut self) -> Option<Session> {
        let manager = self.manager.clone();
        let path = self.path.clone();
        let mut session = std::pin::pin!(manager.session(Deadline::never(), path.as_str()));
        while !self.is_released {
            tokio::select! {
                biased;
                session = &mut session => return session.ok(),
                command = self.commands.recv() => self.take(command),
            }
        }
        None
    }

    /// Handles a command between two requests.
    fn take(&mut self, command: Option<Command>) {
        match command {
            Some(Command::SetData(data, done)) => {
                self.engine.handle(Event::SetData(data));
                self.writing.push((self.engine.targets().last_number(), done));
            }
            Some(Command::Release(done)) => {
                self.is_released = true;
                self.release = Some(done);
            }
            None => self.is_released = true,
        }
    }

    /// Keeps the node in one session.
    async fn follow(&mut self, session: &Session) {
        let earlier = self.table.earlier_than(session.id());
        self.engine.handle(Event::SessionOpened { session: session.id(), earlier });
        self.seen_over = None;
        let mut connection = session.connection();
        let mut watch: Option<NodeWatch> = None;
        loop {
            while !self.is_released {
                let Some(command) = self.commands.recv().now_or_never() else { break };
                self.take(command);
            }
            self.publish();
            if self.is_released {
                return;
            }
            if watch.as_mut().is_some_and(|watch| watch.now_or_never().is_some()) {
                watch = None;
                self.engine.handle(Event::WatchFired);
            }
            let sent = match self.engine.next() {
                Step::End | Step::WaitForSession => return,
                step @ (Step::Wait | Step::Retry) => {
                    let pause = (step == Step::Retry).then(|| session.timeout());
                    self.wait(session, &mut connection, &mut watch, pause).await;
                    Ok(())
                }
                // These go by the version alone, and another session may own the node by now.
                Step::Replace(_) | Step::Write(_) if self.seen(session).is_none() => {
                    connection = session.connection();
                    self.engine.handle(Event::Reconnected);
                    self.engine.handle(Event::WatchFired);
                    Ok(())
                }
                step => {
                    self.is_sending = true;
                    let sent = self.send(session, step, &mut watch).await;
                    self.is_sending = false;
                    sent
                }
            };
            if let Err((request, error)) = sent {
                self.fail(session, request, &error).await;
            }
            if session.loss().is_some() {
                self.engine.handle(Event::SessionEnded);
                return self.publish();
            }
        }
    }

    async fn fail(&mut self, session: &Session, request: Request, error: &WireError) {
        match error {
            WireError::SessionEnded(_) => return,
            WireError::Refused(refusal) if !refusal.is_transient() => {
                self.unanswered = None;
                return self.engine.handle(Event::Refused(request, *refusal));
            }
            error if error.outcome() == Outcome::NotApplied => {}
            _ => self.engine.handle(Event::Unanswered(request)),
        }
        debug!(?request, %error, "no answer; looking again");
        let mut pause = fractions::retry_pause(session.timeout());
        if request.changes_the_node() && error.outcome() == Outcome::Unknown {
            pause = pause.max(self.pause_unanswered(session, error));
        }
        tokio::select! {
            biased;
            command = self.commands.recv() => self.take(command),
            () = session.pause(pause, Deadline::never()) => {}
        }
    }

    /// The pause behind a request that changes the node and has no answer. It grows: the servers may close
    /// the connection at each such request, as they do above their `jute.maxbuffer`, and other calls need it.
    fn pause_unanswered(&mut self, session: &Session, error: &WireError) -> Duration {
        let (count, pauses) = self.unanswered.get_or_insert_with(|| (0, session.settings().retry.start()));
        *count += 1;
        if *count == UNANSWERED_MAX {
            warn!(path = %self.path, %error, "the servers answer no request that changes this node");
        }
        pauses.next()
    }

    /// The connection over which the node was seen, if the link is up and the connection is still the same.
    fn seen(&self, session: &Session) -> Option<u64> {
        session.live_connection().filter(|connection| Some(*connection) == self.seen_over)
    }

    /// Waits for the next event.
    async fn wait(
        &mut self,
        session: &Session,
        connection: &mut Option<u64>,
        watch: &mut Option<NodeWatch>,
        retry: Option<Duration>,
    ) {
        // Without room for a watch, the node is read from time to time.
        let (pause, due) = match retry {
            Some(pause) => (pause, Event::RetryDue),
            None => (fractions::poll_interval(session.timeout()), Event::WatchFired),
        };
        let is_timed = retry.is_some() || watch.is_none();
        let fired = async {
            match watch.as_mut() {
                Some(watch) => drop(watch.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = session.ended() => {}
            command = self.commands.recv() => self.take(command),
            () = session.reconnected(*connection) => {
                *connection = session.connection();
                self.engine.handle(Event::Reconnected);
            }
            () = fired => {
                *watch = None;
                self.engine.handle(Event::WatchFired);
            }
            () = tokio::time::sleep(pause), if is_timed => self.engine.handle(due),
        }
    }

    async fn send(
        &mut self,
        session: &Session,
        step: Step,
        watch: &mut Option<NodeWatch>,
    ) -> Result<(), (Request, WireError)> {
        let (path, data) = (&self.path, self.engine.targets().data());
        let connection = session.live_connection();
        let (request, answer) = match step {
            Step::Verify => (Request::Verify, requests::verify(session, path, Witness::Ours).await),
            Step::VerifyOther(czxid) => {
                (Request::Verify, requests::verify(session, path, Witness::Other { czxid }).await)
            }
            Step::MakeParent => (Request::MakeParent, requests::make_parent(session, path).await),
            Step::Create => (Request::Create, requests::create(session, path, data).await),
            Step::Replace(version) => {
                (Request::Replace, requests::replace(session, path, version, data).await)
            }
            Step::Write(version) => (Request::Write, requests::write(session, path, version, data).await),
            Step::Read | Step::Wait | Step::Retry | Step::WaitForSession | Step::End => {
                (Request::Read, requests::read(session, path, watch).await)
            }
        };
        self.engine.handle(answer.map_err(|error| (request, error))?);
        if request.changes_the_node() {
            self.unanswered = None;
        }
        if !matches!(request, Request::Verify | Request::MakeParent) {
            self.seen_over = connection;
        }
        Ok(())
    }

    /// Tells the handle what is true.
    fn publish(&mut self) {
        let state = match self.engine.status() {
            Status::Registered { czxid } => PresenceState::Registered { czxid },
            Status::Missing => PresenceState::Missing { since: self.manager.now() },
            Status::Conflict { owner } => PresenceState::Conflict { owner_session: owner },
            Status::Refused(refusal) => PresenceState::Refused(refusal),
            Status::Deleted => PresenceState::Deleted,
        };
        let is_missing = |state| matches!(state, PresenceState::Missing { .. });
        if !(is_missing(state) && is_missing(*self.state.borrow())) {
            self.enter(state);
        }
        let (refused, applied) = (self.engine.targets_mut().take_refused(), self.engine.targets().applied());
        for (_, refusal) in &refused {
            // Also for the log: the call may have ended.
            warn!(path = %self.path, %refusal, "the data of a registration is refused");
        }
        let fate = |number: u64| match refused.iter().find(|(of, _)| *of == number) {
            Some((_, refusal)) => {
                let (path, refusal) = (self.path.as_str().into(), *refusal);
                Some(Err(Error::Refused { operation: Operation::Write, path, refusal }))
            }
            None => (applied >= number).then_some(Ok(())),
        };
        let is_over = |(number, done): &(u64, Done)| done.is_closed() || fate(*number).is_some();
        let (over, writing): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.writing).into_iter().partition(is_over);
        for (number, done) in over {
            let _ = fate(number).map(|fate| done.send(fate));
        }
        self.engine.targets_mut().forget(|number| writing.iter().any(|(waiting, _)| *waiting == number));
        self.writing = writing;
    }

    pub(super) fn enter(&self, state: PresenceState) {
        let before = *self.state.borrow();
        if before == state {
            return;
        }
        match state {
            PresenceState::Conflict { .. } | PresenceState::Refused(_) => {
                warn!(path = %self.path, %state, "a registration waits");
            }
            _ => info!(path = %self.path, %state, "the state of a registration"),
        }
        match (before.is_registered(), state.is_registered()) {
            (false, true) => metrics::registrations(1.0),
            (true, false) => metrics::registrations(-1.0),
            _ => {}
        }
        if before.is_registered() && state != PresenceState::Closed {
            metrics::registration_ended();
        }
        self.state.send_replace(state);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // Only by a panic while it works, or with the runtime and the session.
        drop(self.leave());
        let state = *self.state.borrow();
        if !state.is_final() {
            self.enter(PresenceState::Closed);
        }
    }
}
