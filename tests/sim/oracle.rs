//! The judge: sees the servers as they are and the holders as they believe to be, and writes down every broken promise.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use lockkeeper::{BootInstant, Hold, OwnedMutexGuard, OwnedReentrantMutexGuard, ReleaseError};
use lockkeeper_core::simulation::Host;
use parking_lot::Mutex;

use crate::host::{Process, SimulatedHost};
use crate::world::World;

/// A guard of either mutex.
#[derive(Debug)]
pub(crate) enum Guard {
    Plain(OwnedMutexGuard),
    Reentrant(OwnedReentrantMutexGuard),
}

impl Guard {
    pub(crate) async fn release(self) -> Result<(), ReleaseError> {
        match self {
            Self::Plain(guard) => guard.release().await,
            Self::Reentrant(guard) => guard.release().await,
        }
    }
}

impl Deref for Guard {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        match self {
            Self::Plain(guard) => guard,
            Self::Reentrant(guard) => guard,
        }
    }
}

/// A handle to the books.
#[derive(Clone, Default)]
pub(crate) struct Oracle(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    holds: BTreeMap<u64, Hold>,
    next: u64,
    /// The last token granted for each directory, and the last one written under it.
    tokens: BTreeMap<String, u64>,
    registers: BTreeMap<String, u64>,
    broken: Vec<String>,
    /// The last transaction looked at.
    zxid: i64,
    grants: u64,
    losses: u64,
}

#[derive(Clone)]
struct Hold {
    process: Arc<Process>,
    guard: Arc<Guard>,
    token: u64,
    /// `lost()` has resolved.
    told: bool,
    /// The servers no longer have the node.
    gone: bool,
    /// What the lease clock said when the process stopped.
    frozen_until: Option<BootInstant>,
}

impl Hold {
    /// Whether the lease clock says that it is valid; of a process that stands still, without waking it.
    fn is_valid(&self) -> bool {
        let now = SimulatedHost(Arc::clone(&self.process)).now();
        match self.frozen_until {
            Some(until) => now < until,
            None => self.guard.is_valid(),
        }
    }
}

/// One hold in the books, until it is dropped.
pub(crate) struct Entry {
    oracle: Oracle,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let hold = self.oracle.0.lock().holds.remove(&self.number);
        drop(hold);
    }
}

impl Oracle {
    pub(crate) fn breach(&self, world: &World, text: String) {
        world.note(|| format!("BROKEN {text}"));
        self.0.lock().broken.push(text);
    }

    pub(crate) fn broken(&self) -> Vec<String> {
        self.0.lock().broken.clone()
    }

    /// How many grants and losses there were.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let books = self.0.lock();
        (books.grants, books.losses)
    }

    /// Somebody was granted the lock just now.
    pub(crate) fn granted(&self, world: &World, process: &Arc<Process>, guard: &Arc<Guard>) -> Entry {
        let path = guard.path().to_owned();
        let directory = path.rsplit_once('/').unwrap().0.to_owned();
        let token = guard.fencing_token().as_u64();
        world.note(|| format!("p{} GRANTED {path} token {token}", process.number));
        let by_hand = world.was_deleted_by_hand(&path);
        if guard.is_valid() && !by_hand {
            let lower = world.machine(|machine| {
                let tree = machine.tree();
                let mine = tree.node(&path)?.stat().czxid;
                let others = tree.node(&directory)?.children.iter();
                let lower = others.filter_map(|name| tree.node(&format!("{directory}/{name}")));
                Some((mine, lower.filter(|node| node.stat().czxid < mine).count()))
            });
            match lower {
                None => self.breach(world, format!("promise 1: {path} was granted without a node")),
                Some((czxid, _)) if czxid.cast_unsigned() != token => {
                    self.breach(world, format!("promise 3: {path} has token {token}, its node {czxid}"));
                }
                Some((_, 0)) => {}
                Some((_, ahead)) => {
                    self.breach(world, format!("promise 5: {path} was granted with {ahead} in front"));
                }
            }
        }
        let holds: Vec<Hold> = self.0.lock().holds.values().cloned().collect();
        for other in holds {
            let rival = other.guard.path();
            let same_line = rival.rsplit_once('/').is_some_and(|(of, _)| of == directory);
            if rival == path || !same_line || world.was_deleted_by_hand(rival) || by_hand {
                continue;
            }
            if guard.is_valid() && other.is_valid() {
                self.breach(world, format!("promise 1: {path} was granted while {rival} is valid"));
            }
        }
        let mut books = self.0.lock();
        books.grants += 1;
        books.next += 1;
        let number = books.next;
        let again = books.holds.values().any(|hold| hold.guard.path() == path);
        let newest = books.tokens.entry(directory).or_default();
        let last = *newest;
        *newest = last.max(token);
        let hold = Hold {
            process: Arc::clone(process),
            guard: Arc::clone(guard),
            token,
            told: false,
            gone: false,
            frozen_until: None,
        };
        books.holds.insert(number, hold);
        drop(books);
        if !by_hand && (last > token || (last == token && !again)) {
            self.breach(world, format!("promise 3: {path} has token {token} after {last}"));
        }
        Entry { oracle: self.clone(), number }
    }

    /// `lost()` has resolved for this hold.
    pub(crate) fn told(&self, entry: &Entry) {
        let mut books = self.0.lock();
        books.losses += 1;
        if let Some(hold) = books.holds.get_mut(&entry.number) {
            hold.told = true;
        }
    }

    /// A release said that it is done.
    pub(crate) fn released(&self, world: &World, path: &str) {
        if world.machine(|machine| machine.tree().node(path).is_some()) {
            self.breach(world, format!("promise 8: {path} reads as released and stands"));
        }
    }

    /// Looks at everything after something has happened.
    pub(crate) fn look(&self, world: &World) {
        let zxid = world.machine(|machine| machine.zxid());
        let has_changed = std::mem::replace(&mut self.0.lock().zxid, zxid) != zxid;
        let stops = |hold: &Hold| hold.process.is_frozen() != hold.frozen_until.is_some();
        if !has_changed && !self.0.lock().holds.values().any(stops) {
            return;
        }
        let holds: Vec<(u64, Hold)> =
            self.0.lock().holds.iter().map(|(number, hold)| (*number, hold.clone())).collect();
        for (number, mut hold) in holds {
            let is_frozen = hold.process.is_frozen();
            if is_frozen != hold.frozen_until.is_some() {
                hold.frozen_until = is_frozen.then(|| hold.guard.valid_until());
            }
            let path = hold.guard.path().to_owned();
            if !hold.gone && world.machine(|machine| machine.tree().node(&path).is_none()) {
                hold.gone = true;
                if !world.was_deleted_by_hand(&path) {
                    self.judge_end(world, &hold, &path);
                }
            }
            if let Some(entered) = self.0.lock().holds.get_mut(&number) {
                *entered = Hold { told: entered.told, ..hold };
            }
        }
        self.read_registers(world);
    }

    /// The node of a hold went: its holder must have known before.
    fn judge_end(&self, world: &World, hold: &Hold, path: &str) {
        if hold.is_valid() {
            self.breach(
                world,
                format!("promise 1: {path} is gone, and its guard (token {}) is valid", hold.token),
            );
        } else if hold.process.is_awake() && !hold.told {
            self.breach(world, format!("promise 2: {path} is gone, and its holder was not told"));
        }
    }

    fn read_registers(&self, world: &World) {
        let written: Vec<(String, u64)> = world.machine(|machine| {
            let tree = machine.tree();
            let names = tree.node("/registers").map(|node| node.children.clone()).unwrap_or_default();
            let read = |name: &String| {
                let data = tree.node(&format!("/registers/{name}"))?.data.clone()?;
                Some((name.clone(), String::from_utf8(data.to_vec()).ok()?.parse().ok()?))
            };
            names.iter().filter_map(read).collect()
        });
        for (name, token) in written {
            let last = self.0.lock().registers.insert(name.clone(), token).unwrap_or(0);
            if token < last {
                self.breach(world, format!("promise 4: register {name} went back from {last} to {token}"));
            }
        }
    }
}
