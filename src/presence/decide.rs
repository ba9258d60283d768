//! The next step of a presence: a state machine without I/O, async or clock.
//!
//! One request is in flight at a time. Its answer, or the lack of one, is an [`Event`]; [`Engine::next`] then
//! names the next [`Step`].
//!
//! The rules:
//!
//! * A node is ours only if the current session owns it. A node of an earlier session of ours will be deleted
//!   with that session, so it is replaced in one transaction.
//! * After a create without an answer, only a read says what happened.
//! * A node of another session is a conflict only if this connection does not carry that session.
//! * A new session creates at once: usually the old node was deleted with the old session.

use std::sync::Arc;

use super::state::OnDeletion;
use super::targets::Targets;
use crate::error::Refusal;
use crate::znode::zxid::Zxid;

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    SessionOpened {
        session: i64,
        /// The earlier sessions of this manager.
        earlier: Vec<i64>,
    },
    /// The same session, over another connection.
    Reconnected,
    SessionEnded,
    /// The connection carries the session.
    Verified,
    ParentMade,
    /// The create or the replacement was committed. Some servers do not send the zxid.
    Created(Option<Zxid>),
    Wrote(Found),
    Read(Found, Vec<u8>),
    /// A read found no node.
    ReadNothing,
    Refused(Request, Refusal),
    /// The request may be applied, also late.
    Unanswered(Request),
    /// The watch on the node has fired, or there is no watch and it is time to read.
    WatchFired,
    RetryDue,
    SetData(Arc<[u8]>),
}

/// A node, as a server showed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) owner: i64,
    pub(super) czxid: Zxid,
    pub(super) version: i32,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Verify,
    Read,
    MakeParent,
    Create,
    Replace,
    Write,
}

impl Request {
    pub(super) fn changes_the_node(self) -> bool {
        matches!(self, Self::Create | Self::Replace | Self::Write)
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Ask whether the connection carries the session.
    Verify,
    /// Ask whether the connection carries the session that owns the node of this transaction.
    VerifyOther(Zxid),
    /// Read the node, and set a watch.
    Read,
    MakeParent,
    Create,
    /// Delete the node of this version and create ours, in one transaction.
    Replace(i32),
    /// Write the data of the node of this version.
    Write(i32),
    /// Wait for the watch, the connection or the application.
    Wait,
    /// As `Wait`, and try again after a while.
    Retry,
    WaitForSession,
    End,
}

/// What is true, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Registered { czxid: Zxid },
    Missing,
    Conflict { owner: i64 },
    Refused(Refusal),
    Deleted,
}

/// What a release has to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    /// The version of our node, if it was seen.
    pub(super) version: Option<i32>,
    /// A create without an answer may be applied late.
    pub(super) in_doubt: bool,
}

/// What is known of the node in this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Unknown,
    Absent,
    /// Its parent does not exist either.
    Orphan,
    Ours {
        czxid: Zxid,
        version: i32,
    },
    /// Of an earlier session of this manager.
    Earlier {
        version: i32,
    },
    /// Of another session, created by this transaction.
    Foreign(Zxid),
}

/// The state machine of one presence.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    policy: OnDeletion,
    targets: Targets,
    session: Option<i64>,
    earlier: Vec<i64>,
    node: Node,
    status: Status,
    is_watched: bool,
    is_verified: bool,
    is_refused: bool,
    /// Our node was seen in this session. If it is missing then, another client deleted it.
    was_seen: bool,
    /// The creates of this session without an answer.
    doubts: u32,
}

impl Engine {
    pub(super) fn new(policy: OnDeletion, data: Arc<[u8]>) -> Self {
        Self {
            policy,
            targets: Targets::new(data),
            session: None,
            earlier: Vec::new(),
            node: Node::Unknown,
            status: Status::Missing,
            is_watched: false,
            is_verified: true,
            is_refused: false,
            was_seen: false,
            doubts: 0,
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    /// The data of the calls, and their fates.
    pub(super) fn targets(&self) -> &Targets {
        &self.targets
    }

    pub(super) fn targets_mut(&mut self) -> &mut Targets {
        &mut self.targets
    }

    /// What may exist of this presence in the current session.
    pub(super) fn leftover(&self) -> Option<Leftover> {
        self.session?;
        let in_doubt = self.doubts > 0;
        match self.node {
            Node::Ours { version, .. } => Some(Leftover { version: Some(version), in_doubt }),
            Node::Unknown => Some(Leftover { version: None, in_doubt }),
            _ => in_doubt.then_some(Leftover { version: None, in_doubt }),
        }
    }

    pub(super) fn next(&self) -> Step {
        if self.status == Status::Deleted {
            return Step::End;
        }
        if self.session.is_none() {
            return Step::WaitForSession;
        }
        if self.is_refused {
            return Step::Retry;
        }
        match self.node {
            Node::Unknown => Step::Read,
            Node::Absent => Step::Create,
            Node::Orphan => Step::MakeParent,
            Node::Earlier { version } => Step::Replace(version),
            Node::Ours { .. } if !self.is_verified => Step::Verify,
            // Perhaps a server has replaced our session by that one.
            Node::Foreign(czxid) if !self.is_verified => Step::VerifyOther(czxid),
            // Before a write, too: another session may have created a node with the same version meanwhile.
            Node::Ours { .. } | Node::Foreign(_) if !self.is_watched => Step::Read,
            Node::Ours { version, .. } if !self.targets.is_stored() => Step::Write(version),
            Node::Ours { .. } | Node::Foreign(_) => Step::Wait,
        }
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            _ if self.status == Status::Deleted => {}
            Event::SessionOpened { session, earlier } => self.open(session, earlier),
            Event::SessionEnded => {
                self.session = None;
                self.status = Status::Missing;
            }
            Event::Reconnected => {
                self.is_watched = false;
                self.is_verified = false;
                self.is_refused = false;
            }
            Event::Verified => self.is_verified = true,
            Event::ParentMade => self.node = Node::Absent,
            Event::Created(czxid) => self.created(czxid),
            Event::Wrote(found) => {
                self.targets.lose_sight();
                self.classify(found);
                if matches!(self.node, Node::Ours { .. }) {
                    self.targets.store();
                }
            }
            Event::Read(found, data) => self.read(found, &data),
            Event::ReadNothing => self.read_nothing(),
            Event::Refused(request, refusal) => self.refuse(request, refusal),
            Event::Unanswered(request) => self.unanswered(request),
            Event::WatchFired => {
                self.is_watched = false;
                self.node = Node::Unknown;
            }
            Event::RetryDue => self.is_refused = false,
            Event::SetData(data) => {
                self.targets.set(data);
                // The server may accept the node with other data.
                self.is_refused = false;
            }
        }
    }

    fn open(&mut self, session: i64, earlier: Vec<i64>) {
        self.session = Some(session);
        self.earlier = earlier;
        self.node = Node::Absent;
        self.status = Status::Missing;
        self.targets.reopen();
        self.is_watched = false;
        self.is_verified = true;
        self.is_refused = false;
        self.was_seen = false;
        self.doubts = 0;
    }

    fn created(&mut self, czxid: Option<Zxid>) {
        self.targets.store();
        self.is_watched = false;
        match czxid {
            Some(czxid) => self.own(czxid, 0),
            None => self.node = Node::Unknown,
        }
    }

    fn own(&mut self, czxid: Zxid, version: i32) {
        self.node = Node::Ours { czxid, version };
        self.status = Status::Registered { czxid };
        self.was_seen = true;
    }

    fn classify(&mut self, found: Found) {
        if Some(found.owner) == self.session {
            self.own(found.czxid, found.version);
        } else if self.earlier.contains(&found.owner) {
            self.node = Node::Earlier { version: found.version };
            self.status = Status::Missing;
        } else {
            self.node = Node::Foreign(found.czxid);
            self.is_verified = false;
            self.status = self.status_without_ours(Status::Conflict { owner: found.owner });
        }
    }

    fn read(&mut self, found: Found, data: &[u8]) {
        let known = self.status;
        self.is_watched = true;
        self.classify(found);
        let Node::Ours { czxid, .. } = self.node else {
            return self.targets.lose_sight();
        };
        if known != (Status::Registered { czxid }) {
            // Not a node whose creation was answered, unless that answer had no zxid.
            if !self.targets.is_any_stored() {
                self.doubts = self.doubts.saturating_sub(1);
            }
        }
        self.targets.read(data);
    }

    fn read_nothing(&mut self) {
        self.is_watched = false;
        self.targets.lose_sight();
        self.node = Node::Absent;
        self.status = self.status_without_ours(Status::Missing);
    }

    /// Our node does not exist. If it did in this session, another client has deleted it.
    fn status_without_ours(&mut self, status: Status) -> Status {
        match (std::mem::take(&mut self.was_seen), self.policy) {
            (true, OnDeletion::End) => Status::Deleted,
            _ => status,
        }
    }

    fn refuse(&mut self, request: Request, refusal: Refusal) {
        match (request, refusal) {
            (Request::Create, Refusal::NoNode) => self.node = Node::Orphan,
            // The parent was deleted, or made by another client.
            (Request::MakeParent, Refusal::NoNode | Refusal::NodeExists) => self.node = Node::Absent,
            (_, Refusal::NoNode | Refusal::NodeExists | Refusal::BadVersion) => self.node = Node::Unknown,
            (Request::Write, refusal) => self.targets.refuse(refusal),
            (_, refusal) => {
                self.is_refused = true;
                self.status = Status::Refused(refusal);
            }
        }
    }

    fn unanswered(&mut self, request: Request) {
        match request {
            Request::Create | Request::Replace => {
                self.doubts = self.doubts.saturating_add(1);
                self.targets.doubt();
                self.node = Node::Unknown;
            }
            Request::Write => {
                self.targets.doubt();
                self.node = Node::Unknown;
            }
            Request::Read | Request::Verify | Request::MakeParent => {}
        }
    }
}
