//! Which requests a scenario sends, and which events it is sent: recorded, not listed by hand.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use lockkeeper_testserver::tree::EventKind;
use lockkeeper_testserver::{ArmedFault, Fault, Op, TestServer, When};

/// The n-th request of a kind, or the n-th event, on the way from or to the client that things happen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) what: What,
    pub(crate) nth: u64,
    /// Only with this path, where others of its kind come and go by the clock.
    pub(crate) path: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Request(Op),
    Event(EventKind),
}

/// Every kind of request. Unknown ones have no name to choose them by.
const OPS: &[Op] = &[
    Op::Connect,
    Op::Create,
    Op::Create2,
    Op::CreateContainer,
    Op::CreateTtl,
    Op::Delete,
    Op::Exists,
    Op::GetData,
    Op::SetData,
    Op::GetAcl,
    Op::SetAcl,
    Op::GetChildren,
    Op::GetChildren2,
    Op::Sync,
    Op::Ping,
    Op::Check,
    Op::Multi,
    Op::MultiRead,
    Op::Auth,
    Op::SetWatches,
    Op::SetWatches2,
    Op::AddWatch,
    Op::RemoveWatches,
    Op::CheckWatches,
    Op::GetEphemerals,
    Op::GetAllChildrenNumber,
    Op::WhoAmI,
    Op::CloseSession,
    Op::Reconfig,
];

const EVENTS: &[EventKind] =
    &[EventKind::Created, EventKind::Deleted, EventKind::DataChanged, EventKind::ChildrenChanged];

impl Site {
    /// Chooses it, of that session.
    pub(crate) fn when(self, session: i64) -> When {
        let when = self.what.when().session(session).nth(self.nth);
        match self.path {
            Some(path) => when.path(path),
            None => when,
        }
    }

    pub(crate) fn request(op: Op, nth: u64) -> Self {
        Self { what: What::Request(op), nth, path: None }
    }
}

impl What {
    fn when(self) -> When {
        match self {
            Self::Request(op) => When::op(op),
            Self::Event(kind) => When::event_kind(kind),
        }
    }
}

impl Display for Site {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Request(op) => write!(formatter, "{op:?}#{}", self.nth),
            What::Event(kind) => write!(formatter, "event {kind:?}#{}", self.nth),
        }
    }
}

/// Counts what passes of one session.
pub(crate) struct Recording(Vec<(What, ArmedFault)>);

impl Recording {
    pub(crate) fn of(server: &TestServer, session: i64) -> Self {
        let requests = OPS.iter().map(|op| What::Request(*op));
        let events = EVENTS.iter().map(|kind| What::Event(*kind));
        let count = |what: What| {
            let when = what.when().session(session).always();
            (what, server.fault(when, Fault::DelayRequest(Duration::ZERO)))
        };
        Self(requests.chain(events).map(count).collect())
    }

    pub(crate) fn sites(&self) -> Vec<Site> {
        let each = |(what, counted): &(What, ArmedFault)| {
            let what = *what;
            (1..=counted.hits()).map(move |nth| Site { what, nth, path: None })
        };
        self.0.iter().flat_map(each).collect()
    }
}
