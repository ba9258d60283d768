//! The servers that are compared on.

use lockkeeper_tests::{Ensemble, Server};

use crate::Outcome;
use crate::machine;

/// How the servers keep what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One server with its data in memory, and no wait for the disk.
    Tmpfs,
    /// One server on a disk with ZooKeeper's defaults: a write waits until it is there.
    Disk,
    /// Three servers with their data in memory.
    Three,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Tmpfs, Self::Disk, Self::Three];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Disk => "disk",
            Self::Three => "three",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Tmpfs => "One server, data on tmpfs, `forceSync=no`",
            Self::Disk => "One server, data on disk, ZooKeeper's defaults",
            Self::Three => "Three servers, data on tmpfs, `forceSync=no`",
        }
    }

    /// Starts the servers.
    pub(crate) async fn start(self) -> Outcome<Ensemble> {
        let builder = Ensemble::builder()
            .enduring(true)
            .heap_mebibytes(1024)
            .tick(std::time::Duration::from_secs(2))
            .durable(self == Self::Disk)
            .property("zookeeper.preAllocSize", "65536");
        let builder = match self {
            Self::Tmpfs => builder,
            Self::Disk => builder.folder_in(machine::built()),
            Self::Three => builder.servers(3),
        };
        Ok(builder.start().await?)
    }
}

/// The ids of the servers' processes, to measure their processor time.
pub(crate) fn pids(ensemble: &Ensemble) -> String {
    let pids: Vec<String> =
        ensemble.servers().iter().filter_map(Server::pid).map(|pid| pid.to_string()).collect();
    pids.join(",")
}
