//! The simulated ensemble and network: one queue of events, and one task that executes them.
//!
//! Times are milliseconds. All random decisions come from the world's own generator, in the order of the
//! events, so that the same seed gives the same world.

mod client_end;
mod connection;
mod curator;
mod faults;
mod happening;
mod held;
mod restored;
mod server_end;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::simulation::{Link, WireError};
use lockkeeper_testserver::machine::{ClientId, Machine};
use lockkeeper_testserver::protocol::{Request, WriteOp};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

pub(crate) use self::curator::OUT_OF_TURN;
use self::happening::Happening;
use self::state::State;
use crate::environment::Process;
use crate::oracle::Oracle;
use crate::plan::{BUDGET, Plan};
use crate::rng::Rng;
use crate::session::{Answer, Call, ClientSession, Watched};

/// A handle to the world; all handles are the same world.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    /// An event was put into the queue.
    poked: Arc<Notify>,
    started: Instant,
}

impl World {
    pub(crate) fn new(plan: Plan, mut rng: Rng) -> Self {
        // The ticks of the servers and of the clients do not begin together.
        let now = rng.between(1, 10_000);
        Self {
            state: Arc::new(Mutex::new(State::new(plan, rng, now))),
            poked: Arc::default(),
            started: Instant::now() - Duration::from_millis(now),
        }
    }

    /// Keeps a trace of the events from now on.
    pub(crate) fn keep_trace(&self) {
        self.state.lock().trace = Some(Vec::new());
    }

    pub(crate) fn add(&self, process: &Arc<Process>) {
        self.state.lock().processes.push(Arc::clone(process));
    }

    /// Milliseconds since the beginning, by the true time.
    pub(crate) fn now(&self) -> u64 {
        self.elapsed()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap()
    }

    /// Executes the events, for as long as it is polled.
    pub(crate) async fn run(&self, oracle: &Oracle) {
        loop {
            let poked = self.poked.notified();
            let next = self.state.lock().queue.first_key_value().map(|((at, _), _)| *at);
            let at = self.started + Duration::from_millis(next.unwrap_or(u64::MAX / 4));
            if next.is_none_or(|next| next > self.elapsed()) {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(at) => {}
                    () = poked => continue,
                }
            }
            {
                let mut state = self.state.lock();
                state.now = self.elapsed();
                if let Some((_, happening)) = state.queue.pop_first() {
                    state.happen(happening);
                }
            }
            oracle.check_all(self);
            // Woken tasks run before the next event.
            tokio::task::yield_now().await;
        }
    }

    /// The servers' state, as the quorum has it.
    pub(crate) fn machine<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        look(&self.state.lock().machine)
    }

    /// As [`machine`](Self::machine), with the nodes whose delete their own sessions have sent.
    pub(crate) fn machine_and_given_up<T>(&self, look: impl FnOnce(&Machine, &BTreeSet<String>) -> T) -> T {
        let state = self.state.lock();
        look(&state.machine, &state.given_up)
    }

    /// The nodes whose delete their own sessions have sent.
    pub(crate) fn leaving(&self) -> BTreeSet<String> {
        self.state.lock().leaving.clone()
    }

    /// Whether its own session has sent its delete, without a create of a replacement.
    pub(crate) fn was_given_up(&self, path: &str) -> bool {
        self.state.lock().given_up.contains(path)
    }

    /// Whether its own session has deleted the node, without a create of a replacement.
    pub(crate) fn was_released(&self, path: &str) -> bool {
        self.state.lock().released.contains(path)
    }

    pub(crate) fn plan(&self) -> Plan {
        self.state.lock().plan.clone()
    }

    pub(crate) fn is_healing(&self) -> bool {
        self.state.lock().is_healing
    }

    /// The numbers of the counter when it was deleted by hand.
    pub(crate) fn cleared_numbers(&self) -> Vec<i64> {
        self.state.lock().cleared_numbers.clone()
    }

    pub(crate) fn was_deleted_by_hand(&self, path: &str) -> bool {
        self.state.lock().deleted_by_hand.contains(path)
    }

    /// Whether the node was deleted by hand while it had a predecessor.
    pub(crate) fn was_deleted_in_queue(&self, path: &str) -> bool {
        self.state.lock().deleted_while_queued.contains(path)
    }

    /// Whether a request that checks the existence of this node is in flight, and does not wait for a
    /// connection.
    pub(crate) fn is_being_checked(&self, path: &str) -> bool {
        let checks = |request: &Request| match request {
            Request::Multi(writes) => writes
                .iter()
                .any(|write| matches!(write, WriteOp::Check { path: checked, .. } if checked == path)),
            _ => false,
        };
        let state = self.state.lock();
        let mut in_flight = state.sessions.iter().flat_map(|session| &session.in_flight);
        in_flight.any(|(_, call)| checks(&call.request))
    }

    /// Whether a tool has made the node that was created by this transaction: it belongs to no session.
    pub(crate) fn is_restored(&self, czxid: i64) -> bool {
        self.state.lock().restored.contains(czxid)
    }

    /// Whether the node exists, and was made by a client.
    pub(crate) fn has_node(&self, path: &str) -> bool {
        let state = self.state.lock();
        state.machine.tree().node(path).is_some_and(|node| !state.restored.contains(node.stat().czxid))
    }

    /// Whether a Curator client holds a permit in this directory by a lease without a node in the queue.
    pub(crate) fn curator_holds(&self, directory: &str) -> bool {
        self.state.lock().curators.holds(directory)
    }

    /// The directories in which Curator's client was granted a permit since the last call, and their limits.
    pub(crate) fn granted_to_curator(&self) -> Vec<(String, u32)> {
        self.state.lock().curators.take_granted()
    }

    /// The session of a crashed process whose nodes exist for longer than promised.
    pub(crate) fn overdue(&self) -> Option<i64> {
        let mut state = self.state.lock();
        if state.crashed.is_empty() {
            return None;
        }
        let now = self.elapsed();
        let has_nodes = |session: &i64| state.machine.tree().ephemerals(*session).next().is_some();
        let mut due = state.crashed.iter().filter(|(_, until)| **until < now).map(|(session, _)| *session);
        let overdue = due.find(has_nodes);
        if let Some(session) = overdue {
            state.crashed.remove(&session);
        }
        overdue
    }

    /// The sessions whose nodes exceed the budget, with their bytes.
    pub(crate) fn over_budget(&self) -> Vec<(i64, usize)> {
        let state = self.state.lock();
        if state.plan.room.is_none() {
            return Vec::new();
        }
        let bytes =
            |session: &i64| state.machine.tree().ephemerals(*session).map(|path| path.len() + 4).sum();
        let sessions = state.machine.sessions().into_iter().map(|session| (session, bytes(&session)));
        sessions.filter(|(_, bytes)| *bytes > BUDGET).collect()
    }

    /// The newest session of a process.
    pub(crate) fn newest_session(&self, process: &Process) -> Option<i64> {
        let state = self.state.lock();
        let mine = |session: &&ClientSession| session.process.number == process.number && session.id != 0;
        state.sessions.iter().rfind(mine).map(|session| session.id)
    }

    /// A session with nodes whose process may not know of its end: it has no connection, one that the server
    /// has closed, or one of another session.
    pub(crate) fn unsettled_session(&self) -> Option<i64> {
        let state = self.state.lock();
        let has_nodes = |session: i64| state.machine.tree().ephemerals(session).next().is_some();
        // A server may have closed the connection, and the client does not know it.
        let is_open = |client: ClientId| state.connections.get(&client).is_some_and(|known| known.at_server);
        let is_settled = |session: &ClientSession| {
            session.link == Link::Up
                && session.attached == session.id
                && session.connection.is_some_and(is_open)
        };
        let is_unsettled =
            |session: &&ClientSession| !session.has_ended() && !is_settled(session) && has_nodes(session.id);
        state.sessions.iter().find(is_unsettled).map(|session| session.id)
    }

    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.note(text);
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.state.lock().trace.take().unwrap_or_default()
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.heal();
        drop(state);
        self.poked.notify_one();
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.state.lock().plan.timeout)
    }

    pub(crate) fn open(&self, process: &Arc<Process>) -> (usize, oneshot::Receiver<Result<(), WireError>>) {
        let (opened, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        state.now = self.elapsed();
        let number = state.sessions.len();
        let session = ClientSession::new(Arc::clone(process), state.now, opened);
        state.sessions.push(session);
        state.after(0, Happening::Dial(number));
        let tick = state.plan.timeout / 20;
        state.after(tick, Happening::Tick(number));
        drop(state);
        self.poked.notify_one();
        (number, receiver)
    }

    pub(crate) fn session<T>(&self, number: usize, look: impl FnOnce(&ClientSession) -> T) -> T {
        look(&self.state.lock().sessions[number])
    }

    pub(crate) fn send(
        &self,
        number: usize,
        request: Request,
        watched: Option<Watched>,
    ) -> oneshot::Receiver<Result<Answer, WireError>> {
        let (reply, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.call(number, Call { request, watched, reply });
        drop(state);
        self.poked.notify_one();
        receiver
    }

    /// Removes a watch that no task waits for any more.
    pub(crate) fn unwatch(&self, number: usize, watched: &Watched) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.unwatch(number, watched);
        drop(state);
        self.poked.notify_one();
    }

    /// Removes a watch that stays, and that no task follows any more.
    pub(crate) fn unfollow(&self, number: usize, path: &str) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.unfollow(number, path);
        drop(state);
        self.poked.notify_one();
    }

    pub(crate) fn close(&self, number: usize) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.close(number);
        drop(state);
        self.poked.notify_one();
    }
}
