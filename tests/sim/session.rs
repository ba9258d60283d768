use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lockkeeper_core::LossReason;
use lockkeeper_core::simulation::{Link, WatchEvent, WireError};
use lockkeeper_testserver::machine::ClientId;
use lockkeeper_testserver::protocol::{ErrorCode, Reply, Request};
use lockkeeper_testserver::tree::{EventKind, WatchMode};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::environment::Process;

/// A server's answer to one request, and the watch that came with it.
pub(crate) struct Answer {
    pub(crate) result: Result<Reply, ErrorCode>,
    pub(crate) watch: Option<oneshot::Receiver<WatchEvent>>,
    /// What a watch that stays reports, if the request set one.
    pub(crate) changes: Option<mpsc::UnboundedReceiver<String>>,
}

/// A watch that stays until the connection breaks.
struct Follower {
    mode: WatchMode,
    changes: mpsc::UnboundedSender<String>,
}

/// The watch that a request sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Watched {
    Data(String),
    Children(String),
}

/// A watch whose answer nobody received.
pub(crate) enum Untaken {
    Watch(Watched),
    Follower(String),
}

/// One request, and the receiver of its answer.
pub(crate) struct Call {
    pub(crate) request: Request,
    pub(crate) watched: Option<Watched>,
    pub(crate) reply: oneshot::Sender<Result<Answer, WireError>>,
}

/// The client's end of one session, as the real client keeps it: requests queue while there is no connection,
/// those under way fail when it breaks, watches are set again on the next one.
pub(crate) struct ClientSession {
    pub(crate) process: Arc<Process>,
    /// 0 until the server has given one.
    pub(crate) id: i64,
    /// The session it attaches to: another one than its own, if the server has swapped them silently.
    pub(crate) attached: i64,
    pub(crate) password: Vec<u8>,
    /// The newest transaction it has seen; an event does not move it.
    pub(crate) seen: i64,
    pub(crate) connection: Option<ClientId>,
    pub(crate) link: Link,
    pub(crate) connection_id: u64,
    pub(crate) next_xid: i32,
    pub(crate) queued: VecDeque<Call>,
    pub(crate) in_flight: VecDeque<(i32, Call)>,
    pub(crate) watches: BTreeMap<Watched, Vec<oneshot::Sender<WatchEvent>>>,
    /// The watches that stay, by path. No client sets them again, and no server sends what they missed.
    followers: BTreeMap<String, Vec<Follower>>,
    /// The times of the last received and sent bytes, in milliseconds.
    pub(crate) last_heard: u64,
    pub(crate) last_sent: u64,
    /// Told once, of the first connection.
    pub(crate) opened: Option<oneshot::Sender<Result<(), WireError>>>,
    pub(crate) is_closing: bool,
    /// The server has said that it closed it.
    pub(crate) was_closed: bool,
    pub(crate) changed: Arc<Notify>,
    pub(crate) ended: CancellationToken,
}

impl ClientSession {
    pub(crate) fn new(
        process: Arc<Process>,
        now: u64,
        opened: oneshot::Sender<Result<(), WireError>>,
    ) -> Self {
        Self {
            process,
            id: 0,
            attached: 0,
            password: Vec::new(),
            seen: 0,
            connection: None,
            link: Link::Down,
            connection_id: 0,
            next_xid: 1,
            queued: VecDeque::new(),
            in_flight: VecDeque::new(),
            watches: BTreeMap::new(),
            followers: BTreeMap::new(),
            last_heard: now,
            last_sent: now,
            opened: Some(opened),
            is_closing: false,
            was_closed: false,
            changed: Arc::new(Notify::new()),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.link, Link::Ended(_))
    }

    /// Nothing is sent behind the request to close.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_closing || self.has_ended()
    }

    /// Every change of the link counts as an interruption, and is published before any reply that arrives
    /// after it.
    pub(crate) fn set_link(&mut self, link: Link) {
        if self.link == link || self.has_ended() {
            return;
        }
        self.link = link;
        if self.opened.is_none() {
            self.connection_id += 1;
        }
        self.changed.notify_waiters();
    }

    pub(crate) fn end(&mut self) {
        self.set_link(Link::Ended(LossReason::SessionExpired));
        self.connection = None;
        self.followers.clear();
        for (_, watchers) in std::mem::take(&mut self.watches) {
            for watcher in watchers {
                let _ = watcher.send(WatchEvent::SessionEnded);
            }
        }
        let calls = self.in_flight.drain(..).map(|(_, call)| call).chain(self.queued.drain(..));
        for call in calls.collect::<Vec<_>>() {
            let _ = call.reply.send(Err(WireError::SessionEnded(LossReason::SessionExpired)));
        }
        if let Some(opened) = self.opened.take() {
            let _ = opened.send(Err(WireError::Broken("no session".to_owned())));
        }
        self.ended.cancel();
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
        self.set_link(Link::Down);
        self.followers.clear();
        for (_, call) in self.in_flight.drain(..).collect::<Vec<_>>() {
            let _ = call.reply.send(Err(WireError::Broken("the connection broke".to_owned())));
        }
    }

    /// The answer to the oldest request in flight. Returns the watch that it has set, if no task waits for
    /// the answer.
    pub(crate) fn answer(
        &mut self,
        xid: i32,
        zxid: i64,
        result: Result<Reply, ErrorCode>,
    ) -> Option<Untaken> {
        self.seen = self.seen.max(zxid);
        let (expected, call) = self.in_flight.pop_front()?;
        assert_eq!(expected, xid, "the server answered out of order");
        if result == Err(ErrorCode::SessionExpired) {
            self.end();
            return None;
        }
        let (mut watch, mut changes, mut set) = (None, None, None);
        if let (Some(watched), Ok(_)) = (call.watched, &result) {
            let (sender, receiver) = oneshot::channel();
            self.watches.entry(watched.clone()).or_default().push(sender);
            watch = Some(receiver);
            set = Some(Untaken::Watch(watched));
        }
        if let (Request::AddWatch { path, mode }, Ok(_)) = (call.request, &result) {
            let (sender, receiver) = mpsc::unbounded_channel();
            self.followers.entry(path.clone()).or_default().push(Follower { mode, changes: sender });
            changes = Some(receiver);
            set = Some(Untaken::Follower(path));
        }
        let taken = call.reply.send(Ok(Answer { result, watch, changes }));
        set.filter(|_| taken.is_err())
    }

    /// Whether a watch that stays is set on this path, or asked for.
    pub(crate) fn poll_followed(&mut self, path: &str) -> bool {
        let asks = |(_, call): &(i32, Call)| {
            matches!(
                &call.request,
                Request::AddWatch { path: of, .. } if of == path
            )
        };
        if let Some(followers) = self.followers.get_mut(path) {
            followers.retain(|follower| !follower.changes.is_closed());
        }
        self.followers.get(path).is_some_and(|followers| !followers.is_empty())
            || self.in_flight.iter().any(asks)
    }

    pub(crate) fn event(&mut self, path: &str, kind: EventKind) {
        if kind != EventKind::ChildrenChanged {
            let reaches = |root: &str, mode: WatchMode| {
                let below = path.strip_prefix(root);
                below.is_some_and(|below| {
                    below.is_empty() || mode == WatchMode::PersistentRecursive && below.starts_with('/')
                })
            };
            for (root, followers) in &self.followers {
                for follower in followers.iter().filter(|follower| reaches(root, follower.mode)) {
                    let _ = follower.changes.send(path.to_owned());
                }
            }
        }
        let (data, children) = (Watched::Data(path.to_owned()), Watched::Children(path.to_owned()));
        let (event, watched_paths) = match kind {
            EventKind::Deleted => (WatchEvent::Deleted, vec![data, children]),
            EventKind::ChildrenChanged => (WatchEvent::Changed, vec![children]),
            _ => (WatchEvent::Changed, vec![data]),
        };
        for watcher in
            watched_paths.iter().flat_map(|watched| self.watches.remove(watched).unwrap_or_default())
        {
            let _ = watcher.send(event);
        }
    }

    /// The request to close the session is in flight.
    pub(crate) fn asks_to_close(&self) -> bool {
        self.in_flight.iter().any(|(_, call)| call.request == Request::CloseSession)
    }

    /// The watches that are still set.
    pub(crate) fn watched(&mut self) -> Vec<Watched> {
        for watchers in self.watches.values_mut() {
            watchers.retain(|watcher| !watcher.is_closed());
        }
        self.watches.retain(|_, watchers| !watchers.is_empty());
        self.watches.keys().cloned().collect()
    }
}
