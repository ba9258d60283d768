//! The JSON of an inspection: one object on one line. `docs/command.md` states the schema.

use std::time::Duration;

use humantime::format_rfc3339_millis;
use lockkeeper::inspect::{
    ContenderInfo, FailedItem, Identity, ItemInfo, ItemState, Kind, Role, SurveyGroup, SurveyQueue,
    WorkQueueInspection,
};
use lockkeeper::{Inspection, ZnodePath};
use serde::Serialize;

use super::clients::Clients;
use super::held::{HeldFor, Holds};
use super::print::token;
use crate::escape::to_text;

/// The version of the schema. Fields may be added within a version.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
struct Lock<'a> {
    schema: u32,
    path: &'a str,
    recipe: Option<&'static str>,
    held: bool,
    limit: Option<u32>,
    free: Option<u32>,
    holders: Vec<Node>,
    waiters: Vec<Node>,
    others: Vec<Node>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Node {
    role: &'static str,
    kind: Option<&'static str>,
    path: String,
    czxid: String,
    session: Option<String>,
    client: Option<String>,
    since: String,
    age_ms: u64,
    held_ms_least: Option<u64>,
    held_ms_most: Option<u64>,
    token: Option<String>,
    revoke_requested: bool,
    identity: Option<Who>,
}

#[derive(Debug, Serialize)]
struct Who {
    text: String,
    host: Option<String>,
    pid: Option<u32>,
    owner: Option<String>,
    note: Option<String>,
    holds: Vec<String>,
    until: Option<String>,
}

#[derive(Debug, Serialize)]
struct GroupLine<'a> {
    schema: u32,
    path: &'a str,
    recipe: &'static str,
    members: Vec<Member<'a>>,
}

#[derive(Debug, Serialize)]
struct Member<'a> {
    name: &'a str,
    session: String,
}

#[derive(Debug, Serialize)]
struct QueueLine<'a> {
    schema: u32,
    path: &'a str,
    recipe: &'static str,
    item_count: u32,
    failed_count: u32,
    items: Vec<Item<'a>>,
    failed: Vec<Failed<'a>>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    name: &'a str,
    state: &'static str,
    attempts: u32,
    by: Option<&'a str>,
    since: Option<String>,
    due: Option<String>,
}

#[derive(Debug, Serialize)]
struct Failed<'a> {
    name: &'a str,
    attempts: u32,
    failures: &'a [String],
}

/// One line. Without an inspection nobody contends for the path.
pub(crate) fn line(
    path: &ZnodePath,
    lock: Option<&Inspection>,
    clients: Option<&Clients>,
    holds: &Holds,
) -> String {
    let node = |of: &ContenderInfo| Node::of(of, clients).held(holds.get(&of.czxid()));
    let others = |of: &&ContenderInfo| !matches!(of.role(), Role::Holder | Role::Recipe(_) | Role::Waiter);
    to_text(&Lock {
        schema: SCHEMA,
        path: path.as_str(),
        recipe: lock.map(Inspection::recipe),
        held: lock.is_some_and(|lock| lock.holders().next().is_some()),
        limit: lock.and_then(Inspection::limit),
        free: lock.and_then(Inspection::free),
        holders: lock.iter().flat_map(|lock| lock.holders()).map(node).collect(),
        waiters: lock.iter().flat_map(|lock| lock.waiters()).map(node).collect(),
        others: lock.iter().flat_map(|lock| lock.contenders()).filter(others).map(node).collect(),
    })
}

pub(crate) fn group_line(group: &SurveyGroup) -> String {
    let member = |of: &'_ lockkeeper::inspect::NodeInfo| format!("{:#x}", of.session());
    let members = group.members().iter().map(|of| Member { name: of.name(), session: member(of) });
    let path = group.path().as_str();
    to_text(&GroupLine { schema: SCHEMA, path, recipe: "group", members: members.collect() })
}

/// One line for a work queue.
pub(crate) fn queue_line(queue: &WorkQueueInspection) -> String {
    to_text(&QueueLine {
        schema: SCHEMA,
        path: queue.path.as_str(),
        recipe: "work queue",
        item_count: queue.item_count,
        failed_count: queue.failed_count,
        items: queue.items.iter().map(Item::of).collect(),
        failed: queue.failed.iter().map(Failed::of).collect(),
    })
}

/// One line for a work queue of which only the counts are known.
pub(crate) fn queue_count_line(queue: &SurveyQueue) -> String {
    let (path, item_count, failed_count) = (queue.path().as_str(), queue.item_count(), queue.failed_count());
    let (items, failed) = (Vec::new(), Vec::new());
    to_text(&QueueLine {
        schema: SCHEMA,
        path,
        recipe: "work queue",
        item_count,
        failed_count,
        items,
        failed,
    })
}

impl<'a> Item<'a> {
    fn of(of: &'a ItemInfo) -> Self {
        let (name, attempts) = (of.name(), of.attempts);
        let (state, by, time) = match &of.state {
            ItemState::Free => ("free", None, None),
            ItemState::Delayed(due) => ("delayed", None, Some(*due)),
            ItemState::Claimed { by, since } => ("claimed", Some(by.as_str()), Some(*since)),
            _ => ("unknown", None, None),
        };
        let text =
            |wanted: &str| time.filter(|_| state == wanted).map(|at| format_rfc3339_millis(at).to_string());
        Self { name, state, attempts, by, since: text("claimed"), due: text("delayed") }
    }
}

impl<'a> Failed<'a> {
    fn of(of: &'a FailedItem) -> Self {
        Self { name: of.path.name(), attempts: of.attempts, failures: &of.failures }
    }
}

impl Node {
    pub(crate) fn of(of: &ContenderInfo, clients: Option<&Clients>) -> Self {
        Self {
            role: role(of.role()),
            kind: of.kind().and_then(kind),
            path: of.path().to_string(),
            czxid: of.czxid().to_string(),
            session: (of.session() != 0).then(|| format!("{:#x}", of.session())),
            client: clients.and_then(|clients| clients.address(of.session())).map(str::to_owned),
            since: format_rfc3339_millis(of.since()).to_string(),
            age_ms: millis(of.age()),
            held_ms_least: None,
            held_ms_most: None,
            token: token(of).map(|token| token.to_string()),
            revoke_requested: of.is_revoked(),
            identity: of.data().map(|_| Who::of(&of.identity())),
        }
    }
}

impl Node {
    fn held(self, held: Option<&HeldFor>) -> Self {
        let held_ms_least = held.map(|held| millis(held.least));
        Self { held_ms_least, held_ms_most: held.map(|held| millis(held.most)), ..self }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Who {
    fn of(identity: &Identity) -> Self {
        Self {
            text: identity.to_string(),
            host: identity.host().map(str::to_owned),
            pid: identity.pid(),
            owner: identity.owner().map(str::to_owned),
            note: identity.note().map(str::to_owned),
            holds: identity.holds().to_vec(),
            until: identity.until().map(|until| humantime::format_rfc3339_seconds(until).to_string()),
        }
    }
}

pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Holder => "holder",
        Role::Waiter => "waiter",
        Role::Recipe(role) => role,
        Role::Foreign => "foreign",
        _ => "unknown",
    }
}

fn kind(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::LOCK => Some("lock"),
        Kind::READ => Some("read"),
        Kind::WRITE => Some("write"),
        Kind::LEASE => Some("lease"),
        Kind::LATCH => Some("latch"),
        Kind::LIMIT => Some("limit"),
        _ => None,
    }
}
