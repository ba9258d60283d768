//! A server with one node, as the model has it.

use crate::error::Refusal;
use crate::presence::decide::{Event, Found, Request, Step};
use crate::znode::zxid::Zxid;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) owner: i64,
    pub(super) czxid: i64,
    pub(super) version: i32,
    pub(super) data: Vec<u8>,
}

/// A write in flight.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) session: i64,
    pub(super) step: Step,
    pub(super) data: Vec<u8>,
    /// What the process had seen last when it sent the write.
    pub(super) seen: i64,
}

#[derive(Default)]
pub(super) struct Server {
    pub(super) zxid: i64,
    pub(super) node: Option<Node>,
    /// Sessions whose client has gone; the server has not noticed.
    pub(super) abandoned: Vec<i64>,
    pub(super) live: Vec<i64>,
    /// Late writes of a session that exists.
    pub(super) late: Vec<Write>,
}

impl Server {
    pub(super) fn session(&mut self) -> i64 {
        self.zxid += 1;
        self.live.push(self.zxid);
        self.zxid
    }

    pub(super) fn end(&mut self, session: i64) {
        self.live.retain(|live| *live != session);
        self.late.retain(|write| write.session != session);
        self.node = self.node.take().filter(|node| node.owner != session);
    }

    fn create(&mut self, write: &Write) -> Event {
        self.zxid += 1;
        let node = Node { owner: write.session, czxid: self.zxid, version: 0, data: write.data.clone() };
        self.node = Some(node);
        Event::Created(Some(Zxid::new(self.zxid)))
    }

    pub(super) fn apply(&mut self, write: &Write, of_sender: &[i64]) -> Event {
        let refused = |request, refusal| Event::Refused(request, refusal);
        match (&write.step, &mut self.node) {
            (Step::Create, None) => self.create(write),
            (Step::Create, Some(_)) => refused(Request::Create, Refusal::NodeExists),
            (Step::Replace(version), Some(node)) if node.version == *version => {
                // A server checks versions only. A node that the sender has not seen may have the same.
                assert!(of_sender.contains(&node.owner) || node.czxid > write.seen, "a node was stolen");
                self.create(write)
            }
            (Step::Replace(_), Some(_)) => refused(Request::Replace, Refusal::BadVersion),
            (Step::Replace(_), None) => refused(Request::Replace, Refusal::NoNode),
            (Step::Write(version), Some(node)) if node.version == *version => {
                node.version += 1;
                node.data.clone_from(&write.data);
                Event::Wrote(found(node))
            }
            (Step::Write(_), Some(_)) => refused(Request::Write, Refusal::BadVersion),
            (Step::Write(_), None) => refused(Request::Write, Refusal::NoNode),
            (step, _) => panic!("{step:?} writes nothing"),
        }
    }
}

pub(super) fn found(node: &Node) -> Found {
    Found { owner: node.owner, czxid: Zxid::new(node.czxid), version: node.version }
}
