use crate::machine::Machine;

/// A command of four letters, sent in place of a connect request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FourLetter {
    /// "Are you ok?"
    Ruok,
    /// A summary for people.
    Srvr,
    /// The same for machines.
    Mntr,
    /// Whether the server is read-only.
    Isro,
    /// Anything else.
    Other([u8; 4]),
}

/// What a summary tells besides the machine's own numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) server: usize,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

const VERSION: &str = concat!("3.8.0-lockkeeper-testserver-", env!("CARGO_PKG_VERSION"));

impl From<[u8; 4]> for FourLetter {
    fn from(letters: [u8; 4]) -> Self {
        match &letters {
            b"ruok" => Self::Ruok,
            b"srvr" => Self::Srvr,
            b"mntr" => Self::Mntr,
            b"isro" => Self::Isro,
            _ => Self::Other(letters),
        }
    }
}

impl FourLetter {
    /// The text the command is answered with.
    pub(crate) fn answer(self, report: Report<'_>) -> String {
        match self {
            Self::Ruok => "imok".to_owned(),
            Self::Isro => "rw".to_owned(),
            Self::Srvr => report.srvr(),
            Self::Mntr => report.mntr(),
            Self::Other(letters) => {
                let name = String::from_utf8_lossy(&letters);
                format!("{name} is not executed because it is not in the whitelist.\n")
            }
        }
    }
}

impl Report<'_> {
    fn state(&self) -> &'static str {
        match (self.machine.servers(), self.server) {
            (1, _) => "standalone",
            (_, 0) => "leader",
            _ => "follower",
        }
    }

    fn srvr(&self) -> String {
        format!(
            "Zookeeper version: {VERSION}\nLatency min/avg/max: 0/0.0/0\nReceived: {}\nSent: {}\nConnections: {}\n\
             Outstanding: 0\nZxid: 0x{:x}\nMode: {}\nNode count: {}\n",
            self.received,
            self.sent,
            self.machine.client_count(self.server),
            self.machine.zxid(),
            self.state(),
            self.nodes(),
        )
    }

    fn mntr(&self) -> String {
        let lines: [(&str, String); 10] = [
            ("version", VERSION.to_owned()),
            ("server_state", self.state().to_owned()),
            ("packets_received", self.received.to_string()),
            ("packets_sent", self.sent.to_string()),
            ("num_alive_connections", self.machine.client_count(self.server).to_string()),
            ("outstanding_requests", "0".to_owned()),
            ("znode_count", self.nodes().to_string()),
            ("watch_count", self.machine.watch_count(self.server).to_string()),
            ("ephemerals_count", self.machine.tree().ephemeral_count().to_string()),
            ("approximate_data_size", self.machine.tree().approximate_size().to_string()),
        ];
        lines.iter().map(|(key, value)| format!("zk_{key}\t{value}\n")).collect()
    }

    /// The real server counts the root twice, once for each of its names.
    fn nodes(&self) -> usize {
        self.machine.tree().len() + 1
    }
}
