//! The local queue, call by call. `tests/interleavings` has the explorations of a small world around it.

mod edges;
mod mixed;
mod readers;
mod tables;

use super::{ContenderKind, Effect, EntryKey, Judgement, LocalQueue, NodeId, Wait};
use crate::znode::name::Kind;

/// The kind of the contenders for a mutex.
const LOCK: ContenderKind = ContenderKind::Lock(Kind::LOCK);

type Queue = LocalQueue<&'static str>;

fn key(sequence: i32) -> EntryKey {
    EntryKey { sequence, node: NodeId(u64::try_from(sequence).unwrap() + 100) }
}

/// A held head, and waiters directly behind each other.
fn queue_of(kinds: &[ContenderKind]) -> Queue {
    let mut queue = Queue::default();
    for (sequence, kind) in (0..).zip(kinds) {
        assert_eq!(queue.register(key(sequence), *kind), []);
        match sequence {
            0 => queue.mark_held(key(0)),
            _ => assert_eq!(
                queue.record_predecessor(key(sequence), Some(key(sequence - 1))),
                (Wait::Local, vec![])
            ),
        }
    }
    queue
}

/// Registers a created node, and judges it by its sequence number, on connection 1.
fn judge(queue: &mut Queue, sequence: i32, kind: ContenderKind) -> Judgement<&'static str> {
    let create = queue.send_create(kind, 1);
    let _ = queue.register(key(sequence), kind);
    let _ = queue.mark_created(&create);
    queue.judge_by_sequence(create, key(sequence), Some(1)).0
}

fn behind(sequence: i32, is_second: bool) -> Judgement<&'static str> {
    Judgement::Behind { predecessor: key(sequence), is_second }
}

fn grant(sequence: i32) -> Effect<&'static str> {
    Effect::Grant { node: key(sequence).node, connection: 1, payload: None }
}

fn relist(sequence: i32) -> Effect<&'static str> {
    Effect::Relist { node: key(sequence).node }
}

/// Releases a node over a connection that is up all the time. Returns the nodes that the request checks.
fn release(queue: &mut Queue, key: EntryKey) -> (Vec<NodeId>, Vec<Effect<&'static str>>) {
    let release = queue.begin_release(key, Some(1));
    (release.checks.clone(), queue.finish_release(release, Some(1), None))
}

fn watch_directory(queue: &mut Queue, connection: u64) {
    queue.directory_watch_requested(connection);
    queue.directory_watch_set();
}

const HEAD: Judgement<&str> = Judgement::Head { payload: None, since_send: false };
