//! Random histories of a tree, with a mirror that hears of them late, and loses its connection at any
//! message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::view::bounds::ViewBounds;
use crate::view::changes::{Subscriptions, ViewChange, ViewChanges};
use crate::view::mirror::{Answer, Mirror, Request, child};
use crate::view::scope::ViewScope;
use crate::view::snapshot::{Snapshot, ViewState};
use crate::wire::Stat;

/// The tree of a server. Paths are below the root of the view.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    nodes: BTreeMap<String, (Vec<u8>, Stat)>,
    zxid: i64,
    /// The counters of children have ended: a create leaves the pzxid of the parent as it is.
    has_ended_counters: bool,
}

impl Server {
    fn parent(path: &str) -> Option<&str> {
        if path.is_empty() { None } else { Some(path.rsplit_once('/').map_or("", |(parent, _)| parent)) }
    }

    fn touch_parent(&mut self, path: &str, children: i32) {
        let zxid = self.zxid;
        if let Some((_, stat)) = Self::parent(path).and_then(|parent| self.nodes.get_mut(parent)) {
            if children < 0 || !self.has_ended_counters {
                stat.pzxid = zxid;
            }
            stat.children += children;
        }
    }

    /// Returns whether the write was possible.
    pub(super) fn create(&mut self, path: &str, data: &[u8]) -> bool {
        let has_parent = Self::parent(path).is_none_or(|parent| self.nodes.contains_key(parent));
        if !has_parent || self.nodes.contains_key(path) {
            return false;
        }
        self.zxid += 1;
        let zxid = self.zxid;
        let stat = Stat {
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: 0,
            mtime: 0,
            version: 0,
            child_version: 0,
            ephemeral_owner: 0,
            data_length: i32::try_from(data.len()).unwrap(),
            children: 0,
        };
        self.nodes.insert(path.to_owned(), (data.to_vec(), stat));
        self.touch_parent(path, 1);
        true
    }

    pub(super) fn set(&mut self, path: &str, data: &[u8]) -> bool {
        self.zxid += 1;
        let zxid = self.zxid;
        self.nodes.get_mut(path).is_some_and(|(now, stat)| {
            (stat.mzxid, stat.version, stat.data_length) = (zxid, stat.version + 1, data.len() as i32);
            *now = data.to_vec();
            true
        })
    }

    pub(super) fn delete(&mut self, path: &str) -> bool {
        if self.nodes.get(path).is_none_or(|(_, stat)| stat.children != 0) {
            return false;
        }
        self.zxid += 1;
        self.nodes.remove(path);
        self.touch_parent(path, -1);
        true
    }

    pub(super) fn read(&self, request: &Request) -> Answer {
        let path = request.path();
        let Some((data, stat)) = self.nodes.get(path) else { return Answer::Missing };
        match request {
            Request::Data(_) => Answer::Data(data.clone(), *stat),
            Request::Stat(_) => Answer::Stat(*stat),
            Request::Names(_) => {
                let prefix = child(path, "");
                let below = self.nodes.keys().filter_map(|other| other.strip_prefix(&prefix));
                let names = below.filter(|name| !name.is_empty() && !name.contains('/'));
                Answer::Names(names.map(str::to_owned).collect(), *stat)
            }
        }
    }

    /// The nodes that belong to a view.
    fn seen(&self, scope: ViewScope) -> BTreeMap<String, (i64, i64, usize)> {
        let level = |path: &str| if path.is_empty() { 0 } else { path.split('/').count() };
        let nodes = self.nodes.iter().filter(|(path, _)| scope.levels().is_none_or(|of| level(path) <= of));
        nodes.map(|(path, (data, stat))| (path.clone(), (stat.czxid, stat.mzxid, data.len()))).collect()
    }
}

/// What a connection carries to the client, in order.
enum Message {
    Event(String),
    Answer(Request, Answer),
}

/// A server, a connection, a mirror with its requests, and readers.
struct World {
    server: Server,
    scope: ViewScope,
    /// Requests that the server has not processed.
    sent: VecDeque<Request>,
    /// Messages that the client has not received.
    messages: VecDeque<Message>,
    mirror: Mirror<()>,
    latest: Arc<Snapshot>,
    subscriptions: Subscriptions<()>,
    readers: Vec<Reader>,
}

/// A reader with its own copy, made of differences alone.
struct Reader {
    changes: ViewChanges,
    copy: BTreeMap<String, (i64, i64, usize)>,
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
            Reader { changes, copy: BTreeMap::new() }
        });
        let readers = readers.collect();
        let bounds = ViewBounds::default().events(events);
        let mut mirror = Mirror::new(scope.levels(), bounds, Arc::new(|_: &str, _: &[u8]| Ok(())));
        mirror.restart();
        let (sent, messages) = (VecDeque::new(), VecDeque::new());
        Self { server: Server::default(), scope, sent, messages, mirror, latest, subscriptions, readers }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Create(path) => self.write(*path, |server, path| server.create(path, b"1")),
            Step::Set(path, large) => {
                let data = if *large { vec![7; 5000] } else { vec![7; 3] };
                self.write(*path, |server, path| server.set(path, &data));
            }
            Step::Delete(path) => self.write(*path, Server::delete),
            Step::Send => self.sent.extend(self.mirror.next_request(|_| true)),
            Step::Process => {
                if let Some(request) = self.sent.pop_front() {
                    let answer = self.server.read(&request);
                    self.messages.push_back(Message::Answer(request, answer));
                }
            }
            Step::Receive => {
                match self.messages.pop_front() {
                    Some(Message::Event(path)) => self.mirror.hint(&path),
                    Some(Message::Answer(request, answer)) => self.mirror.answer(request, answer),
                    None => {}
                }
                self.publish();
            }
            Step::Cut => {
                self.sent.clear();
                self.messages.clear();
                self.mirror.restart();
            }
            Step::Read(reader) => self.readers[*reader].read(),
        }
    }

    /// The event is on its way before any answer that shows the write.
    fn write(&mut self, path: usize, write: impl FnOnce(&mut Server, &str) -> bool) {
        let path = PATHS[path];
        if write(&mut self.server, path) && (self.scope != ViewScope::Node || path.is_empty()) {
            self.messages.push_back(Message::Event(path.to_owned()));
        }
    }

    fn publish(&mut self) {
        if self.mirror.is_complete() {
            let changes = self.mirror.take_changes();
            if !changes.is_empty() {
                self.latest = Arc::new(self.latest.next(ViewState::Live, &self.mirror));
                self.subscriptions.publish(&self.latest, &changes);
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
                        assert_ne!(here, Some((stat.czxid, stat.mzxid)), "{path:?}: {change:?}");
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

fn follow(scope: ViewScope, events: usize, has_ended_counters: bool, steps: &[Step]) {
    let mut world = World::new(scope, events);
    world.server.has_ended_counters = has_ended_counters;
    for step in steps {
        world.take(step);
    }
    world.settle();
    let nodes = world.latest.iter();
    let shown: BTreeMap<_, _> = nodes
        .map(|(path, node)| (path.to_owned(), (node.stat().czxid, node.stat().mzxid, node.data().len())))
        .collect();
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

proptest! {
    #[test]
    fn every_state_that_lasts_is_seen_and_no_change_is_missed_or_told_twice(
        scope in prop_oneof![Just(ViewScope::Node), Just(ViewScope::Children), Just(ViewScope::Tree)],
        events in prop_oneof![Just(1_usize), Just(3), Just(1000)],
        has_ended_counters in any::<bool>(),
        steps in vec(step(), 0..400),
    ) {
        follow(scope, events, has_ended_counters, &steps);
    }
}
