use crate::machine::{Machine, Mode};

/// A command of four letters, sent instead of a connect request.
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
    /// The environment of the server.
    Envi,
    /// Anything else.
    Other([u8; 4]),
}

/// The contents of a summary besides the machine's own numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) server: usize,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

const VERSION: &str = concat!("3.8.0-lockkeeper-testserver-", env!("CARGO_PKG_VERSION"));

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// The keys of the real server. The values say nothing of the machine: no test needs it.
fn envi() -> String {
    let system = [("os.name", std::env::consts::OS), ("os.arch", std::env::consts::ARCH)];
    let java = ["version", "vendor", "home", "class.path", "library.path", "io.tmpdir", "compiler"];
    let unknown = ["os.version", "user.name", "user.home", "user.dir"];
    let memory = ["os.memory.free", "os.memory.max", "os.memory.total"];
    let mut text =
        format!("Environment:\nzookeeper.version={VERSION}, built on unknown\nhost.name=localhost\n");
    text.extend(java.map(|key| format!("java.{key}=<NA>\n")));
    text.extend(system.map(|(key, value)| format!("{key}={value}\n")));
    text.extend(unknown.map(|key| format!("{key}=<NA>\n")));
    text.extend(memory.map(|key| format!("{key}=0MB\n")));
    text
}

impl From<[u8; 4]> for FourLetter {
    fn from(letters: [u8; 4]) -> Self {
        match &letters {
            b"ruok" => Self::Ruok,
            b"srvr" => Self::Srvr,
            b"mntr" => Self::Mntr,
            b"isro" => Self::Isro,
            b"envi" => Self::Envi,
            _ => Self::Other(letters),
        }
    }
}

impl FourLetter {
    /// The text the command is answered with.
    pub(crate) fn answer(self, report: Report<'_>) -> String {
        let is_serving = report.machine.is_serving(report.server);
        match self {
            Self::Ruok => "imok".to_owned(),
            Self::Isro => if is_serving { "rw" } else { "null" }.to_owned(),
            Self::Envi => envi(),
            Self::Srvr | Self::Mntr if !is_serving => NOT_SERVING.to_owned(),
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
    fn mode(&self) -> Mode {
        self.machine.mode(self.server)
    }

    fn srvr(&self) -> String {
        format!(
            "Zookeeper version: {VERSION}\nLatency min/avg/max: 0/0.0/0\nReceived: {}\nSent: {}\n\
             Connections: {}\nOutstanding: 0\nZxid: 0x{:x}\nMode: {}\nNode count: {}\n",
            self.received,
            self.sent,
            self.machine.client_count(self.server),
            self.machine.zxid(),
            self.mode(),
            self.nodes(),
        )
    }

    fn mntr(&self) -> String {
        let lines: [(&str, String); 10] = [
            ("version", VERSION.to_owned()),
            ("server_state", self.mode().to_string()),
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
