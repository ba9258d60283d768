//! The history of a run: the events of the clients, the faults, and the nodes that were left.

mod event;
mod hold;
mod incident;
mod token;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use self::event::{Event, Mode, What};
pub(crate) use self::hold::{Hold, client_of, holds};
pub(crate) use self::incident::{Incident, Lane, Void};
pub(crate) use self::token::Token;
use crate::Failure;

/// A run, as it is written into its folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The events of each process, in its own order.
    pub(crate) processes: BTreeMap<String, Vec<Event>>,
    pub(crate) account: Account,
}

/// The observations of the driver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) seed: u64,
    pub(crate) servers: usize,
    pub(crate) incidents: Vec<Incident>,
    /// When the last fault was healed.
    pub(crate) healed: Option<u64>,
    /// The rate limiters: the name, the starts in a window, and the window in nanoseconds.
    #[serde(default)]
    pub(crate) limiters: Vec<(String, u32, u64)>,
    /// All requests to the fenced register, in its order.
    pub(crate) stamps: Vec<Entry>,
    /// The transactional registers in the end: token and version.
    pub(crate) registers: BTreeMap<String, (Token, i32)>,
    /// The counter of all clients in the end.
    #[serde(default)]
    pub(crate) number: i64,
    /// The entries of the table of all clients in the end.
    #[serde(default)]
    pub(crate) entries: BTreeMap<String, i64>,
    /// The work queue of all clients in the end.
    #[serde(default)]
    pub(crate) jobs: Jobs,
    /// The processes that live in the end, one of each client.
    #[serde(default)]
    pub(crate) living: Vec<String>,
    /// The nodes of all registrations, when everything had settled after the healing.
    #[serde(default)]
    pub(crate) nodes: Vec<Node>,
    /// When the clients were told to release everything.
    #[serde(default)]
    pub(crate) quiet: Option<u64>,
    /// Nodes that existed after the last release.
    pub(crate) orphans: Vec<String>,
    /// Nodes that only some servers had in the end.
    #[serde(default)]
    pub(crate) disagreements: Vec<String>,
    /// The clients that were not granted a lock after the healing, and these locks.
    pub(crate) unserved: Vec<(String, String)>,
    /// Processes that ended by themselves, and how.
    pub(crate) died: Vec<String>,
}

/// One request to the fenced register, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) lock: String,
    pub(crate) token: Token,
    /// A reader's request does not raise the mark.
    pub(crate) reading: bool,
    pub(crate) accepted: bool,
}

/// A work queue in the end, after the driver has taken every item that waited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Jobs {
    /// The items that the driver ended.
    pub(crate) drained: Vec<String>,
    /// The items that still wait.
    pub(crate) waiting: Vec<String>,
    /// The items that failed.
    pub(crate) failed: Vec<String>,
    /// The effects: each with its item, and with its hold: that of a process, or the driver's.
    pub(crate) effects: Vec<(String, String)>,
}

impl Jobs {
    /// Whose hold the effects are that the driver commits.
    pub(crate) const DRIVER: &str = "driver";
}

/// The node of a registration, as the servers have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) czxid: i64,
    /// The process that registered it.
    pub(crate) data: String,
}

const ACCOUNT: &str = "account.json";

impl History {
    /// Reads what a run has left in its folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let account = serde_json::from_slice(&fs::read(folder.join(ACCOUNT))?)?;
        let mut processes = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some(process) = name.strip_suffix(".jsonl") {
                // The last line of a killed process may be cut short.
                let text = fs::read_to_string(&path)?;
                let events = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                processes.insert(process.to_owned(), events);
            }
        }
        Ok(Self { processes, account })
    }

    /// All holds of all processes.
    pub(crate) fn holds(&self) -> Vec<Hold> {
        self.processes.iter().flat_map(|(process, events)| holds(process, events)).collect()
    }
}

impl Account {
    /// Writes it beside the clients' own files.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        Ok(fs::write(folder.join(ACCOUNT), serde_json::to_vec_pretty(self)?)?)
    }
}
