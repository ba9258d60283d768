//! The faults that are armed while a future is dropped.

use std::future::Future;
use std::time::Duration;

use lockkeeper_tests::dropped_after;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{ArmedFault, Fault, Op, When};

use crate::sample::sampled;
use crate::server_fixture::ServerFixture;

/// A fault that is armed while a future is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub(super) name: &'static str,
    pub(super) op: Option<Op>,
    fault: Fault,
}

/// Nothing, and faults at these requests: each fault at each of them, or a part of that.
pub(super) fn traps(ops: &[Op]) -> Vec<Trap> {
    let faults = [
        ("DropConnectionBefore", Fault::DropConnectionBefore),
        ("DropConnectionAfter", Fault::DropConnectionAfter),
        ("HoldRequest", Fault::HoldRequest),
        ("HoldReply", Fault::HoldReply),
        ("DelayReply", Fault::DelayReply(Duration::from_millis(10))),
    ];
    let nothing = Trap { name: "nothing", op: None, fault: Fault::DropReply };
    let each = |op: &Op| faults.map(|(name, fault)| Trap { name, op: Some(*op), fault });
    std::iter::once(nothing).chain(sampled(ops.iter().flat_map(each).collect())).collect()
}

impl Trap {
    pub(super) fn set(self, server_fixture: &ServerFixture) -> Option<ArmedFault> {
        let session = server_fixture.sessions_of_actor().last().copied();
        Some(server_fixture.server.fault(When::op(self.op?).session(session?), self.fault))
    }
}

/// The kinds of requests that `work` sends, by itself.
pub(super) async fn ops_of(server_fixture: &ServerFixture, work: impl Future) -> Vec<Op> {
    let actor = server_fixture.sessions_of_actor();
    let transcript = server_fixture.server.transcript();
    drop(dropped_after(usize::MAX, work).await);
    let mut ops = Vec::new();
    for passed in transcript.passed().into_iter().filter(|passed| actor.contains(&passed.session)) {
        if let Subject::Request(op) = passed.subject
            && op != Op::Ping
            && !ops.contains(&op)
        {
            ops.push(op);
        }
    }
    ops
}
