//! A Curator client whose node in a semaphore's queue ended with its session. The client sends its create
//! again in the next session, which creates a lease without a node in the queue. The client holds the permit
//! once a later list has no more leases than the limit.

use std::collections::BTreeMap;

use lockkeeper_core::CreateMode;
use lockkeeper_testserver::protocol::{ConnectRequest, Request};

use super::happening::Happening;
use super::state::State;
use crate::wire::create;

/// The name of its leases, which do not follow the order of the queue.
pub(crate) const OUT_OF_TURN: &str = "curators-lease-";

/// At most one in each directory: two that wait with a lease each would deadlock.
#[derive(Default)]
pub(super) struct Curators {
    by_directory: BTreeMap<String, Lease>,
    granted: Vec<(String, u32)>,
}

struct Lease {
    path: String,
    is_granted: bool,
}

impl Curators {
    pub(super) fn holds(&self, directory: &str) -> bool {
        self.by_directory.get(directory).is_some_and(|lease| lease.is_granted)
    }

    pub(super) fn take_granted(&mut self) -> Vec<(String, u32)> {
        std::mem::take(&mut self.granted)
    }
}

impl State {
    /// A list of this directory was read: its reader does not see later changes.
    pub(super) fn curator_follows(&mut self, directory: &str) {
        let is_free = !self.curators.by_directory.contains_key(directory);
        if self.curator_is_next && is_free && self.limit_of(directory).is_some() {
            self.curator_is_next = false;
            let wait = self.rng.between(0, self.latency * 2);
            self.after(wait, Happening::Curator(directory.to_owned()));
        }
    }

    fn limit_of(&self, directory: &str) -> Option<u32> {
        let path = directory.strip_suffix("/leases")?;
        self.plan.locks.iter().find(|lock| lock.path() == path)?.permits()
    }

    pub(super) fn advance_curator(&mut self, directory: &str) {
        let Some(limit) = self.limit_of(directory) else { return };
        let leases = self.machine.tree().node(directory).map(|node| node.children.len());
        let is_granted = self.curators.by_directory.get(directory).map(|lease| lease.is_granted);
        let wait = match (is_granted, leases) {
            (None, Some(_)) => {
                let Some(path) = self.make_out_of_turn(directory) else { return };
                self.curators.by_directory.insert(directory.to_owned(), Lease { path, is_granted: false });
                self.way()
            }
            (Some(false), Some(leases)) if leases > limit as usize => {
                self.rng.between(1, self.plan.timeout / 20)
            }
            (Some(false), Some(_)) => {
                self.note(|| format!("Curator is granted a permit in {directory}"));
                self.curators
                    .by_directory
                    .entry(directory.to_owned())
                    .and_modify(|lease| lease.is_granted = true);
                self.curators.granted.push((directory.to_owned(), limit));
                self.rng.between(1, self.plan.timeout / 5)
            }
            (Some(true), Some(_)) => {
                if let Some(lease) = self.curators.by_directory.remove(directory) {
                    self.note(|| format!("Curator gives {} back", lease.path));
                    let outputs = self.machine.delete_node(&lease.path, self.server_time());
                    self.emit(outputs);
                }
                return;
            }
            (_, None) => return,
        };
        self.after(wait, Happening::Curator(directory.to_owned()));
    }

    fn make_out_of_turn(&mut self, directory: &str) -> Option<String> {
        let server = (0..self.plan.servers).find(|server| !self.machine.is_cut_off(*server))?;
        let (now, prefix) = (self.server_time(), format!("{directory}/{OUT_OF_TURN}"));
        let client = self.machine.open(server, "10.0.0.4");
        let mut outputs = self.machine.connect(client, ConnectRequest::default(), now);
        let write = Request::Write(create(&prefix, b"10.0.0.4", CreateMode::PersistentSequential));
        for (xid, request) in [(1, write), (2, Request::CloseSession)] {
            outputs.extend(self.machine.request(client, xid, request, now));
        }
        self.machine.disconnect(client);
        self.emit(outputs);
        let names = &self.machine.tree().node(directory)?.children;
        let path = format!("{directory}/{}", names.iter().find(|name| name.starts_with(OUT_OF_TURN))?);
        self.note(|| format!("FAULT Curator creates {path} without the queue"));
        Some(path)
    }
}
