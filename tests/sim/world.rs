//! The simulated ensemble and network: one queue of what happens next, and one task that lets it happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::CreateMode;
use lockkeeper_core::simulation::{Link, WatchEvent, WireError};
use lockkeeper_testserver::machine::{ClientId, Isolation, Machine, Origin, Output};
use lockkeeper_testserver::protocol::{ConnectRequest, Request};
use lockkeeper_testserver::tree::EventKind;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::host::Process;
use crate::oracle::Oracle;
use crate::plan::{Fault, Plan};
use crate::session::{Answer, Call, ClientSession};
use crate::wire::create;

/// A handle to the world; all handles are the same world.
#[derive(Clone)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    /// Something was put into the queue.
    poked: Arc<Notify>,
    started: Instant,
}

struct State {
    plan: Plan,
    dice: Dice,
    now: u64,
    machine: Machine,
    sessions: Vec<ClientSession>,
    connections: BTreeMap<ClientId, Connection>,
    processes: Vec<Arc<Process>>,
    /// What happens next, by time and then by the order in which it was decided.
    queue: BTreeMap<(u64, u64), Happening>,
    next_number: u64,
    next_advance: u64,
    latency: u64,
    /// The servers that are away, and the processes that reach nobody, until then.
    away: BTreeMap<usize, u64>,
    partitioned: BTreeMap<usize, u64>,
    is_healing: bool,
    /// The next client that comes back gets another session.
    swaps_next: bool,
    /// What waits for each process that stands still.
    backlogs: BTreeMap<usize, Vec<Happening>>,
    deleted_by_hand: BTreeSet<String>,
    /// What happened, if anybody wants to know.
    trace: Option<Vec<String>>,
}

struct Connection {
    session: usize,
    server: usize,
    /// Messages do not overtake each other.
    to_server_from: u64,
    to_client_from: u64,
    /// What the server says gets lost.
    loses_replies: bool,
    /// Whether the server still has it, and the client.
    at_server: bool,
    at_client: bool,
}

enum Happening {
    Dial(usize),
    ToServer(ClientId, ToServer),
    ToClient(ClientId, Output),
    /// The server notices that the client is gone.
    HangUp(ClientId),
    /// The client's timers.
    Tick(usize),
    Advance,
    Late(Origin, Request),
    Strike,
    Thaw(usize),
    CatchUp(usize),
    Rejoin(usize),
    NewLeader,
    Calm,
}

enum ToServer {
    Connect(ConnectRequest),
    Request(i32, Request),
}

/// How much of what happened is kept.
const TRACE_MAX: usize = 200_000;

impl World {
    pub(crate) fn new(plan: Plan, mut dice: Dice) -> Self {
        // The ticks of the servers and of the clients do not begin together.
        let now = dice.between(1, 10_000);
        let mut machine = Machine::new(plan.settings(), now.cast_signed());
        make_registers(&mut machine, &plan, now.cast_signed());
        let mut state = State {
            latency: plan.latency,
            plan,
            dice,
            now,
            machine,
            sessions: Vec::new(),
            connections: BTreeMap::new(),
            processes: Vec::new(),
            queue: BTreeMap::new(),
            next_number: 0,
            next_advance: u64::MAX,
            away: BTreeMap::new(),
            partitioned: BTreeMap::new(),
            is_healing: false,
            swaps_next: false,
            backlogs: BTreeMap::new(),
            deleted_by_hand: BTreeSet::new(),
            trace: None,
        };
        state.plan_advance();
        let first = state.plan.between_faults;
        state.after(first, Happening::Strike);
        Self {
            state: Arc::new(Mutex::new(state)),
            poked: Arc::default(),
            started: Instant::now() - Duration::from_millis(now),
        }
    }

    /// Keeps what happens from now on, line by line.
    pub(crate) fn keep_trace(&self) {
        self.state.lock().trace = Some(Vec::new());
    }

    pub(crate) fn add(&self, process: &Arc<Process>) {
        self.state.lock().processes.push(Arc::clone(process));
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap()
    }

    /// Lets happen what happens, for as long as it is polled.
    pub(crate) async fn turn(&self, oracle: &Oracle) {
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
            oracle.look(self);
            // Whoever was woken acts before the next thing happens.
            tokio::task::yield_now().await;
        }
    }

    /// The servers' state, as the quorum has it.
    pub(crate) fn machine<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        look(&self.state.lock().machine)
    }

    pub(crate) fn plan(&self) -> Plan {
        self.state.lock().plan.clone()
    }

    pub(crate) fn is_healing(&self) -> bool {
        self.state.lock().is_healing
    }

    pub(crate) fn was_deleted_by_hand(&self, path: &str) -> bool {
        self.state.lock().deleted_by_hand.contains(path)
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
        watched: Option<String>,
    ) -> oneshot::Receiver<Result<Answer, WireError>> {
        let (reply, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.call(number, Call { request, watched, reply });
        drop(state);
        self.poked.notify_one();
        receiver
    }

    pub(crate) fn close(&self, number: usize) {
        let mut state = self.state.lock();
        state.now = self.elapsed();
        state.close(number);
        drop(state);
        self.poked.notify_one();
    }
}

impl State {
    fn note(&mut self, text: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < TRACE_MAX) {
            trace.push(format!("{now:>7} {}", text()));
        }
    }

    fn server_time(&self) -> i64 {
        self.now.cast_signed()
    }

    fn after(&mut self, wait: u64, happening: Happening) {
        self.at(self.now + wait, happening);
    }

    fn at(&mut self, at: u64, happening: Happening) {
        self.next_number += 1;
        self.queue.insert((at, self.next_number), happening);
    }

    fn plan_advance(&mut self) {
        let due = self.machine.next_deadline().max(self.server_time() + 1).cast_unsigned();
        if due < self.next_advance {
            self.next_advance = due;
            self.at(due, Happening::Advance);
        }
    }

    fn way(&mut self) -> u64 {
        self.dice.between(1, self.latency)
    }

    // ---- The client's end.

    fn call(&mut self, number: usize, call: Call) {
        let session = &mut self.sessions[number];
        if session.has_ended() {
            let _ =
                call.reply.send(Err(WireError::SessionEnded(lockkeeper_core::LossReason::SessionExpired)));
        } else if session.link == Link::Up {
            self.transmit(number, call);
        } else {
            session.queued.push_back(call);
        }
    }

    fn transmit(&mut self, number: usize, call: Call) {
        let session = &mut self.sessions[number];
        let Some(connection) = session.connection else { return };
        let xid = session.next_xid;
        session.next_xid += 1;
        session.last_sent = self.now;
        let request = call.request.clone();
        self.note(|| format!("s{number} {connection:?} -> #{xid} {request:?}"));
        self.sessions[number].under_way.push_back((xid, call));
        self.forward(connection, ToServer::Request(xid, request));
    }

    fn forward(&mut self, client: ClientId, message: ToServer) {
        let way = self.way();
        let Some(connection) = self.connections.get_mut(&client) else { return };
        let at = (self.now + way).max(connection.to_server_from);
        connection.to_server_from = at;
        self.at(at, Happening::ToServer(client, message));
    }

    fn close(&mut self, number: usize) {
        if self.sessions[number].has_ended() || self.sessions[number].is_closing {
            return;
        }
        self.note(|| format!("s{number} closes"));
        let session = &mut self.sessions[number];
        session.is_closing = true;
        if session.opened.is_some() {
            let client = session.connection;
            session.end();
            if let Some(client) = client {
                self.break_up(client);
            }
            return;
        }
        let (reply, _) = oneshot::channel();
        self.call(number, Call { request: Request::CloseSession, watched: None, reply });
    }

    fn dial(&mut self, number: usize) {
        let session = &self.sessions[number];
        if session.has_ended() || session.connection.is_some() {
            return;
        }
        let process = session.process.number;
        let server = self.dice.index(self.plan.servers);
        let (wait, again) = (self.way(), self.dice.between(10, 10 + self.plan.timeout / 20));
        if self.away.contains_key(&server) || self.partitioned.contains_key(&process) {
            return self.after(wait + again, Happening::Dial(number));
        }
        let client = self.machine.open(server, "10.0.0.1");
        self.note(|| format!("s{number} dials server {server}: {client:?}"));
        let connection = Connection {
            session: number,
            server,
            to_server_from: 0,
            to_client_from: 0,
            loses_replies: false,
            at_server: true,
            at_client: true,
        };
        self.connections.insert(client, connection);
        let timeout = i32::try_from(self.plan.timeout).unwrap();
        let swapped = std::mem::take(&mut self.swaps_next) && self.sessions[number].id != 0;
        if swapped {
            self.note(|| format!("FAULT s{number} gets another session"));
        }
        let session = &mut self.sessions[number];
        session.connection = Some(client);
        session.last_sent = self.now;
        let request = ConnectRequest {
            last_zxid: session.seen,
            timeout,
            session: if swapped { 0 } else { session.attached },
            password: session.password.clone(),
            read_only: Some(false),
        };
        self.forward(client, ToServer::Connect(request));
    }

    /// The client's end of a connection is gone.
    fn lose_connection(&mut self, client: ClientId) {
        let Some(connection) = self.connections.get_mut(&client).filter(|connection| connection.at_client)
        else {
            return;
        };
        connection.at_client = false;
        let number = connection.session;
        let session = &mut self.sessions[number];
        if session.has_ended() || session.connection != Some(client) {
            return;
        }
        session.disconnect();
        self.note(|| format!("s{number} {client:?} disconnected"));
        if self.sessions[number].opened.is_some() && self.sessions[number].id != 0 {
            self.sessions[number].end();
            return;
        }
        let wait = self.dice.between(1, 1 + self.plan.timeout / 40);
        self.after(wait, Happening::Dial(number));
    }

    fn tick(&mut self, number: usize) {
        let timeout = self.plan.timeout;
        let session = &mut self.sessions[number];
        if session.has_ended() {
            return;
        }
        let silent = self.now - session.last_heard;
        if session.link != Link::Up && session.id != 0 && silent > timeout * 7 / 5 {
            self.note(|| format!("s{number} gives up after {silent} ms of silence"));
            let client = self.sessions[number].connection;
            self.sessions[number].end();
            if let Some(client) = client {
                self.break_up(client);
            }
            return;
        }
        let since_sent = self.now - session.last_sent;
        match (session.connection, session.link) {
            (Some(client), Link::Up) if silent > timeout * 2 / 5 => self.break_up(client),
            (Some(client), Link::Down) if since_sent > timeout / 5 => self.break_up(client),
            (Some(client), Link::Up) if since_sent > timeout * 3 / 20 => {
                session.last_sent = self.now;
                self.forward(client, ToServer::Request(-2, Request::Ping));
            }
            _ => {}
        }
        self.after(timeout / 20, Happening::Tick(number));
    }

    /// The client hangs up; the server notices in time.
    fn break_up(&mut self, client: ClientId) {
        self.lose_connection(client);
        let notice = self.dice.between(1, self.plan.timeout / 5);
        self.after(notice, Happening::HangUp(client));
    }

    fn receive(&mut self, client: ClientId, output: Output) {
        let Some(connection) = self.connections.get(&client).filter(|connection| connection.at_client) else {
            return;
        };
        if connection.loses_replies {
            return;
        }
        let number = connection.session;
        self.sessions[number].last_heard = self.now;
        match output {
            Output::Connected { response, .. } => {
                let session = &mut self.sessions[number];
                if response.session == 0 {
                    self.note(|| format!("s{number} is told that it has expired"));
                    self.sessions[number].end();
                    return;
                }
                session.attached = response.session;
                if session.id == 0 {
                    session.id = response.session;
                }
                session.password = response.password;
                session.set_link(Link::Up);
                if let Some(opened) = session.opened.take() {
                    let _ = opened.send(Ok(()));
                }
                let id = session.id;
                self.note(|| format!("s{number} {client:?} connected, session {id:#x}"));
                self.set_watches(number);
                for call in std::mem::take(&mut self.sessions[number].queued) {
                    self.transmit(number, call);
                }
                // Asked for before the last connection broke.
                if self.sessions[number].is_closing && self.sessions[number].under_way.is_empty() {
                    let (reply, _) = oneshot::channel();
                    self.call(number, Call { request: Request::CloseSession, watched: None, reply });
                }
            }
            Output::Reply { xid: -2, zxid, .. } => {
                let session = &mut self.sessions[number];
                session.seen = session.seen.max(zxid);
            }
            Output::Reply { xid, zxid, result, .. } => {
                self.note(|| format!("s{number} {client:?} <- #{xid} {zxid} {result:?}"));
                let session = &mut self.sessions[number];
                session.answer(xid, zxid, result);
                if session.is_closing && session.under_way.is_empty() && session.queued.is_empty() {
                    session.end();
                }
            }
            Output::Event { event, .. } => {
                self.note(|| format!("s{number} {client:?} <- {event:?}"));
                let seen = match event.kind {
                    EventKind::Deleted => WatchEvent::Deleted,
                    _ => WatchEvent::Changed,
                };
                self.sessions[number].event(&event.path, seen);
            }
            Output::Close { .. } => self.lose_connection(client),
        }
    }

    fn set_watches(&mut self, number: usize) {
        let session = &mut self.sessions[number];
        let data = session.watched_paths();
        if data.is_empty() {
            return;
        }
        let seen = session.seen;
        let request =
            Request::SetWatches { seen, data, absent: Vec::new(), children: Vec::new(), persistent: None };
        let (reply, _) = oneshot::channel();
        self.transmit(number, Call { request, watched: None, reply });
    }

    // ---- The servers' end.

    fn emit(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let client = output.client();
            let way = self.way();
            let Some(connection) = self.connections.get_mut(&client).filter(|known| known.at_server) else {
                continue;
            };
            let at = (self.now + way).max(connection.to_client_from);
            connection.to_client_from = at;
            if matches!(output, Output::Close { .. }) {
                connection.at_server = false;
                self.machine.disconnect(client);
            }
            self.at(at, Happening::ToClient(client, output));
        }
        self.plan_advance();
    }

    fn hang_up(&mut self, client: ClientId) {
        if let Some(connection) = self.connections.get_mut(&client)
            && connection.at_server
        {
            connection.at_server = false;
            self.machine.disconnect(client);
        }
    }

    // ---- What happens.

    fn happen(&mut self, happening: Happening) {
        let now = self.server_time();
        // A process that stands still leaves everything until later, in order.
        let process = match &happening {
            Happening::Dial(session) | Happening::Tick(session) => Some(&self.sessions[*session].process),
            Happening::ToClient(client, _) => {
                self.connections.get(client).map(|connection| &self.sessions[connection.session].process)
            }
            _ => None,
        };
        if let Some(process) = process
            && (process.is_frozen() || self.backlogs.contains_key(&process.number))
        {
            let number = process.number;
            return self.backlogs.entry(number).or_default().push(happening);
        }
        match happening {
            Happening::Dial(number) => self.dial(number),
            Happening::Tick(number) => self.tick(number),
            Happening::ToClient(client, output) => self.receive(client, output),
            Happening::ToServer(client, message) => {
                let Some(connection) = self.connections.get(&client).filter(|known| known.at_server) else {
                    return;
                };
                if self.away.contains_key(&connection.server) {
                    return;
                }
                let outputs = match message {
                    ToServer::Connect(request) => self.machine.connect(client, request, now),
                    ToServer::Request(xid, request) => self.machine.request(client, xid, request, now),
                };
                self.emit(outputs);
            }
            Happening::HangUp(client) => self.hang_up(client),
            Happening::Advance => {
                self.next_advance = u64::MAX;
                let outputs = self.machine.advance(now);
                self.emit(outputs);
            }
            Happening::Late(origin, request) => {
                self.note(|| format!("late: {request:?}"));
                let outputs = self.machine.late_write(&origin, request, now);
                self.emit(outputs);
            }
            Happening::Strike => self.strike(),
            Happening::Thaw(process) => {
                self.note(|| format!("process {process} goes on"));
                self.processes[process].thaw();
                // Its tasks may have their turn before it reads what has come.
                let wait = self.dice.between(0, 2);
                self.after(wait, Happening::CatchUp(process));
            }
            Happening::CatchUp(process) => {
                for late in self.backlogs.remove(&process).unwrap_or_default() {
                    self.happen(late);
                }
            }
            Happening::Rejoin(server) => {
                self.note(|| format!("server {server} is back"));
                let outputs = self.machine.heal(server, now);
                self.emit(outputs);
            }
            Happening::NewLeader => self.machine.renew_sessions(now),
            Happening::Calm => {
                if !self.is_healing {
                    self.latency = self.plan.latency;
                }
                self.away.retain(|_, until| *until > self.now);
                self.partitioned.retain(|_, until| *until > self.now);
            }
        }
    }

    fn strike(&mut self) {
        if self.is_healing {
            return;
        }
        let wait = self.dice.between(1, self.plan.between_faults * 2);
        self.after(wait, Happening::Strike);
        if self.plan.faults.is_empty() {
            return;
        }
        let fault = self.plan.faults[self.dice.index(self.plan.faults.len())];
        let timeout = self.plan.timeout;
        let span = match self.dice.index(3) {
            0 => self.dice.between(1, timeout / 10),
            1 => self.dice.between(1, timeout),
            _ => self.dice.between(timeout, timeout * 2),
        };
        let open: Vec<ClientId> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.at_client && connection.at_server)
            .map(|(client, _)| *client)
            .collect();
        match fault {
            Fault::Cut | Fault::LoseReplies if open.is_empty() => {}
            Fault::Cut => {
                let client = open[self.dice.index(open.len())];
                self.note(|| format!("FAULT cut {client:?}"));
                self.cut(client);
            }
            Fault::LoseReplies => {
                let client = open[self.dice.index(open.len())];
                self.note(|| format!("FAULT {client:?} loses replies"));
                if let Some(connection) = self.connections.get_mut(&client) {
                    connection.loses_replies = true;
                }
            }
            Fault::Partition => {
                let process = self.dice.index(self.processes.len());
                self.note(|| format!("FAULT partition of process {process} for {span}"));
                self.partitioned.insert(process, self.now + span);
                for client in open {
                    if self.sessions[self.connections[&client].session].process.number == process {
                        self.cut(client);
                    }
                }
                self.after(span, Happening::Calm);
            }
            Fault::Restart => {
                let server = self.dice.index(self.plan.servers);
                self.note(|| format!("FAULT restart of server {server} for {span}"));
                self.away.insert(server, self.now + span);
                for client in open {
                    if self.connections[&client].server == server {
                        self.hang_up(client);
                        let way = self.way();
                        self.after(way, Happening::ToClient(client, Output::Close { client }));
                    }
                }
                self.after(span, Happening::Calm);
            }
            Fault::Stale | Fault::Depose => {
                let server = self.dice.index(self.plan.servers);
                let others = (0..self.plan.servers).filter(|other| *other != server);
                if others.into_iter().any(|other| self.machine.is_cut_off(other)) {
                    return;
                }
                let isolation = if fault == Fault::Stale { Isolation::Stale } else { Isolation::Deposed };
                self.note(|| format!("FAULT server {server} {isolation:?} for {span}"));
                self.machine.cut_off(server, isolation);
                if fault == Fault::Depose && self.dice.percent(50) {
                    let election = self.dice.between(1, self.plan.tick);
                    self.after(election, Happening::NewLeader);
                }
                self.after(span, Happening::Rejoin(server));
            }
            Fault::Freeze => {
                let process = self.dice.index(self.processes.len());
                if self.processes[process].is_frozen() {
                    return;
                }
                self.note(|| format!("FAULT process {process} stands still for {span}"));
                self.processes[process].freeze();
                self.after(span, Happening::Thaw(process));
            }
            Fault::Slow => {
                self.note(|| format!("FAULT slow for {span}"));
                self.latency = timeout / 8;
                self.after(span, Happening::Calm);
            }
            Fault::Reap => {
                let outputs = self.machine.reap(self.server_time());
                self.emit(outputs);
            }
            Fault::Swap => self.swaps_next = true,
            Fault::DeleteByHand => self.delete_by_hand(),
        }
    }

    fn delete_by_hand(&mut self) {
        let sessions = self.machine.sessions();
        let paths: Vec<String> = sessions
            .iter()
            .flat_map(|session| self.machine.tree().ephemerals(*session))
            .map(str::to_owned)
            .collect();
        if paths.is_empty() {
            return;
        }
        let path = &paths[self.dice.index(paths.len())];
        self.deleted_by_hand.insert(path.clone());
        self.note(|| format!("FAULT delete by hand {path}"));
        let outputs = self.machine.delete_node(path, self.server_time());
        self.emit(outputs);
    }

    /// Both ends are apart from now on. What the client sent may still reach the server, be it later than what it
    /// sends on its next connection; what the server sent is lost.
    fn cut(&mut self, client: ClientId) {
        if self.dice.percent(50) {
            self.break_up(client);
        } else {
            // What is on its way is lost, or is applied when the connection is long gone.
            let late = self.dice.percent(50).then(|| self.machine.origin(client)).flatten();
            let on_its_way: Vec<(u64, u64)> = self
                .queue
                .iter()
                .filter(|(_, queued)| matches!(queued, Happening::ToServer(to, _) if *to == client))
                .map(|(key, _)| *key)
                .collect();
            for key in on_its_way {
                if let (Some(Happening::ToServer(_, ToServer::Request(_, request))), Some(origin)) =
                    (self.queue.remove(&key), &late)
                {
                    let wait = self.dice.between(1, self.plan.timeout / 4);
                    self.after(wait, Happening::Late(origin.clone(), request));
                }
            }
            self.lose_connection(client);
            self.hang_up(client);
        }
    }

    fn heal(&mut self) {
        self.note(|| "HEALING".to_owned());
        self.is_healing = true;
        self.swaps_next = false;
        self.away.clear();
        self.partitioned.clear();
        self.latency = self.plan.latency_in_peace();
        let broken = self.connections.iter().filter(|(_, connection)| connection.loses_replies);
        for client in broken.map(|(client, _)| *client).collect::<Vec<_>>() {
            self.break_up(client);
        }
        for server in 0..self.plan.servers {
            if self.machine.is_cut_off(server) {
                let outputs = self.machine.heal(server, self.server_time());
                self.emit(outputs);
            }
        }
        for process in 0..self.processes.len() {
            if self.processes[process].is_frozen() {
                self.after(0, Happening::Thaw(process));
            }
        }
    }
}

/// What holders write into.
fn make_registers(machine: &mut Machine, plan: &Plan, now: i64) {
    let client = machine.open(0, "10.0.0.2");
    machine.connect(client, ConnectRequest { timeout: 10_000, ..ConnectRequest::default() }, now);
    let locks = (0..plan.locks).map(|lock| format!("/registers/{lock}"));
    for path in std::iter::once("/registers".to_owned()).chain(locks) {
        machine.request(client, 1, Request::Write(create(&path, &[], CreateMode::Persistent)), now);
    }
    machine.request(client, 2, Request::CloseSession, now);
    machine.disconnect(client);
}
