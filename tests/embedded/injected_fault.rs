//! The faults at a request, an event or a connection: every fault of the test server, and its consequences.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper::manager::State;
use lockkeeper_testserver::fault::Subject;
use lockkeeper_testserver::{ArmedFault, ErrorCode, Fault, Op, TestServer, When};

use crate::injection_point::InjectionPoint;
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture};

/// One fault at an [`InjectionPoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InjectedFault {
    /// The connection is closed before the request is applied.
    DropBefore,
    /// The connection is closed after the request was applied.
    DropAfter,
    /// As the two before, with a reset.
    ResetBefore,
    ResetAfter,
    /// The request waits while the others proceed.
    HoldRequest,
    /// The connection breaks, and the request is applied when its client has a new one.
    HoldPastReconnect,
    /// The connection breaks, and the request is applied after the end of the operation.
    HoldPastEnd,
    DelayRequest,
    /// The request is applied; its reply, or the event, waits while the others proceed.
    HoldReply,
    DelayReply,
    /// The request is applied and never answered.
    DropReply,
    Refuse(Refused),
    /// The connection is closed, and the next one silently gets another session.
    SwapBefore,
    SwapAfter,
    /// The client is cut off until its session expired; the request is not applied.
    StarveBefore,
    /// The same, and the request was applied before.
    StarveAfter,
    /// An administrator ends the session, before the request is applied or after, before it is answered. No
    /// clock can know of that: [`InjectedFault::is_decreed`].
    ExpireBefore,
    ExpireAfter,
    /// The server is paused until the client has noticed.
    Freeze,
    /// The server is killed after the request was applied, and restarted.
    Restart,
}

/// An error that a server can answer with, whatever the state of its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Throttled,
    SessionMoved,
    ReadOnly,
    NoAuth,
    ConnectionLoss,
    OperationTimeout,
    SystemError,
}

impl Refused {
    const ALL: [Self; 7] = [
        Self::Throttled,
        Self::SessionMoved,
        Self::ReadOnly,
        Self::NoAuth,
        Self::ConnectionLoss,
        Self::OperationTimeout,
        Self::SystemError,
    ];

    fn code(self) -> ErrorCode {
        match self {
            Self::Throttled => ErrorCode::Other(-127),
            Self::SessionMoved => ErrorCode::Other(-118),
            Self::ReadOnly => ErrorCode::Other(-119),
            Self::NoAuth => ErrorCode::NoAuth,
            Self::ConnectionLoss => ErrorCode::Other(-4),
            Self::OperationTimeout => ErrorCode::Other(-7),
            Self::SystemError => ErrorCode::Other(-1),
        }
    }
}

/// The length of a delay.
const DELAY: Duration = Duration::from_millis(30);

/// The limit of a wait for an event that may not occur.
const PATIENCE: Duration = Duration::from_secs(3);

impl InjectedFault {
    const OF_REQUESTS: [Self; 19] = [
        Self::DropBefore,
        Self::DropAfter,
        Self::ResetBefore,
        Self::ResetAfter,
        Self::HoldRequest,
        Self::HoldPastReconnect,
        Self::HoldPastEnd,
        Self::DelayRequest,
        Self::HoldReply,
        Self::DelayReply,
        Self::DropReply,
        Self::SwapBefore,
        Self::SwapAfter,
        Self::StarveBefore,
        Self::StarveAfter,
        Self::ExpireBefore,
        Self::ExpireAfter,
        Self::Freeze,
        Self::Restart,
    ];

    const OF_EVENTS: [Self; 11] = [
        Self::DropBefore,
        Self::DropAfter,
        Self::ResetBefore,
        Self::HoldReply,
        Self::DelayReply,
        Self::SwapBefore,
        Self::SwapAfter,
        Self::StarveAfter,
        Self::ExpireAfter,
        Self::Freeze,
        Self::Restart,
    ];

    /// All faults that are possible there.
    pub(crate) fn all_at(injection_point: &InjectionPoint) -> Vec<Self> {
        match injection_point.what {
            Subject::Event(_) => Self::OF_EVENTS.to_vec(),
            // With any error, a connect request gets the answer of an expired session.
            Subject::Request(Op::Connect) => {
                Self::OF_REQUESTS.into_iter().chain([Self::Refuse(Refused::NoAuth)]).collect()
            }
            // A ping has no error but a broken connection.
            Subject::Request(Op::Ping) => Self::OF_REQUESTS.to_vec(),
            Subject::Request(_) => {
                Self::OF_REQUESTS.into_iter().chain(Refused::ALL.map(Self::Refuse)).collect()
            }
        }
    }

    /// Whether every request is answered on the same connection, even if late.
    pub(crate) fn is_mild(self) -> bool {
        matches!(self, Self::HoldRequest | Self::DelayRequest | Self::HoldReply | Self::DelayReply)
    }

    /// Whether the session ends although its client is connected: then a hold may outlive it by its lease, as
    /// it may outlive a node that is deleted by hand.
    pub(crate) fn is_decreed(self) -> bool {
        matches!(self, Self::ExpireBefore | Self::ExpireAfter)
    }

    /// Whether the session ends, and its holds are lost in any case.
    pub(crate) fn ends_session(self) -> bool {
        let is_replaced = matches!(self, Self::SwapBefore | Self::SwapAfter);
        is_replaced || matches!(self, Self::StarveBefore | Self::StarveAfter) || self.is_decreed()
    }

    pub(crate) fn refuses(self) -> bool {
        matches!(self, Self::Refuse(_))
    }

    /// Whether a client that asks for the end of its session may read it as ended though it lives on until
    /// its time is up: the close is refused, or lost with the connection and asked again of another session.
    /// No ZooKeeper does either, and the client does not tell.
    pub(crate) fn hides_open_session(self) -> bool {
        matches!(self, Self::Refuse(_) | Self::SwapBefore)
    }

    fn fault(self, injection_point: &InjectionPoint) -> Fault {
        match self {
            Self::SwapBefore | Self::SwapAfter if injection_point.is(Op::Connect) => Fault::SwapSession,
            Self::DropBefore | Self::ResetBefore | Self::SwapBefore => Fault::DropConnectionBefore,
            Self::DropAfter | Self::ResetAfter | Self::SwapAfter => Fault::DropConnectionAfter,
            Self::HoldRequest
            | Self::HoldPastReconnect
            | Self::HoldPastEnd
            | Self::StarveBefore
            | Self::ExpireBefore
            | Self::Freeze => Fault::HoldRequest,
            Self::DelayRequest => Fault::DelayRequest(DELAY),
            Self::HoldReply | Self::StarveAfter | Self::ExpireAfter | Self::Restart => Fault::HoldReply,
            Self::DelayReply => Fault::DelayReply(DELAY),
            Self::DropReply => Fault::DropReply,
            Self::Refuse(refused) => Fault::Refuse(refused.code()),
        }
    }

    /// Arms the fault at this point of this session, which reconnects `reconnects` times by itself.
    pub(crate) fn arm(
        self,
        server: &TestServer,
        injection_point: &InjectionPoint,
        session: i64,
        reconnects: u64,
    ) -> Armed {
        if matches!(self, Self::ResetBefore | Self::ResetAfter | Self::Restart) {
            server.reset_connections(true);
        }
        let fault = server.fault(injection_point.when(session), self.fault(injection_point));
        let reconnect = match self {
            Self::SwapBefore | Self::SwapAfter => Fault::SwapSession,
            _ => Fault::DelayRequest(Duration::ZERO),
        };
        // Also the next one, in case the client does not wait for the answer to the first.
        let reconnect = server.fault(When::connect().session(session).from_nth(reconnects + 1), reconnect);
        Armed { injected_fault: self, fault, reconnect }
    }
}

impl Display for InjectedFault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// A fault that waits for its injection point.
pub(crate) struct Armed {
    injected_fault: InjectedFault,
    fault: ArmedFault,
    reconnect: ArmedFault,
}

impl Armed {
    pub(crate) async fn hit(&self) {
        self.fault.hit().await;
    }

    /// Waits for a fault that may not strike.
    pub(crate) async fn hit_soon(&self) {
        let _ = tokio::time::timeout(SESSION, self.hit()).await;
    }

    pub(crate) fn has_hit(&self) -> bool {
        self.fault.hits() > 0
    }

    /// Executes the server's part of the fault, and returns when nothing prevents healing any more.
    pub(crate) async fn play(
        &self,
        server_fixture: &ServerFixture,
        actor: Option<&ConnectionManager>,
        act_ended: impl Future<Output = ()>,
    ) -> Result<(), String> {
        let server = &server_fixture.server;
        match self.injected_fault {
            InjectedFault::HoldRequest | InjectedFault::HoldReply => {
                // A round trip of the rival: the server has made progress meanwhile.
                server_fixture.round_trip_of_rival().await?;
            }
            InjectedFault::HoldPastReconnect => {
                server.drop_connections();
                self.at_most(self.reconnect.hit()).await;
            }
            InjectedFault::HoldPastEnd => {
                server.drop_connections();
                // A sent message arrives or is lost within a session timeout: the library relies on this.
                let _ = tokio::time::timeout(SESSION / 2, act_ended).await;
            }
            InjectedFault::StarveBefore | InjectedFault::StarveAfter => {
                server.refuse_connections();
                server.drop_connections();
                let expired = server.wait_until(|machine| machine.sessions().len() <= 1);
                within("the session expired", expired).await?;
                server.accept_connections();
            }
            InjectedFault::ExpireBefore | InjectedFault::ExpireAfter => {
                for session in server_fixture.sessions_of_actor() {
                    server.expire(session);
                }
            }
            InjectedFault::Freeze => {
                server.freeze();
                self.fault.release();
                let noticed = async {
                    let Some(actor) = actor else { return std::future::pending().await };
                    let mut transitions = actor.transitions();
                    while matches!(actor.state(), State::Connected(_)) {
                        transitions.next().await;
                    }
                };
                tokio::select! {
                    () = self.at_most(noticed) => {}
                    () = act_ended => {}
                }
                server.thaw();
            }
            InjectedFault::Restart => server.restart().await.map_err(|error| error.to_string())?,
            _ => {}
        }
        self.fault.release();
        Ok(())
    }

    async fn at_most(&self, event: impl Future<Output = ()>) {
        // Not an assertion: the event may never occur here, and the case continues all the same.
        let _ = tokio::time::timeout(PATIENCE, event).await;
    }
}
