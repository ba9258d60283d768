use lockkeeper_test_recipes::semaphore::LIMIT;
use lockkeeper_testserver::machine::Settings;

use crate::fault::{self, Fault};
use crate::locks::{self, Lock};
use crate::rng::Rng;

/// The settings of one seed, drawn before the simulation starts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) servers: usize,
    /// Session timeout and tick, in milliseconds.
    pub(crate) timeout: u64,
    pub(crate) tick: u64,
    pub(crate) relay_touches: bool,
    pub(crate) container_interval: u64,
    /// The first sequence number of a queue: near a carry, or near the end of the range.
    pub(crate) first_sequence: i32,
    /// The longest delay of a message, in milliseconds.
    pub(crate) latency: u64,
    /// Client processes, and tasks in each.
    pub(crate) processes: usize,
    pub(crate) workers: usize,
    /// The recipes under contention.
    pub(crate) locks: Vec<Lock>,
    /// How long faults strike, in milliseconds, and the mean time between two.
    pub(crate) safety: u64,
    pub(crate) between_faults: u64,
    pub(crate) faults: Vec<Fault>,
    /// How far the rates of any two clocks may differ, in parts per million: below one in a hundred.
    pub(crate) drift: u64,
    /// How many sessions each process has: every lock has one of them.
    pub(crate) sessions: u32,
    /// Whether processes may shut their manager down during the run, and continue with another.
    pub(crate) shuts_down: bool,
    /// Whether a task of each process follows the nodes of all locks, and whether one counts.
    pub(crate) views: bool,
    pub(crate) counts: bool,
    /// How many nodes each session has room for, if its budget is small.
    pub(crate) room: Option<usize>,
}

/// The assumption of the promises: rates differ by less than one in a hundred.
const DRIFT_MAX: u64 = 9_999;

/// The smallest budget that a manager takes, in bytes.
pub(crate) const BUDGET: usize = 1_024;

/// The most nodes that one task has: the permits of a semaphore, and a node in its queue.
const NODES_OF_ONE: usize = LIMIT as usize + 1;

/// What a node is longer than the path of its recipe, at least: its name, and the length before it.
const NODE_NAME: usize = 65;

/// What makes a path so long that the budget of a session has room for so many nodes.
pub(crate) fn padding(room: Option<usize>) -> usize {
    room.map_or(0, |room| BUDGET / room - NODE_NAME)
}

/// Faults that only some of the plans have, and their chance in percent.
const SELDOM: [(u64, Fault); 8] = [
    (20, Fault::Swap),
    (15, Fault::DeleteByHand),
    (15, Fault::Meddle),
    (15, Fault::Clear),
    (20, Fault::Strand),
    (25, Fault::Crash),
    (40, Fault::HoldTransaction),
    (40, Fault::CuratorsLease),
];

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let timeout = rng.pick(&[4_000, 6_000, 10_000, 20_000]);
        let servers = rng.pick(&[1, 3, 3]);
        let mut faults: Vec<Fault> = fault::COMMON.into_iter().filter(|_| rng.percent(60)).collect();
        for (chance, fault) in SELDOM {
            if rng.percent(chance) {
                faults.push(fault);
            }
        }
        let first_sequence = rng.pick(&[0, 7, 99_998, i32::MAX - 3]);
        if first_sequence > i32::MAX / 2 {
            faults.push(Fault::CountAhead);
        }
        let mut locks = locks::draw(rng, first_sequence);
        // Only transactions create starts, and seldom.
        if locks.iter().any(|lock| lock.time_per_grant() > 0) {
            faults.extend([Fault::HoldTransaction; 3]);
        }
        if servers == 1 {
            faults.retain(|fault| !matches!(fault, Fault::Stale | Fault::Depose));
        }
        // Drawn from a generator of its own, so that all other draws stay the same.
        let mut others = Rng::new(rng.clone().throw());
        let (views, counts) = (others.percent(12), others.percent(12));
        if counts {
            faults.extend(fault::of_counter(&mut others));
        }
        // Past the end of a sequence, the number of a restored node says nothing about its place.
        if others.percent(25) && first_sequence < i32::MAX / 2 {
            faults.push(Fault::Restore);
        }
        let room = others.percent(20).then(|| NODES_OF_ONE + others.index(2));
        locks.iter_mut().for_each(|lock| lock.padding = padding(room));
        Self {
            views,
            counts,
            room,
            servers,
            timeout,
            tick: timeout / rng.pick(&[2, 4, 5, 10, 20, 50, 100, 200]),
            relay_touches: servers > 1,
            container_interval: rng.pick(&[300, 60_000]),
            first_sequence,
            latency: rng.pick(&[2, 20, 100, 300]),
            processes: rng.index(3) + 2,
            workers: rng.index(3) + 1,
            locks,
            safety: timeout * rng.between(2, 5),
            between_faults: timeout / rng.pick(&[2, 5, 10]),
            faults,
            drift: rng.pick(&[0, 1_000, DRIFT_MAX, DRIFT_MAX]),
            shuts_down: rng.percent(20),
            // Drawn from a copy of the generator, so that all other draws stay the same.
            sessions: rng.clone().pick(&[1, 1, 1, 2]),
        }
    }

    pub(crate) fn latency_in_peace(&self) -> u64 {
        self.latency.min(self.timeout / 40)
    }

    /// The time after the last fault within which every client must be granted its locks: cut-off sessions
    /// expire, the lease is confirmed again, and then each worker acquires, with some round trips each.
    pub(crate) fn patience(&self) -> u64 {
        let workers = (self.processes * self.workers) as u64;
        let turns = workers * (self.locks.len() + 1) as u64;
        // Each worker ends its current round, and does one more.
        let waiting: u64 = self.locks.iter().map(|lock| 2 * workers * lock.time_per_grant()).sum();
        // Who was refused for want of room tries again.
        let turns = if self.room.is_some() { 2 * turns } else { turns };
        self.timeout * 6 + turns * (40 * self.latency_in_peace() + 10) + waiting
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            servers: self.servers,
            tick: self.tick.cast_signed(),
            min_timeout: i32::try_from(self.timeout).unwrap(),
            max_timeout: i32::try_from(self.timeout).unwrap(),
            container_interval: self.container_interval.cast_signed(),
            relay_touches: self.relay_touches,
            first_sequence: self.first_sequence,
            ..Settings::default()
        }
    }
}
