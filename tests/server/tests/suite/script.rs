//! Random scripts: what several sessions do to a small tree, in one order.

use std::fmt::{self, Display, Formatter};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::raw::{Body, op};

pub(crate) const SESSIONS: usize = 3;

/// One step of a script.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A session asks for something.
    Call { session: usize, op: i32, name: String, body: Body },
    /// A session sets watches again, as of some transactions ago: data, absent, children, persistent,
    /// recursive.
    SetWatches { session: usize, back: i64, lists: [Vec<String>; 5] },
    /// A session's connection breaks and is made again.
    Reconnect { session: usize },
    /// A session moves to another server, if there are several.
    Move { session: usize, server: usize },
    /// A session re-attaches with a wrong password, which loses it the connection and not the session; a new
    /// session replaces it.
    WrongPassword { session: usize },
    /// A session is closed, and a new one replaces it.
    Close { session: usize },
    /// A session is silent until it expires, and a new one replaces it.
    Expire { session: usize },
}

impl Display for Step {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { session, name, .. } => write!(formatter, "session {session}: {name}"),
            step => write!(formatter, "{step:?}"),
        }
    }
}

type AclLines = Vec<(i32, &'static str, &'static str)>;

pub(crate) struct Script {
    rng: StdRng,
    root: String,
    next: fn(&mut Self) -> Step,
}

impl Script {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), root: format!("/t{seed}"), next: Self::step }
    }

    /// About watches, on few paths that change often.
    pub(crate) fn of_watches(seed: u64) -> Self {
        Self { root: format!("/w{seed}"), next: Self::watch_step, ..Self::new(seed) }
    }

    /// About events: each session has watches of one kind, and removes none. What a server does with several
    /// kinds on one path depends on its version (ZOOKEEPER-4466).
    pub(crate) fn of_events(seed: u64) -> Self {
        Self { root: format!("/e{seed}"), next: Self::event_step, ..Self::new(seed) }
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn steps(mut self, count: usize) -> Vec<Step> {
        let mut steps: Vec<Step> = (0..count).map(|_| (self.next)(&mut self)).collect();
        // Slow ones: once a script.
        let at = self.below(steps.len());
        steps.insert(at, Step::Expire { session: self.below(SESSIONS) });
        steps
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.random_range(0..limit)
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn path(&mut self) -> String {
        if self.chance(25) {
            return self
                .pick(&["", "/", "x", "/zookeeper/quota", "//", "/a//b", "/a/", "/a/./b", "/a/..", "/\u{1}"])
                .to_owned();
        }
        let names = ["", "/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep", "/e", "/s0000000001", "/c", "/c/x"];
        let name = self.pick(&names);
        format!("{}{name}", self.root)
    }

    fn version(&mut self) -> i32 {
        self.pick(&[-1, -1, -1, 0, 1, 2, -2])
    }

    fn acl(&mut self) -> AclLines {
        if !self.chance(5) {
            return vec![(31, "world", "anyone")];
        }
        self.pick(&[
            vec![],
            vec![(31, "auth", "")],
            vec![(1, "world", "anyone")],
            vec![(31, "world", "anyone"), (31, "world", "anyone"), (1, "ip", "127.0.0.1")],
            vec![(9, "world", "anyone"), (31, "auth", "")],
            vec![(31, "ip", "127.0.0.0/8")],
            vec![(31, "ip", "10.0.0.0/8")],
            vec![(31, "ip", "127.0.0.1/33")],
            vec![(31, "digest", "u:notahash"), (5, "world", "anyone")],
            vec![(31, "digest", "nocolon")],
            vec![(31, "nonsense", "x")],
            vec![(31, "world", "me")],
            vec![(0, "world", "anyone")],
        ])
    }

    fn data(&mut self) -> Option<&'static [u8]> {
        self.pick(&[Some(&b""[..]), Some(b"1"), Some(b"some bytes"), None])
    }

    fn create(&mut self) -> (i32, Body) {
        let kind = self.pick(&[op::CREATE, op::CREATE, op::CREATE2, op::CREATE_CONTAINER, op::CREATE_TTL]);
        let flags = match kind {
            op::CREATE_CONTAINER => 4,
            // Flags without a time to live take the real server down (3.8.0), so they are not compared.
            op::CREATE_TTL => self.pick(&[5, 6]),
            _ => self.pick(&[0, 0, 0, 1, 1, 2, 3, 4, 7, -1]),
        };
        let mut path = self.path();
        if matches!(flags, 2 | 3 | 6) {
            path = format!("{}{}", path, self.pick(&["", "/s", "/"]));
        }
        let (data, acl) = (self.data(), self.acl());
        let mut body = Body::new().str(&path).bytes(data).acl(&acl).int(flags);
        if kind == op::CREATE_TTL {
            body = body.long(self.pick(&[1_000_000, 0, -1, (1 << 40) - 1, 1 << 40]));
        }
        (kind, body)
    }

    fn write(&mut self) -> (i32, Body) {
        match self.below(6) {
            0..3 => self.create(),
            3 => (op::DELETE, Body::version(&self.path(), self.version())),
            4 => (op::SET_DATA, Body::new().str(&self.path()).bytes(self.data()).int(self.version())),
            _ => (op::CHECK, Body::version(&self.path(), self.version())),
        }
    }

    fn paths(&mut self) -> Vec<String> {
        (0..self.below(3)).map(|_| self.valid_path()).collect()
    }

    fn valid_path(&mut self) -> String {
        loop {
            let path = self.path();
            if path.starts_with(&self.root) {
                return path;
            }
        }
    }

    fn call(&mut self) -> (i32, Body) {
        match self.below(29) {
            0..6 => self.create(),
            6 | 7 => (op::DELETE, Body::version(&self.path(), self.version())),
            8 | 9 => (op::SET_DATA, Body::new().str(&self.path()).bytes(self.data()).int(self.version())),
            10 | 11 => (op::EXISTS, Body::watch(&self.path(), self.chance(2))),
            12 | 13 => (op::GET_DATA, Body::watch(&self.path(), self.chance(2))),
            14 => (op::GET_CHILDREN, Body::watch(&self.valid_path(), self.chance(2))),
            15 => (op::GET_CHILDREN2, Body::watch(&self.valid_path(), self.chance(2))),
            16 => (op::GET_ACL, Body::new().str(&self.path())),
            17 => (op::SET_ACL, Body::new().str(&self.path()).acl(&self.acl()).int(self.version())),
            18 => (op::SYNC, Body::new().str(&self.path())),
            19 | 20 => {
                let ops: Vec<_> = (0..self.below(5)).map(|_| self.write()).collect();
                (op::MULTI, Body::multi(&ops))
            }
            21 => {
                let read = |this: &mut Self| {
                    (this.pick(&[op::GET_DATA, op::GET_CHILDREN]), Body::watch(&this.valid_path(), false))
                };
                let ops: Vec<_> = (0..self.below(4)).map(|_| read(self)).collect();
                (op::MULTI_READ, Body::multi(&ops))
            }
            22 => match self.below(3) {
                0 => (op::WHO_AM_I, Body::new()),
                1 => (op::GET_ALL_CHILDREN_NUMBER, Body::new().str(&self.valid_path())),
                _ => (op::GET_EPHEMERALS, Body::new().str(self.pick(&["/t", "/nowhere", " ", "/", ""]))),
            },
            23 => {
                let credentials = self.pick(&["u:p", "v:q", "nopassword", ""]);
                (op::AUTH, Body::new().int(0).str("digest").bytes(Some(credentials.as_bytes())))
            }
            24 => {
                let seen = self.pick(&[0, i64::MAX]);
                let lists = [self.paths(), self.paths(), self.paths()];
                let body = lists.iter().fold(Body::new().long(seen), |body, list| body.strs(list));
                if self.chance(2) {
                    return (op::SET_WATCHES, body);
                }
                let lists = [self.paths(), self.paths()];
                (op::SET_WATCHES2, lists.iter().fold(body, |body, list| body.strs(list)))
            }
            25 => (op::ADD_WATCH, Body::version(&self.valid_path(), self.pick(&[0, 1, 1, 2]))),
            26 => (op::REMOVE_WATCHES, Body::version(&self.valid_path(), self.pick(&[1, 2, 3, 4]))),
            27 => self.null(),
            _ => (op::CHECK_WATCHES, Body::version(&self.valid_path(), self.pick(&[1, 2, 3, 0]))),
        }
    }

    /// A request with a null string, as kazoo writes an empty one.
    fn null(&mut self) -> (i32, Body) {
        let null = || Body::new().bytes(None);
        let by_requester = |body: Body| body.int(1).int(31).str("auth").bytes(None);
        let create =
            by_requester(Body::new().str(&self.path()).bytes(self.data())).int(self.pick(&[0, 1, 2]));
        match self.below(9) {
            0..3 => (self.pick(&[op::CREATE, op::CREATE2]), create),
            3 => (op::MULTI, Body::multi(&[(op::CREATE, create), self.write()])),
            4 => (op::SET_ACL, by_requester(Body::new().str(&self.path())).int(self.version())),
            5 => (op::SYNC, null()),
            6 => (op::SET_DATA, null().bytes(self.data()).int(-1)),
            7 => (op::REMOVE_WATCHES, null().int(self.pick(&[1, 2, 3, 4]))),
            _ => (self.pick(&[op::EXISTS, op::GET_DATA, op::GET_CHILDREN]), null().bool(true)),
        }
    }

    fn watched_path(&mut self) -> String {
        let name = self.pick(&["", "/a", "/a/x", "/a/x/deep", "/a/y", "/b"]);
        format!("{}{name}", self.root)
    }

    fn watched_write(&mut self) -> (i32, Body) {
        let path = self.watched_path();
        match self.below(8) {
            0..4 => (op::CREATE, Body::create(&path, self.pick(&[0, 0, 0, 1, 2]))),
            4..6 => (op::DELETE, Body::version(&path, -1)),
            _ => (op::SET_DATA, Body::set(&path, b"x", -1)),
        }
    }

    fn watch_call(&mut self) -> (i32, Body) {
        let path = self.watched_path();
        match self.below(16) {
            0..6 => self.watched_write(),
            6 => (op::MULTI, Body::multi(&[self.watched_write(), self.watched_write()])),
            7..10 => (self.pick(&[op::EXISTS, op::EXISTS, op::GET_DATA]), Body::watch(&path, true)),
            10 => (self.pick(&[op::GET_CHILDREN, op::GET_CHILDREN2]), Body::watch(&path, true)),
            11..14 => (op::ADD_WATCH, Body::version(&path, self.pick(&[0, 1]))),
            14 => (op::REMOVE_WATCHES, Body::version(&path, self.pick(&[1, 2, 3]))),
            _ => (op::CHECK_WATCHES, Body::version(&path, self.pick(&[1, 2, 3]))),
        }
    }

    fn watch_step(&mut self) -> Step {
        let session = self.below(SESSIONS);
        match self.below(40) {
            0 => Step::Close { session },
            1..3 => Step::Reconnect { session },
            3..7 => {
                let list = |this: &mut Self| (0..this.below(3)).map(|_| this.watched_path()).collect();
                let lists = std::array::from_fn(|_| list(self));
                Step::SetWatches { session, back: self.pick(&[0, 1, 3, 10, 1000]), lists }
            }
            _ => {
                let (op, body) = self.watch_call();
                let name = format!("op {op} {}", String::from_utf8_lossy(&body.0).escape_debug());
                Step::Call { session, op, name, body }
            }
        }
    }

    fn event_call(&mut self, session: usize) -> (i32, Body) {
        let path = self.watched_path();
        match (self.below(10), session) {
            (0..5, _) => self.watched_write(),
            (5, _) => (op::MULTI, Body::multi(&[self.watched_write(), self.watched_write()])),
            (_, 0) => {
                let op = self.pick(&[op::EXISTS, op::GET_DATA, op::GET_CHILDREN, op::GET_CHILDREN2]);
                (op, Body::watch(&path, true))
            }
            (_, mode) => (op::ADD_WATCH, Body::version(&path, if mode == 1 { 0 } else { 1 })),
        }
    }

    fn event_step(&mut self) -> Step {
        let session = self.below(SESSIONS);
        match self.below(40) {
            0 => Step::Close { session },
            1..3 => Step::Reconnect { session },
            3..7 => {
                let mut lists = [const { Vec::new() }; 5];
                let kinds = [0..3, 3..4, 4..5][session].clone();
                lists[kinds].fill_with(|| (0..self.below(3)).map(|_| self.watched_path()).collect());
                Step::SetWatches { session, back: self.pick(&[0, 1, 3, 10, 1000]), lists }
            }
            _ => {
                let (op, body) = self.event_call(session);
                let name = format!("op {op} {}", String::from_utf8_lossy(&body.0).escape_debug());
                Step::Call { session, op, name, body }
            }
        }
    }

    fn step(&mut self) -> Step {
        let session = self.below(SESSIONS);
        match self.below(60) {
            0 => Step::Reconnect { session },
            1 => Step::Close { session },
            3 => Step::Move { session, server: self.below(3) },
            2 if self.chance(4) => Step::WrongPassword { session },
            4 => {
                let (op, mut body) = self.call();
                if matches!(op, op::AUTH) || body.0.is_empty() {
                    return self.step();
                }
                body.0.truncate(self.below(body.0.len()));
                Step::Call { session, op, name: format!("malformed op {op}"), body }
            }
            _ => {
                let (op, body) = self.call();
                let name = format!("op {op} {}", String::from_utf8_lossy(&body.0).escape_debug());
                Step::Call { session, op, name, body }
            }
        }
    }
}
