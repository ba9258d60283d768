use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lockkeeper_core::CreateMode;
use lockkeeper_testserver::machine::{ClientId, Machine};
use lockkeeper_testserver::protocol::{ConnectRequest, Request};

use super::connection::Connection;
use super::curator::Curators;
use super::happening::Happening;
use super::held::HeldTransaction;
use super::restored::Restored;
use crate::environment::Process;
use crate::plan::Plan;
use crate::rng::Rng;
use crate::session::ClientSession;
use crate::wire::create;

/// The state of the simulation: servers, network, the clients' ends of their sessions, and the coming events.
pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) machine: Machine,
    pub(super) sessions: Vec<ClientSession>,
    pub(super) connections: BTreeMap<ClientId, Connection>,
    pub(super) processes: Vec<Arc<Process>>,
    /// The coming events, by time and then by the order in which they were decided.
    pub(super) queue: BTreeMap<(u64, u64), Happening>,
    next_number: u64,
    pub(super) next_advance: u64,
    pub(super) latency: u64,
    /// The servers that are down, and the processes that reach no server, until these times.
    pub(super) away: BTreeMap<usize, u64>,
    pub(super) partitioned: BTreeMap<usize, u64>,
    pub(super) is_healing: bool,
    /// The next client that reconnects gets another session.
    pub(super) swaps_next: bool,
    /// The next process that gets the answer to a write reaches no server from then on.
    pub(super) strands_next: bool,
    /// The next transaction with creates is held.
    pub(super) holds_next: bool,
    /// How many transactions of each session were held.
    pub(super) holds: BTreeMap<usize, u32>,
    /// The next change of the counter is refused.
    pub(super) refuses_next: bool,
    pub(super) held: Option<HeldTransaction>,
    /// Curator creates a lease after the next list of a semaphore's leases.
    pub(super) curator_is_next: bool,
    pub(super) curators: Curators,
    pub(super) restored: Restored,
    /// The waiting events of each paused process.
    pub(super) backlogs: BTreeMap<usize, Vec<Happening>>,
    pub(super) deleted_by_hand: BTreeSet<String>,
    /// The numbers of the counter when it was deleted by hand.
    pub(super) cleared_numbers: Vec<i64>,
    /// Those of them that were deleted while they had a predecessor.
    pub(super) deleted_while_queued: BTreeSet<String>,
    /// Nodes whose delete their own sessions have sent.
    pub(super) leaving: BTreeSet<String>,
    /// Those of them whose delete comes without a create of a replacement.
    pub(super) given_up: BTreeSet<String>,
    /// Nodes that their own session has deleted, without a create of a replacement.
    pub(super) released: BTreeSet<String>,
    pub(super) counts_ahead: bool,
    /// The sessions of crashed processes, and the times by which their nodes must be deleted.
    pub(super) crashed: BTreeMap<i64, u64>,
    /// The trace, if one is kept.
    pub(super) trace: Option<Vec<String>>,
}

/// The maximum length of the trace.
const TRACE_MAX: usize = 200_000;

impl State {
    pub(super) fn new(plan: Plan, rng: Rng, now: u64) -> Self {
        let mut machine = Machine::new(plan.settings(), now.cast_signed());
        make_registers(&mut machine, &plan, now.cast_signed());
        let mut state = Self {
            latency: plan.latency,
            plan,
            rng,
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
            strands_next: false,
            holds_next: false,
            holds: BTreeMap::new(),
            refuses_next: false,
            held: None,
            curator_is_next: false,
            curators: Curators::default(),
            restored: Restored::default(),
            backlogs: BTreeMap::new(),
            deleted_by_hand: BTreeSet::new(),
            cleared_numbers: Vec::new(),
            deleted_while_queued: BTreeSet::new(),
            leaving: BTreeSet::new(),
            given_up: BTreeSet::new(),
            released: BTreeSet::new(),
            counts_ahead: false,
            crashed: BTreeMap::new(),
            trace: None,
        };
        state.plan_advance();
        let first = state.plan.between_faults;
        state.after(first, Happening::Strike);
        state
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = self.trace.as_mut().filter(|trace| trace.len() < TRACE_MAX) {
            trace.push(format!("{now:>7} {}", text()));
        }
    }

    pub(super) fn server_time(&self) -> i64 {
        self.now.cast_signed()
    }

    pub(super) fn after(&mut self, wait: u64, happening: Happening) {
        self.at(self.now + wait, happening);
    }

    pub(super) fn at(&mut self, at: u64, happening: Happening) {
        self.next_number += 1;
        self.queue.insert((at, self.next_number), happening);
    }

    pub(super) fn plan_advance(&mut self) {
        let due = self.machine.next_deadline().max(self.server_time() + 1).cast_unsigned();
        if due < self.next_advance {
            self.next_advance = due;
            self.at(due, Happening::Advance);
        }
    }

    pub(super) fn way(&mut self) -> u64 {
        self.rng.between(1, self.latency)
    }
}

/// The registers that holders write.
fn make_registers(machine: &mut Machine, plan: &Plan, now: i64) {
    let client = machine.open(0, "10.0.0.2");
    machine.connect(client, ConnectRequest { timeout: 10_000, ..ConnectRequest::default() }, now);
    let locks = (0..plan.locks.len()).map(|lock| format!("/registers/{lock}"));
    for path in std::iter::once("/registers".to_owned()).chain(locks) {
        machine.request(client, 1, Request::Write(create(&path, &[], CreateMode::Persistent)), now);
    }
    machine.request(client, 2, Request::CloseSession, now);
    machine.disconnect(client);
}
