use std::fmt::{self, Display, Formatter};

use super::Machine;

/// The mode of a server in its ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The only one.
    Standalone,
    /// The one that keeps the sessions.
    Leader,
    /// One of the others.
    Follower,
    /// It runs, but too many others do not.
    NotServing,
    /// It does not run.
    Stopped,
}

impl Display for Mode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Standalone => "standalone",
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::NotServing => "not serving",
            Self::Stopped => "stopped",
        })
    }
}

impl Machine {
    /// The mode of that server.
    pub fn mode(&self, server: usize) -> Mode {
        match self.leader() {
            _ if !self.is_running(server) => Mode::Stopped,
            None => Mode::NotServing,
            Some(_) if self.servers() == 1 => Mode::Standalone,
            Some(leader) if leader == server => Mode::Leader,
            Some(_) => Mode::Follower,
        }
    }
}
