use std::fmt::{self, Display, Formatter};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tracing::{field, info, warn};

use super::holds::HoldRegistry;
use crate::environment::Environment;
use crate::error::LossReason;
use crate::session::{Epoch, Session, SessionPurpose, SessionSettings};
use crate::telemetry::metrics;
use crate::time::boot::BootInstant;

/// The state of a manager's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// There is no session. One is being opened.
    Connecting,
    /// The session of this epoch is connected.
    Connected(Epoch),
    /// The connection is down. The session of this epoch may still exist: holds stay valid until the lease
    /// runs out.
    Suspended(Epoch),
    /// The session of this epoch is over, and all its holds are lost. This state comes once for each epoch.
    Lost(Epoch, LossReason),
    /// The manager was shut down.
    Closed,
}

impl Display for State {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("connecting"),
            Self::Connected(epoch) => write!(formatter, "connected, {epoch}"),
            Self::Suspended(epoch) => write!(formatter, "suspended, {epoch}"),
            Self::Lost(epoch, reason) => write!(formatter, "lost, {epoch}: {reason}"),
            Self::Closed => formatter.write_str("closed"),
        }
    }
}

/// A numbered change of state. The numbers have no gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The number, from 1 on.
    pub number: u64,
    /// When the change was seen.
    pub at: BootInstant,
    /// The new state.
    pub state: State,
}

/// Every change of state from the subscription on, in order, without a gap. A [`Stream`], as
/// [`HoldEvents`](crate::HoldEvents).
#[derive(Debug)]
pub struct Transitions {
    receiver: mpsc::UnboundedReceiver<Transition>,
}

impl Transitions {
    /// The next change; `None` after [`State::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a change not returned is returned next time.
    pub async fn next(&mut self) -> Option<Transition> {
        self.receiver.recv().await
    }
}

impl Stream for Transitions {
    type Item = Transition;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Transition>> {
        self.receiver.poll_recv(context)
    }
}

/// Publishes the state: the latest value, and every change for subscribers.
#[derive(Debug)]
pub(crate) struct StatePublisher {
    latest: Mutex<StateSnapshot>,
    // tokio's `watch` wakes its waiters in random order.
    changed: Notify,
    log: Mutex<Log>,
    environment: Arc<dyn Environment>,
    purpose: SessionPurpose,
    /// Whether the task of the manager ended without a shutdown.
    runtime_ended: AtomicBool,
    holds: Arc<HoldRegistry>,
}

/// The latest state and its session.
#[derive(Clone, Debug)]
pub(crate) struct StateSnapshot {
    pub(crate) state: State,
    pub(crate) session: Option<Session>,
    pub(crate) since: BootInstant,
}

#[derive(Debug, Default)]
struct Log {
    number: u64,
    subscribers: Vec<mpsc::UnboundedSender<Transition>>,
}

impl StatePublisher {
    pub(crate) fn new(settings: &SessionSettings, holds: Arc<HoldRegistry>) -> Arc<Self> {
        let (environment, purpose) = (Arc::clone(&settings.environment), settings.purpose);
        metrics::manager_started();
        // Until it is connected for the first time.
        metrics::disconnected(1.0);
        let latest =
            Mutex::new(StateSnapshot { state: State::Connecting, session: None, since: environment.now() });
        let (changed, log) = (Notify::new(), Mutex::new(Log::default()));
        let runtime_ended = AtomicBool::new(false);
        Arc::new(Self { latest, changed, log, environment, purpose, runtime_ended, holds })
    }

    /// Waits for a state that `will_do` accepts.
    pub(crate) async fn wait_for(&self, will_do: impl Fn(&StateSnapshot) -> bool) -> StateSnapshot {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let latest = self.latest.lock().clone();
            if will_do(&latest) {
                return latest;
            }
            changed.await;
        }
    }

    /// The present session, if there is one.
    pub(crate) fn session(&self) -> Option<Session> {
        self.latest.lock().session.clone()
    }

    pub(crate) fn snapshot(&self) -> StateSnapshot {
        self.latest.lock().clone()
    }

    pub(crate) fn state(&self) -> State {
        self.latest.lock().state
    }

    pub(crate) fn subscribe(&self) -> Transitions {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut log = self.log.lock();
        if self.state() != State::Closed {
            log.subscribers.push(sender);
        }
        Transitions { receiver }
    }

    /// Whether the task of the manager ended without a shutdown: with its runtime, or by a panic.
    pub(crate) fn has_runtime_ended(&self) -> bool {
        self.runtime_ended.load(Ordering::Acquire)
    }

    /// Records that, before the state becomes [`State::Closed`].
    pub(crate) fn set_runtime_ended(&self) {
        self.runtime_ended.store(true, Ordering::Release);
    }

    /// Changes the state. The present state is no change.
    pub(crate) fn enter(&self, state: State, session: Option<Session>) {
        let mut log = self.log.lock();
        let present = self.state();
        if present == state || present == State::Closed {
            return;
        }
        log.number += 1;
        let transition = Transition { number: log.number, at: self.environment.now(), state };
        // Stored first: a subscriber that gets a change and then reads the state must find it.
        let former = std::mem::replace(
            &mut *self.latest.lock(),
            StateSnapshot { state, session, since: transition.at },
        );
        log.subscribers.retain(|subscriber| subscriber.send(transition).is_ok());
        if state == State::Closed {
            log.subscribers.clear();
        }
        self.changed.notify_waiters();
        self.report(transition, &former);
    }
}

impl StatePublisher {
    /// Logs and counts a change.
    fn report(&self, transition: Transition, former: &StateSnapshot) {
        let (Transition { number, state, at }, purpose) = (transition, self.purpose);
        let session = former.session.as_ref().map(|session| field::display(format!("{:#x}", session.id())));
        let lasted = at.since(former.since);
        metrics::connected(change(is_connected, former.state, state));
        metrics::disconnected(change(is_disconnected, former.state, state));
        match state {
            State::Connecting => info!(number, %purpose, "connecting: a new session is being opened"),
            State::Connected(epoch) => {
                let is_back = former.state == State::Suspended(epoch);
                if is_back {
                    metrics::reconnected();
                }
                let reason = if is_back { "the link is up again" } else { "a session was opened" };
                info!(number, %purpose, epoch = epoch.as_u64(), reason, after = ?lasted, "connected");
            }
            State::Suspended(epoch) => {
                let reason = "the link is down";
                let lease = former.session.as_ref().map(|session| session.lease_valid_until().since(at));
                let lease_left = lease.map(field::debug);
                let (epoch, held, after) = (epoch.as_u64(), self.holds.held(), field::debug(lasted));
                info!(number, %purpose, epoch, session, held, lease_left, reason, after, "suspended");
            }
            State::Lost(epoch, reason) => {
                metrics::session_expired(reason);
                let epoch = epoch.as_u64();
                warn!(number, %purpose, epoch, session, %reason, after = ?lasted, "session lost");
            }
            State::Closed => {
                let reason = if self.has_runtime_ended() { "its runtime ended" } else { "shut down" };
                info!(number, %purpose, session, reason, after = ?lasted, "closed");
            }
        }
    }
}

fn is_connected(state: State) -> bool {
    matches!(state, State::Connected(_))
}

/// A session is needed, and is not there or not connected.
fn is_disconnected(state: State) -> bool {
    !is_connected(state) && state != State::Closed
}

/// The change of the number of sessions that `is` counts.
fn change(is: fn(State) -> bool, former: State, state: State) -> f64 {
    f64::from(i8::from(is(state)) - i8::from(is(former)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::lease_renewal::LeaseRenewal;
    use crate::config::retry::RetryPolicy;
    use crate::environment::ThisMachine;

    fn settings() -> SessionSettings {
        SessionSettings {
            operation_timeout: Duration::from_secs(1),
            retry: RetryPolicy::default(),
            tick: Duration::from_secs(1),
            token_generation: 0,
            lease_keep_alive: Duration::ZERO,
            lease_renewal: LeaseRenewal::default(),
            node_bytes_max: usize::MAX,
            environment: Arc::new(ThisMachine::here().unwrap()),
            purpose: SessionPurpose::Locks,
            lacks_containers: AtomicBool::new(false),
            lacks_multi_read: AtomicBool::new(false),
            hang_ups: Arc::default(),
            zxids: Arc::default(),
        }
    }

    #[tokio::test]
    async fn every_change_is_numbered_without_a_gap() {
        let publisher = StatePublisher::new(&settings(), Arc::default());
        let mut transitions = publisher.subscribe();
        let first = Epoch(1);
        let states = [
            State::Connected(first),
            State::Suspended(first),
            State::Lost(first, LossReason::SessionExpired),
            State::Closed,
        ];
        for state in states {
            publisher.enter(state, None);
            publisher.enter(state, None);
        }
        publisher.enter(State::Connecting, None);
        for (number, state) in (1..).zip(states) {
            let transition = transitions.next().await.unwrap();
            assert_eq!((transition.number, transition.state), (number, state));
        }
        assert_eq!(transitions.next().await, None);
        assert_eq!(publisher.state(), State::Closed);
        assert_eq!(publisher.subscribe().next().await, None);
    }
}
