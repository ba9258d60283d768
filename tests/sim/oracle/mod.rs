//! The oracle: compares the state of the servers with the beliefs of the holders, and records every broken
//! promise.
//!
//! It knows a grant only by its [claims](Claim): the nodes of the hold, and the holds that may exist beside
//! it.

mod additions;
mod hold;
pub(crate) mod order;
mod queue;
mod tokens;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockkeeper::Error;
use lockkeeper::error::LossReason;
use lockkeeper_test_recipes::{Claim, DueSlot, Granted};
use lockkeeper_testserver::tree::Tree;
use parking_lot::Mutex;

use self::additions::Additions;
use self::hold::Held;
use self::queue::Queues;
use self::tokens::Tokens;
use self::windows::Windows;
use crate::environment::Process;
use crate::lost;
use crate::world::World;

/// The counter that processes add to.
pub(crate) const NUMBER: &str = "/numbers/visits";

/// A handle to the records.
#[derive(Clone, Default)]
pub(crate) struct Oracle(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    holds: BTreeMap<u64, Held>,
    next: u64,
    /// The grants of each directory.
    tokens: BTreeMap<String, Tokens>,
    /// The last token written into each register.
    registers: BTreeMap<String, u64>,
    queues: Queues,
    windows: Windows,
    additions: Additions,
    /// The differences that views have shown.
    shown: u64,
    broken: Vec<String>,
    /// The last transaction that was checked.
    zxid: i64,
    grants: u64,
    losses: u64,
    /// The calls that were refused for want of room in their session's budget.
    refused: u64,
}

/// The record of one hold, until it is dropped.
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

    /// The number of grants and losses.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let books = self.0.lock();
        (books.grants, books.losses)
    }

    /// The number of additions whose sum is known, and of differences that views have shown.
    pub(crate) fn counts_beside(&self) -> (u64, u64) {
        let books = self.0.lock();
        (books.additions.count(), books.shown)
    }

    /// A call was refused for want of room in its session's budget.
    pub(crate) fn refused(&self) {
        self.0.lock().refused += 1;
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.0.lock().refused
    }

    /// A view has shown a difference.
    pub(crate) fn shown(&self) {
        self.0.lock().shown += 1;
    }

    pub(crate) fn begin_addition(&self) -> usize {
        self.0.lock().additions.begin()
    }

    pub(crate) fn end_addition(&self, call: usize, added: &Result<i64, Error>) {
        self.0.lock().additions.end(call, added);
    }

    /// Each addition has counted once.
    pub(crate) fn check_additions(&self, world: &World) {
        let mut numbers = world.cleared_numbers();
        numbers.push(world.machine(|machine| number_in(machine.tree())).unwrap_or_default());
        let judged = self.0.lock().additions.judge(&numbers);
        if let Err(wrong) = judged {
            self.breach(world, format!("counter: {wrong}"));
        }
    }

    /// Records a grant.
    pub(crate) fn granted(&self, world: &World, process: &Arc<Process>, grant: &Arc<Granted>) -> Entry {
        let held = Held::new(process, grant);
        if let Some(starts) = grant.starts() {
            let entered = self.0.lock().windows.enter(&starts, world.now());
            if let Err(wrong) = entered {
                self.breach(world, wrong);
            }
        }
        // An upgraded reader keeps its older claim.
        let mut claims: Vec<&Claim> = held.claims.iter().collect();
        claims.sort_by_key(|claim| claim.token);
        let leaving = world.leaving();
        for claim in claims {
            world.note(|| format!("p{} GRANTED {claim:?}", process.number));
            if world.is_restored(claim.token.cast_signed()) {
                let nodes = &claim.nodes;
                self.breach(world, format!("promise 1: {nodes:?} was granted, and belongs to no session"));
            }
            if held.is_valid() && !is_deleted_by_hand(world, claim) {
                if let Err(wrong) = world.machine(|machine| order::check(machine.tree(), claim, &leaving)) {
                    self.breach(world, wrong);
                }
                self.check_rivals(world, claim);
            }
            // More than is promised: a contender that was not the head when its node was deleted sees that
            // before it is granted. This does not apply to a claim that is older than its node, nor to a node
            // that its process keeps and has held before: like any holder, it learns of a delete by its
            // watch.
            let is_told = !claim.is_inherited && claim.ignored.is_empty() && claim.handover == 0;
            // Nor to a contender behind one of its own session, whose delete checks the contender's node.
            for node in claim.nodes.iter().filter(|node| is_told && world.was_deleted_in_queue(node)) {
                if world.is_being_checked(node) {
                    continue;
                }
                self.breach(world, format!("beyond promise 1: {node} was deleted in the queue, and granted"));
            }
            self.check_token(world, claim);
        }
        let is_exclusive =
            held.is_valid() && !held.claims.iter().any(|claim| is_deleted_by_hand(world, claim));
        if let Some(due) = grant.due_slot().filter(|_| is_exclusive) {
            self.check_slot(world, &due);
        }
        let mut books = self.0.lock();
        books.grants += 1;
        books.next += 1;
        let number = books.next;
        books.holds.insert(number, held);
        Entry { oracle: self.clone(), number }
    }

    /// Promise 1: only compatible holds are valid at the same time.
    fn check_rivals(&self, world: &World, claim: &Claim) {
        let holds: Vec<Held> = self.0.lock().holds.values().cloned().collect();
        let mut permits = claim.share.permits();
        for held in holds {
            let here = |rival: &&Claim| rival.directory() == claim.directory() && !rival.is_same_as(claim);
            for rival in held.claims.iter().filter(here) {
                if is_deleted_by_hand(world, rival) || !held.is_valid() {
                    continue;
                }
                permits += rival.share.permits();
                if claim.share.excludes(rival.share) {
                    let (mine, theirs) = (&claim.nodes, &rival.nodes);
                    self.breach(world, format!("promise 1: {mine:?} was granted while {theirs:?} is valid"));
                }
            }
        }
        if world.curator_holds(claim.directory()) {
            permits += 1;
            if claim.share.limit().is_none() {
                let nodes = &claim.nodes;
                self.breach(world, format!("promise 1: {nodes:?} was granted while Curator holds"));
            }
        }
        if let Some(limit) = claim.share.limit().filter(|limit| permits > *limit) {
            let nodes = &claim.nodes;
            self.breach(world, format!("promise 1: with {nodes:?}, {permits} permits of {limit} are valid"));
        }
    }

    /// Promise 1 with a Curator client, which is granted by its own rule.
    fn check_curators(&self, world: &World) {
        for (directory, limit) in world.granted_to_curator() {
            let holds: Vec<Held> = self.0.lock().holds.values().cloned().collect();
            let mut permits = 1;
            for held in holds.iter().filter(|held| held.is_valid()) {
                let here = held.claims.iter().filter(|claim| claim.directory() == directory);
                for claim in here.filter(|claim| !is_deleted_by_hand(world, claim)) {
                    permits += claim.share.permits().max(1);
                }
            }
            if permits > limit {
                self.breach(
                    world,
                    format!(
                        "promise 1: with Curator's, {permits} permits of {limit} are valid in {directory}"
                    ),
                );
            }
        }
    }

    fn check_token(&self, world: &World, claim: &Claim) {
        let mut books = self.0.lock();
        let is_again = books.holds.values().any(|held| held.claims.iter().any(|one| one.is_same_as(claim)));
        let tokens = books.tokens.entry(claim.directory().to_owned()).or_default();
        let entered = tokens.enter(claim, is_again);
        drop(books);
        if let (Err(wrong), false) = (entered, is_deleted_by_hand(world, claim)) {
            self.breach(world, format!("promise 3: {:?} {wrong}", claim.nodes));
        }
    }

    /// A slot that is due was not done, by the records that the quorum has.
    fn check_slot(&self, world: &World, due: &DueSlot) {
        let newest = world.machine(|machine| {
            let names = machine.tree().node(&due.records).map(|node| node.children.clone());
            names.unwrap_or_default().iter().filter_map(|name| name.parse::<u64>().ok()).max()
        });
        if newest.is_none_or(|newest| newest >= due.slot) {
            self.breach(world, format!("{due:?} is due, and the newest record is {newest:?}"));
        }
    }

    /// An observer has seen holders with these tokens, one after the other.
    pub(crate) fn observed(&self, world: &World, observer: &str, earlier: u64, token: u64) {
        world.note(|| format!("{observer} sees {token}"));
        if token <= earlier {
            self.breach(world, format!("{observer} sees {token} after {earlier}"));
        }
        if world.is_restored(token.cast_signed()) {
            self.breach(world, format!("{observer} sees {token}, which belongs to no session"));
        }
    }

    /// `lost()` has resolved for this hold.
    pub(crate) fn lost(&self, entry: &Entry) {
        let mut books = self.0.lock();
        books.losses += 1;
        if let Some(held) = books.holds.get_mut(&entry.number) {
            held.is_told = true;
        }
    }

    /// A release returned success.
    pub(crate) fn released(&self, world: &World, claims: &[Claim]) {
        for node in claims.iter().flat_map(|claim| &claim.nodes) {
            if world.has_node(node) {
                self.breach(world, format!("promise 8: {node} is released and exists"));
            }
        }
    }

    /// Checks the log: it reports the loss of holds only, and "another client" only for deletes of others.
    pub(crate) fn check_log(&self, world: &World) {
        for said in lost::said() {
            let (path, reason) = (&said.path, &said.reason);
            let is = |expected: LossReason| *reason == expected.to_string();
            // A release that finds no node logs it, too.
            let is_true = if is(LossReason::NodeDeleted) {
                world.was_deleted_by_hand(path)
            } else if is(LossReason::NodeMissing) {
                !world.was_released(path)
            } else {
                !said.was_given_up
            };
            if !is_true {
                self.breach(world, format!("false alarm: {path} is said to be lost: {reason}"));
            }
        }
    }

    /// Checks all promises after an event.
    pub(crate) fn check_all(&self, world: &World) {
        self.check_log(world);
        if let Some(session) = world.overdue() {
            self.breach(
                world,
                format!("promise 7: nodes of session {session:#x} outlive its crash by too much"),
            );
        }
        self.check_curators(world);
        self.check_budgets(world);
        let zxid = world.machine(|machine| machine.zxid());
        let has_changed = std::mem::replace(&mut self.0.lock().zxid, zxid) != zxid;
        if !has_changed && !self.0.lock().holds.values().any(Held::has_frozen_or_thawed) {
            return;
        }
        let holds: Vec<(u64, Held)> =
            self.0.lock().holds.iter().map(|(number, held)| (*number, held.clone())).collect();
        for (number, mut held) in holds {
            held.note_freeze();
            let exists = |node: &String| world.has_node(node);
            let gone = held.claims.iter().flat_map(|claim| &claim.nodes).find(|node| !exists(node)).cloned();
            if let (Some(node), false) = (gone, held.is_gone) {
                held.is_gone = true;
                if !world.was_deleted_by_hand(&node) {
                    self.judge_end(world, &held, &node);
                }
            }
            if let Some(entered) = self.0.lock().holds.get_mut(&number) {
                held.is_told = entered.is_told;
                *entered = held;
            }
        }
        let wrong = {
            let mut books = self.0.lock();
            world.machine_and_given_up(|machine, given_up| books.queues.check(machine, given_up))
        };
        wrong.into_iter().for_each(|wrong| self.breach(world, wrong));
        self.read_registers(world);
    }

    /// No session has more nodes than its budget, but for creates that are applied late.
    fn check_budgets(&self, world: &World) {
        for (session, bytes) in world.over_budget() {
            self.breach(world, format!("budget: the nodes of session {session:#x} have {bytes} bytes"));
        }
    }

    /// Promises 1 and 2: a node of a hold was deleted, and its holder must have known before.
    fn judge_end(&self, world: &World, held: &Held, node: &str) {
        if held.is_valid() {
            self.breach(world, format!("promise 1: {node} is deleted, and its guard is valid"));
        } else if held.process.is_awake() && !held.is_told {
            self.breach(
                world,
                format!("promise 2: {node} is deleted, and `lost()` of its holder has not resolved"),
            );
        }
    }

    /// Promise 4: a write under a hold is never older than the register's value.
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
                self.breach(world, format!("promise 4: register {name} returned from {last} to {token}"));
            }
        }
    }
}

/// Whether somebody has deleted a node of this claim. Then it excludes nobody.
/// The number of the counter, if there is one.
pub(crate) fn number_in(tree: &Tree) -> Option<i64> {
    let data = tree.node(NUMBER)?.data.clone()?;
    Some(i64::from_be_bytes(data.as_ref().try_into().ok()?))
}

fn is_deleted_by_hand(world: &World, claim: &Claim) -> bool {
    claim.nodes.iter().any(|node| world.was_deleted_by_hand(node))
}
