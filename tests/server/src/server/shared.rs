use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::clock::Clock;
use super::front::Front;
use super::incoming::{Fate, Incoming};
use super::outbox::{Outbox, Parcel};
#[cfg(feature = "tls")]
use super::tls::Identity;
use crate::fault::{Fault, Gate, Occasion, Strike, Subject, Switchboard};
use crate::machine::{ClientId, Machine, Origin, Output, Settings};
use crate::protocol::{ConnectResponse, ErrorCode, Op, Request};
use crate::wire::{FourLetter, Report, encode};

struct State {
    machine: Machine,
    outboxes: HashMap<ClientId, (usize, Arc<Outbox>)>,
    /// The time of the ticker's next check.
    armed_for: i64,
    received: u64,
    sent: u64,
}

/// The state that all connections of an ensemble share: the machine, and its listeners.
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) clock: Clock,
    pub(super) fronts: Vec<Front>,
    pub(super) switchboard: Arc<Switchboard>,
    /// The longest frame that is read.
    pub(super) max_request: usize,
    /// The certificate with which all connections are secured; `None`: they are plain.
    #[cfg(feature = "tls")]
    pub(super) identity: Option<Identity>,
    /// The ticker has to check earlier than planned.
    pub(super) rearm: Notify,
    /// A message was sent or received: the tasks that wait for a state check again.
    changed: Notify,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("fronts", &self.fronts).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let clock = Clock::new();
        let fronts = (0..settings.servers.max(1)).map(|_| Front::new()).collect();
        let max_request = settings.max_request;
        let machine = Machine::new(settings, clock.now());
        let armed_for = machine.next_deadline();
        let state = State { machine, outboxes: HashMap::new(), armed_for, received: 0, sent: 0 };
        Self {
            state: Mutex::new(state),
            clock,
            fronts,
            switchboard: Arc::default(),
            max_request,
            #[cfg(feature = "tls")]
            identity: None,
            rearm: Notify::new(),
            changed: Notify::new(),
        }
    }

    pub(super) fn open(&self, server: usize, address: &str, outbox: Arc<Outbox>) -> ClientId {
        let mut state = self.state.lock();
        let client = state.machine.open(server, address);
        state.outboxes.insert(client, (server, outbox));
        client
    }

    pub(super) fn disconnect(&self, client: ClientId) {
        let mut state = self.state.lock();
        state.machine.disconnect(client);
        state.outboxes.remove(&client);
        drop(state);
        self.changed.notify_waiters();
    }

    /// The fault that hits this frame, if any.
    pub(super) fn consult(&self, client: ClientId, server: usize, incoming: &Incoming) -> Option<Strike> {
        let session = |client| self.state.lock().machine.session_of(client).unwrap_or_default();
        let occasion = match incoming {
            Incoming::Connect(request) => Occasion {
                subject: Subject::Request(Op::Connect),
                paths: Vec::new(),
                session: request.session,
                server,
            },
            Incoming::Request(_, request) => Occasion {
                subject: Subject::Request(request.op()),
                paths: request.paths(),
                session: session(client),
                server,
            },
        };
        self.switchboard.consult(&occasion)
    }

    /// Gives a frame to the machine.
    pub(super) fn apply(&self, client: ClientId, incoming: Incoming, fate: &Fate) {
        self.act(Some((client, fate)), |state, now| {
            state.received += 1;
            match incoming {
                Incoming::Connect(request) => state.machine.connect(client, request, now),
                Incoming::Request(xid, request) => state.machine.request(client, xid, request, now),
            }
        });
    }

    /// Answers a frame with an error instead of giving it to the machine.
    pub(super) fn refuse(&self, client: ClientId, incoming: &Incoming, error: ErrorCode) {
        self.act(None, |state, _| match incoming {
            Incoming::Connect(request) => {
                let response = ConnectResponse::expired(request.read_only.is_some());
                vec![Output::Connected { client, response }, Output::Close { client }]
            }
            Incoming::Request(xid, _) => {
                vec![Output::Reply { client, xid: *xid, zxid: state.machine.zxid(), result: Err(error) }]
            }
        });
    }

    pub(super) fn origin(&self, client: ClientId) -> Option<Origin> {
        self.state.lock().machine.origin(client)
    }

    /// Applies a write whose connection has ended.
    pub(super) fn late_write(&self, origin: &Origin, request: Request) {
        self.act(None, |state, now| state.machine.late_write(origin, request, now));
    }

    /// Does something to the machine and sends what it says.
    pub(super) fn command(&self, act: impl FnOnce(&mut Machine, i64) -> Vec<Output>) {
        self.act(None, |state, now| act(&mut state.machine, now));
    }

    pub(super) fn inspect<T>(&self, read: impl FnOnce(&Machine) -> T) -> T {
        read(&self.state.lock().machine)
    }

    /// Waits until the machine is in a state.
    pub(super) async fn wait_until(&self, mut reached: impl FnMut(&Machine) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.inspect(&mut reached) {
                return;
            }
            changed.await;
        }
    }

    fn act(&self, own: Option<(ClientId, &Fate)>, act: impl FnOnce(&mut State, i64) -> Vec<Output>) {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let outputs = act(&mut state, now);
        for output in outputs {
            self.send(&mut state, own, &output);
        }
        let deadline = state.machine.next_deadline();
        if deadline < state.armed_for {
            state.armed_for = deadline;
            self.rearm.notify_one();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn send(&self, state: &mut State, own: Option<(ClientId, &Fate)>, output: &Output) {
        let client = output.client();
        let Some((server, outbox)) = state.outboxes.get(&client).cloned() else { return };
        let fate = own.filter(|(own, _)| *own == client).map(|(_, fate)| fate);
        let mut finish = false;
        let mut gate = None;
        match (output, fate) {
            (Output::Close { .. }, _) => {
                outbox.finish();
                state.machine.disconnect(client);
                state.outboxes.remove(&client);
                return;
            }
            (_, Some(Fate::Silenced)) => return,
            (Output::Event { event, .. }, _) => {
                let session = state.machine.session_of(client).unwrap_or_default();
                let (subject, paths) = (Subject::Event(event.kind), vec![event.path.as_str()]);
                if let Some(strike) = self.switchboard.consult(&Occasion { subject, paths, session, server })
                {
                    match strike.fault() {
                        Fault::HoldReply | Fault::HoldRequest => gate = Some(strike.gate()),
                        Fault::DelayReply(by) | Fault::DelayRequest(by) => {
                            gate = Some(Gate::At(Instant::now() + by))
                        }
                        Fault::DropConnectionAfter => finish = true,
                        Fault::DropConnectionBefore => self.break_off(server, &outbox),
                        Fault::DropReply | Fault::Refuse(_) => return strike.done(),
                        Fault::SwapSession => {}
                    }
                    strike.done();
                }
            }
            (_, Some(Fate::Dropped)) => return,
            (_, Some(Fate::Gated(wait))) => gate = Some(wait.clone()),
            (_, Some(Fate::Sent) | None) => {}
        }
        if let Some(frame) = encode(output) {
            state.sent += 1;
            outbox.push(Parcel { frame, gate });
        }
        if finish {
            self.break_off(server, &outbox);
        }
    }

    /// Lets the machine do what is due. Answers how long until it has to be asked again.
    pub(super) fn tick(&self) -> Duration {
        self.act(None, |state, now| state.machine.advance(now));
        let mut state = self.state.lock();
        state.armed_for = state.machine.next_deadline();
        Duration::from_millis(u64::try_from(state.armed_for - self.clock.now()).unwrap_or(0))
    }

    /// Moves the clock, and does what falls due.
    pub(super) fn advance_clock(&self, by: Duration) {
        self.clock.advance(by);
        self.act(None, |state, now| state.machine.advance(now));
        self.rearm.notify_one();
    }

    pub(super) fn set_clock_back(&self, by: Duration) {
        self.clock.set_back(by);
        self.rearm.notify_one();
    }

    /// Closes the connections of one server.
    pub(super) fn cut_connections(&self, server: usize) {
        let mut state = self.state.lock();
        let chosen = |(id, (at, outbox)): (&ClientId, &(usize, Arc<Outbox>))| {
            (server == *at).then(|| (*id, Arc::clone(outbox)))
        };
        let chosen: Vec<_> = state.outboxes.iter().filter_map(chosen).collect();
        for (client, outbox) in chosen {
            if self.resets(server) {
                outbox.end_by_reset();
            }
            outbox.cut();
            state.machine.disconnect(client);
            state.outboxes.remove(&client);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn resets(&self, server: usize) -> bool {
        self.fronts.get(server).is_some_and(Front::is_resetting)
    }

    /// Breaks a connection on order of a fault, after what is queued was sent.
    pub(super) fn break_off(&self, server: usize, outbox: &Outbox) {
        if self.resets(server) {
            outbox.end_by_reset();
        }
        outbox.finish();
    }

    pub(super) fn four_letters(&self, server: usize, command: FourLetter) -> String {
        let state = self.state.lock();
        let (received, sent) = (state.received, state.sent);
        command.answer(Report { machine: &state.machine, server, received, sent })
    }
}
