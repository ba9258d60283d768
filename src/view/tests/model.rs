//! Random histories of a tree, with a mirror that hears of them late, and loses its connection at any
//! message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

use super::server::{Copy, Server};
use crate::view::bounds::ViewBounds;
use crate::view::changes::{Subscriptions, ViewChange, ViewChanges};
use crate::view::decide::{Answer, Mirror, ReadRequest};
use crate::view::node::ViewNode;
use crate::view::scope::ViewScope;
use crate::view::snapshot::{Snapshot, ViewState};
use crate::wire::Stat;
use crate::znode::zxid::Zxid;

/// What a connection carries to the server, in order.
enum Sent {
    Read(ReadRequest),
    /// The number of writes before the call.
    Sync(usize),
}

/// What a connection carries to the client, in order.
enum Message {
    Event(String),
    Answer(ReadRequest, Answer),
    /// The number of writes before the call, and the root behind the sync.
    Synced(usize, Option<Stat>),
}

/// A server, a connection, a mirror with its requests, and readers.
struct World {
    server: Server,
    /// What the view would show before the first write, and after each.
    history: Vec<Copy>,
    scope: ViewScope,
    /// Requests that the server has not processed.
    sent: VecDeque<Sent>,
    /// Messages that the client has not received.
    messages: VecDeque<Message>,
    /// Syncs that wait until the visits of these causes are finished, and the number of writes before each.
    settling: Vec<(u64, usize)>,
    mirror: Mirror<()>,
    latest: Arc<Snapshot>,
    subscriptions: Subscriptions<()>,
    readers: Vec<Reader>,
}

/// A reader with its own copy, made of differences alone.
struct Reader {
    changes: ViewChanges,
    copy: Copy,
    /// The modification zxid of the newest state that was ever shown, by path.
    newest: BTreeMap<String, Zxid>,
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Set(usize, bool),
    Delete(usize),
    /// The client sends, the server processes, the client receives.
    Send,
    Process,
    Receive,
    /// The connection breaks, and everything on it is lost.
    Cut,
    /// A reader reads everything that it has not read.
    Read(usize),
    /// A caller waits for everything that was written before.
    Sync,
}

const PATHS: [&str; 8] = ["", "a", "b", "a/x", "a/y", "a-", "a/x/1", "b/x"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PATHS.len()).prop_map(Step::Create),
        2 => (0..PATHS.len(), any::<bool>()).prop_map(|(path, large)| Step::Set(path, large)),
        2 => (0..PATHS.len()).prop_map(Step::Delete),
        6 => Just(Step::Send),
        8 => Just(Step::Process),
        8 => Just(Step::Receive),
        1 => Just(Step::Cut),
        1 => (0..2_usize).prop_map(Step::Read),
    ]
}

impl World {
    fn new(scope: ViewScope, events: usize) -> Self {
        let latest = Arc::new(Snapshot::first());
        let mut subscriptions = Subscriptions::default();
        let readers = (0..2).map(|_| {
            let changes = subscriptions.subscribe(Arc::clone(&latest));
            Reader { changes, copy: BTreeMap::new(), newest: BTreeMap::new() }
        });
        let readers = readers.collect();
        let bounds = ViewBounds::default().events(events);
        let mut mirror = Mirror::new(scope.levels(), bounds, Arc::new(|_: &str, _: &[u8], _: &_| Ok(())));
        mirror.restart();
        Self {
            server: Server::default(),
            history: vec![Copy::new()],
            scope,
            sent: VecDeque::new(),
            messages: VecDeque::new(),
            settling: Vec::new(),
            mirror,
            latest,
            subscriptions,
            readers,
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Create(path) => self.write(*path, |server, path| server.create(path, b"1")),
            Step::Set(path, large) => {
                let data = if *large { vec![7; 5000] } else { vec![7; 3] };
                self.write(*path, |server, path| server.set(path, &data));
            }
            Step::Delete(path) => self.write(*path, Server::delete),
            Step::Send => self.sent.extend(self.mirror.next_request(|_| true).map(Sent::Read)),
            Step::Process => {
                let message = self.sent.pop_front().map(|sent| match sent {
                    Sent::Read(request) => {
                        let answer = self.server.read(&request);
                        Message::Answer(request, answer)
                    }
                    Sent::Sync(writes) => Message::Synced(writes, self.server.stat("")),
                });
                self.messages.extend(message);
            }
            Step::Receive => {
                match self.messages.pop_front() {
                    Some(Message::Event(path)) => self.mirror.hint(&path),
                    Some(Message::Answer(request, answer)) => self.mirror.answer(request, answer),
                    Some(Message::Synced(writes, root)) => self.synced(writes, root),
                    None => {}
                }
                self.publish();
            }
            Step::Cut => {
                self.sent.clear();
                self.messages.clear();
                // The callers ask again.
                self.settling.clear();
                self.mirror.restart();
            }
            Step::Read(reader) => self.readers[*reader].read(),
            Step::Sync => self.sent.push_back(Sent::Sync(self.history.len() - 1)),
        }
    }

    /// The event is on its way before any answer that shows the write.
    fn write(&mut self, path: usize, write: impl FnOnce(&mut Server, &str) -> bool) {
        let path = PATHS[path];
        if write(&mut self.server, path) {
            self.history.push(self.server.seen(self.scope));
            if self.scope != ViewScope::Node || path.is_empty() {
                self.messages.push_back(Message::Event(path.to_owned()));
            }
        }
    }

    /// As the task of a view with a watch takes it.
    fn synced(&mut self, writes: usize, root: Option<Stat>) {
        let state = |stat: &Stat| (stat.czxid, stat.mzxid);
        if self.mirror.nodes().get("").map(|known| state(known.stat())) != root.as_ref().map(state) {
            self.mirror.hint("");
        }
        self.settling.push((self.mirror.begin_cause(), writes));
    }

    /// Each node is in a state that it had after so many writes, or later.
    fn assert_not_older(&self, writes: usize) {
        let shown = copy_of(&self.latest);
        for path in PATHS {
            let mut since = self.history[writes..].iter();
            assert!(
                since.any(|then| then.get(path) == shown.get(path)),
                "{path:?} is shown as {:?} after a sync behind write {writes} of {:?}",
                shown.get(path),
                self.history
            );
        }
    }

    fn publish(&mut self) {
        if self.mirror.is_complete() {
            let changes = self.mirror.take_changes();
            if !changes.is_empty() {
                self.latest = Arc::new(self.latest.next(ViewState::Live, &self.mirror));
                self.subscriptions.publish(&self.latest, &changes);
            }
            let is_settled = |cause: u64| self.mirror.is_finished(cause);
            let settled: Vec<_> = self.settling.extract_if(.., |(cause, _)| is_settled(*cause)).collect();
            for (_, writes) in settled {
                self.assert_not_older(writes);
            }
        }
    }

    /// Nothing is lost and nothing is written any more.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.take(&Step::Send);
            self.take(&Step::Process);
            self.take(&Step::Receive);
            if self.sent.is_empty() && self.messages.is_empty() && self.mirror.is_idle() {
                return;
            }
        }
        panic!("the mirror never settles");
    }
}

impl Reader {
    fn read(&mut self) {
        while let Some(difference) = self.changes.next().now_or_never().flatten() {
            for change in difference.changes() {
                let path = change.path().to_owned();
                let had = change.before().map(|node| (node.stat().czxid, node.stat().mzxid));
                let here = self.copy.get(&path).map(|(czxid, mzxid, _)| (*czxid, *mzxid));
                // Nothing is missing between two differences, and nothing is reported twice.
                assert_eq!(had, here, "{path:?}: {change:?}");
                match change.node() {
                    None => drop(self.copy.remove(&path)),
                    Some(node) => {
                        let (stat, data) = (node.stat(), node.data().len());
                        let newest = self.newest.insert(path.clone(), stat.mzxid);
                        assert!(newest < Some(stat.mzxid), "{path:?} after {newest:?}: {change:?}");
                        let is_recreated = here.is_some_and(|(czxid, _)| czxid != stat.czxid);
                        assert_eq!(is_recreated, matches!(change, ViewChange::Recreated { .. }));
                        self.copy.insert(path, (stat.czxid, stat.mzxid, data));
                    }
                }
            }
            let snapshot = difference.snapshot();
            let theirs: Vec<_> = snapshot.iter().map(|(path, node)| (path, node.stat().mzxid)).collect();
            let ours: Vec<_> = self.copy.iter().map(|(path, (_, mzxid, _))| (&**path, *mzxid)).collect();
            assert_eq!(ours, theirs);
        }
    }
}

fn copy_of(snapshot: &Snapshot) -> Copy {
    let state = |node: &ViewNode| (node.stat().czxid, node.stat().mzxid, node.data().len());
    snapshot.iter().map(|(path, node)| (path.to_owned(), state(node))).collect()
}

fn follow(scope: ViewScope, events: usize, has_ended_counters: bool, steps: &[Step]) {
    let mut world = World::new(scope, events);
    world.server.has_ended_counters = has_ended_counters;
    for step in steps {
        world.take(step);
    }
    world.settle();
    assert!(world.settling.is_empty(), "a sync without an answer");
    let shown = copy_of(&world.latest);
    assert_eq!(shown, world.server.seen(scope));
    let bytes: usize = shown.iter().map(|(path, (_, _, data))| path.len() + data).sum();
    assert_eq!(world.mirror.bytes(), bytes);
    for mut reader in world.readers {
        reader.read();
        assert_eq!(reader.copy, shown);
    }
}

/// The connection breaks when the child was read and its parent was not. Both are deleted meanwhile.
#[test]
fn a_node_whose_parent_is_not_known_is_not_shown() {
    use Step::{Create, Cut, Delete, Process, Receive, Send};
    let steps = [
        [Create(0), Create(1), Create(2), Cut].as_slice(),
        // The event of the child arrives between the read of the root and its list.
        &[Send, Process, Create(7), Receive, Receive],
        &[Send, Send, Process, Process, Receive, Receive],
        &[Delete(7), Delete(2), Cut],
    ];
    follow(ViewScope::Tree, 1000, false, &steps.concat());
}

/// The data of the node was read before the write that the sync is behind. The list of its children is read
/// after the sync.
#[test]
fn a_sync_waits_for_a_node_that_was_written_while_it_was_read() {
    use Step::{Create, Process, Receive, Send, Set, Sync};
    let mut world = World::new(ViewScope::Tree, 1000);
    [Create(0), Create(1), Create(3)].iter().for_each(|step| world.take(step));
    world.settle();
    let steps = [
        // The answer to the read of the data shows that there is another child.
        [Set(1, false), Create(4), Receive, Send, Process, Receive, Receive].as_slice(),
        // The write, the sync, and behind it the list of the children.
        &[Set(1, false), Receive, Sync, Send, Send, Process, Receive],
        // Another write, before the list is answered.
        &[Set(1, false), Receive, Process, Process, Receive, Receive],
    ];
    steps.concat().iter().for_each(|step| world.take(step));
    assert_eq!(world.settling.len(), 1, "the sync was answered early");
    world.settle();
    assert!(world.settling.is_empty(), "a sync without an answer");
}

fn any_scope() -> impl Strategy<Value = ViewScope> {
    prop_oneof![Just(ViewScope::Node), Just(ViewScope::Children), Just(ViewScope::Tree)]
}

proptest! {
    #[test]
    fn every_state_that_lasts_is_seen_and_no_change_is_missed_or_reported_twice(
        scope in any_scope(),
        events in prop_oneof![Just(1_usize), Just(3), Just(1000)],
        has_ended_counters in any::<bool>(),
        steps in vec(step(), 0..400),
    ) {
        follow(scope, events, has_ended_counters, &steps);
    }

    #[test]
    fn after_a_sync_nothing_older_than_its_call_is_shown(
        scope in any_scope(),
        events in prop_oneof![Just(1_usize), Just(3), Just(1000)],
        steps in vec(prop_oneof![8 => step(), 1 => Just(Step::Sync)], 0..400),
    ) {
        follow(scope, events, false, &steps);
    }
}
