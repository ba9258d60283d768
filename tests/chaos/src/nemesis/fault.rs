use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use crate::history::Lane;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL, and later a start on the same data.
    KillServer(Role),
    /// An orderly end, and later a start.
    RestartServer,
    /// SIGSTOP and SIGCONT.
    PauseServer(Role),
    /// Cut off from its peers, but not from its clients.
    IsolateServer(Role),
    /// Its peers do not hear the leader.
    LeaderUnheard,
    /// The leader does not hear its peers.
    LeaderDeaf,
    /// No server hears any other.
    Scatter,

    /// All connections of a client end, and new ones are refused.
    CutClient,
    /// They end, and new ones are welcome.
    BreakLinks,
    /// Now a request of a client is lost, now the reply to one that was done, and the connection with it.
    LoseMessages,
    /// The servers do not hear a client; what it said arrives late.
    ClientUnheard,
    /// A client does not hear the servers; what they said arrives late.
    ClientDeaf,
    /// A client cannot reach one of the servers.
    LoseServer,
    /// A client is cut off until its session has expired.
    ExpireSession,
    /// A foreign client closes a client's session.
    CloseSession,
    /// SIGSTOP for longer than the session timeout.
    FreezeClient,
    /// SIGKILL, and later a new process.
    KillClient,

    /// Nodes of the touched locks are deleted by hand.
    DeleteNodes,
    /// More requests than a server accepts at a time.
    FillQueue,
}

/// Which server is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Leader,
    Follower,
    /// The only one.
    Only,
}

const ALL: [Fault; 24] = [
    Fault::KillServer(Role::Leader),
    Fault::KillServer(Role::Follower),
    Fault::KillServer(Role::Only),
    Fault::RestartServer,
    Fault::PauseServer(Role::Leader),
    Fault::PauseServer(Role::Follower),
    Fault::PauseServer(Role::Only),
    Fault::IsolateServer(Role::Leader),
    Fault::IsolateServer(Role::Follower),
    Fault::LeaderUnheard,
    Fault::LeaderDeaf,
    Fault::Scatter,
    Fault::CutClient,
    Fault::BreakLinks,
    Fault::LoseMessages,
    Fault::ClientUnheard,
    Fault::ClientDeaf,
    Fault::LoseServer,
    Fault::ExpireSession,
    Fault::CloseSession,
    Fault::FreezeClient,
    Fault::KillClient,
    Fault::DeleteNodes,
    Fault::FillQueue,
];

impl Fault {
    /// The kinds that can strike an ensemble of this size and its clients.
    pub(crate) fn all(servers: usize) -> impl Iterator<Item = Self> {
        ALL.into_iter().filter(move |fault| match fault {
            Self::KillServer(role) | Self::PauseServer(role) | Self::IsolateServer(role) => {
                (*role == Role::Only) == (servers == 1)
            }
            Self::LeaderUnheard | Self::LeaderDeaf | Self::Scatter | Self::LoseServer => servers > 1,
            _ => true,
        })
    }

    pub(crate) fn lane(self) -> Lane {
        match self {
            Self::KillServer(_)
            | Self::RestartServer
            | Self::PauseServer(_)
            | Self::IsolateServer(_)
            | Self::LeaderUnheard
            | Self::LeaderDeaf
            | Self::Scatter => Lane::Servers,
            Self::DeleteNodes | Self::FillQueue => Lane::Foreign,
            _ => Lane::Clients,
        }
    }

    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillServer(Role::Leader) => "kill leader",
            Self::KillServer(Role::Follower) => "kill follower",
            Self::KillServer(Role::Only) => "kill server",
            Self::RestartServer => "restart server",
            Self::PauseServer(Role::Leader) => "pause leader",
            Self::PauseServer(Role::Follower) => "pause follower",
            Self::PauseServer(Role::Only) => "pause server",
            Self::IsolateServer(Role::Leader) => "isolate leader",
            Self::IsolateServer(_) => "isolate follower",
            Self::LeaderUnheard => "leader unheard",
            Self::LeaderDeaf => "leader deaf",
            Self::Scatter => "scatter servers",
            Self::CutClient => "cut client",
            Self::BreakLinks => "break links",
            Self::LoseMessages => "lose messages",
            Self::ClientUnheard => "client unheard",
            Self::ClientDeaf => "client deaf",
            Self::LoseServer => "lose server",
            Self::ExpireSession => "expire session",
            Self::CloseSession => "close session",
            Self::FreezeClient => "freeze client",
            Self::KillClient => "kill client",
            Self::DeleteNodes => "delete nodes",
            Self::FillQueue => "fill queue",
        }
    }

    /// The duration: sometimes too short to be noticed, and sometimes longer.
    pub(crate) fn lasting(self, session: Duration, rng: &mut StdRng) -> Duration {
        let share = match self {
            Self::FreezeClient => rng.random_range(1.1..1.6),
            Self::CutClient | Self::ClientUnheard | Self::ClientDeaf => rng.random_range(0.2..1.5),
            Self::KillClient | Self::BreakLinks | Self::KillServer(_) | Self::RestartServer => {
                rng.random_range(0.0..0.4)
            }
            _ => rng.random_range(0.1..0.8),
        };
        session.mul_f64(share)
    }

    /// How long there is to be peace in its lane before it. A new leader gives every session its whole time
    /// once more: with less than that between two faults of servers, a dead client would block the others for
    /// ever.
    pub(crate) fn peace(self, session: Duration, rng: &mut StdRng) -> Duration {
        let share = match self.lane() {
            Lane::Servers => rng.random_range(0.2..1.8),
            Lane::Clients | Lane::Foreign => rng.random_range(0.0..0.4),
        };
        session.mul_f64(share)
    }
}
