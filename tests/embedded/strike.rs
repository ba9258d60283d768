//! What strikes a view or a registration at one of its requests.

use std::time::Duration;

use lockkeeper_testserver::{ArmedFault, ErrorCode, Fault};

use crate::server_fixture::ServerFixture;

/// What happens at the request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strike {
    Fault(Fault),
    /// The session ends while the reply is on its way.
    Expire,
    /// The server is killed and started again.
    Restart,
}

pub(crate) const STRIKES: [Strike; 10] = [
    Strike::Fault(Fault::DropConnectionBefore),
    Strike::Fault(Fault::DropConnectionAfter),
    Strike::Fault(Fault::DropReply),
    Strike::Fault(Fault::DelayReply(Duration::from_millis(30))),
    Strike::Fault(Fault::SwapSession),
    // Throttled, session moved, and an error of the server.
    Strike::Fault(Fault::Refuse(ErrorCode::Other(-127))),
    Strike::Fault(Fault::Refuse(ErrorCode::Other(-118))),
    Strike::Fault(Fault::Refuse(ErrorCode::Other(-1))),
    Strike::Expire,
    Strike::Restart,
];

impl Strike {
    /// The fault to arm at the request.
    pub(crate) fn fault(self) -> Fault {
        match self {
            Self::Fault(fault) => fault,
            Self::Expire | Self::Restart => Fault::HoldReply,
        }
    }

    /// Does what the fault alone does not.
    pub(crate) async fn carry_out(self, server_fixture: &ServerFixture, session: i64, armed: &ArmedFault) {
        match self {
            Self::Fault(_) => return,
            Self::Expire => {
                armed.hit().await;
                server_fixture.server.expire(session);
            }
            Self::Restart => {
                armed.hit().await;
                server_fixture.server.stop().await;
                server_fixture.server.restart().await.unwrap();
            }
        }
        armed.release();
    }
}
