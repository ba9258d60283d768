//! The servers that are compared on.

use std::time::Duration;

use lockkeeper_redis_tests::RedisServer;
use lockkeeper_tests::{Ensemble, Server};

use crate::Outcome;
use crate::machine;
use crate::peers::Peer;
use crate::relay::Relay;

/// How the servers keep what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One server with its data in memory, and no wait for the disk.
    Tmpfs,
    /// One server on a disk with ZooKeeper's defaults: a write waits until it is there.
    Disk,
    /// Three servers with their data in memory.
    Three,
    /// The first one, behind a network.
    Far,
}

/// How long a byte takes to the servers that are far, and back from them.
const FAR: Duration = Duration::from_millis(2);

/// Servers that run, and the way to them.
pub(crate) struct Servers {
    pub(crate) kind: Kind,
    ensemble: Ensemble,
    connect_string: String,
    /// For the limits on Redis, if it is a peer.
    redis: Option<(RedisServer, String)>,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Tmpfs, Self::Disk, Self::Three, Self::Far];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Disk => "disk",
            Self::Three => "three",
            Self::Far => "far",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Tmpfs => "One server, data on tmpfs, `forceSync=no`",
            Self::Disk => "One server, data on disk, ZooKeeper's defaults",
            Self::Three => "Three servers, data on tmpfs, `forceSync=no`",
            Self::Far => "A network: one server on tmpfs, 2 ms away each way",
        }
    }

    /// Starts the servers.
    pub(crate) async fn start(self, peers: &[Peer]) -> Outcome<Servers> {
        let builder = Ensemble::builder()
            .enduring(true)
            .heap_mebibytes(1024)
            .tick(Duration::from_secs(2))
            .durable(self == Self::Disk)
            .property("zookeeper.preAllocSize", "65536");
        let builder = match self {
            Self::Tmpfs | Self::Far => builder,
            Self::Disk => builder.folder_in(machine::built()),
            Self::Three => builder.servers(3),
        };
        let ensemble = builder.start().await?;
        let direct = ensemble.connect_string();
        let away = |direct: String| -> Outcome<String> {
            match self {
                Self::Far => Ok(Relay::start(direct.parse()?, FAR)?.connect_string()),
                _ => Ok(direct),
            }
        };
        let connect_string = away(direct)?;
        let redis = match peers.contains(&Peer::Redis) {
            true => {
                let server = RedisServer::start(&[]).await?;
                let url = format!("redis://{}", away(format!("127.0.0.1:{}", server.port()))?);
                Some((server, url))
            }
            false => None,
        };
        Ok(Servers { kind: self, ensemble, connect_string, redis })
    }
}

impl Servers {
    /// Where this peer connects to.
    pub(crate) fn connect_string(&self, peer: Peer) -> Outcome<&str> {
        match (peer, &self.redis) {
            (Peer::Redis, Some((_, url))) => Ok(url),
            (Peer::Redis, None) => Err("Redis was not started".into()),
            _ => Ok(&self.connect_string),
        }
    }

    /// The ids of the servers' processes, to measure their processor time.
    pub(crate) fn pids(&self) -> String {
        let pids: Vec<String> =
            self.ensemble.servers().iter().filter_map(Server::pid).map(|pid| pid.to_string()).collect();
        pids.join(",")
    }
}
