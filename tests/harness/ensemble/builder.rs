//! The settings of an ensemble, and its start.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::Ensemble;
use super::install::Installation;
use super::ports::Ports;
use super::server::{Launch, Server};
use super::watchdog::Watchdog;
use crate::error::HarnessError;

/// A start is tried anew this often, on other ports, if a server ends at once: most likely a port was taken meanwhile.
const TRIES: usize = 3;

/// How to start an [`Ensemble`].
#[derive(Clone, Debug)]
#[must_use = "nothing starts before `start()`"]
pub struct EnsembleBuilder {
    servers: usize,
    tick: Duration,
    min_session_timeout: Option<Duration>,
    max_session_timeout: Duration,
    durable: bool,
    heap_mebibytes: u32,
    properties: BTreeMap<String, String>,
    settings: BTreeMap<String, String>,
}

impl Default for EnsembleBuilder {
    fn default() -> Self {
        Self {
            servers: 1,
            tick: Duration::from_millis(500),
            min_session_timeout: None,
            max_session_timeout: Duration::from_secs(60),
            durable: false,
            heap_mebibytes: 192,
            properties: BTreeMap::from([("zookeeper.extendedTypesEnabled".to_owned(), "true".to_owned())]),
            settings: BTreeMap::new(),
        }
    }
}

impl EnsembleBuilder {
    /// How many servers: one, which stands alone, or three. Default 1.
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    /// ZooKeeper's `tickTime`. Default 500 ms.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The least session timeout the servers grant. Default two ticks.
    pub fn min_session_timeout(mut self, timeout: Duration) -> Self {
        self.min_session_timeout = Some(timeout);
        self
    }

    /// The greatest session timeout the servers grant. Default 60 s.
    pub fn max_session_timeout(mut self, timeout: Duration) -> Self {
        self.max_session_timeout = timeout;
        self
    }

    /// Whether a commit waits until it is on the disk (`forceSync`). Default false: it survives a killed server, not a power cut.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The heap of each server, in MiB. Default 192.
    pub fn heap_mebibytes(mut self, mebibytes: u32) -> Self {
        self.heap_mebibytes = mebibytes;
        self
    }

    /// Whether nodes may have a time to live. Default true.
    pub fn extended_types(self, enabled: bool) -> Self {
        self.property("zookeeper.extendedTypesEnabled", enabled.to_string())
    }

    /// A Java system property of each server, such as `znode.container.checkIntervalMs`.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// A line of each server's `zoo.cfg`, which prevails over the harness's own.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.insert(name.into(), value.into());
        self
    }

    /// Starts the servers, and waits until they have agreed on a leader.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotInstalled`] without Java and ZooKeeper; otherwise what kept a server from serving.
    pub async fn start(self) -> Result<Ensemble, HarnessError> {
        let installation = Installation::find()?;
        let mut tries = 1;
        loop {
            match self.attempt(&installation).await {
                Err(HarnessError::EndedAtStart { .. }) if tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, installation: &Installation) -> Result<Ensemble, HarnessError> {
        let ports = Ports::reserve()?;
        let folder = folder()?;
        let watchdog = Arc::new(Watchdog::over(folder.path())?);
        let mut servers = Vec::new();
        for index in 0..self.servers {
            let home = folder.path().join(format!("server-{index}"));
            self.furnish(&home, index, &ports)?;
            let launch = Launch {
                java: installation.java.clone(),
                arguments: self.arguments(installation, &home),
                home,
                watchdog: Arc::clone(&watchdog),
            };
            servers.push(Server::new(index, ports.client(index), launch));
        }
        let ensemble = Ensemble { servers, _folder: folder, _ports: ports };
        // All together: none of three can serve before another is there.
        for server in ensemble.servers() {
            server.launch()?;
        }
        for server in ensemble.servers() {
            server.serves().await?;
        }
        ensemble.settled().await?;
        Ok(ensemble)
    }

    /// Writes the configuration of server `index` into `home`.
    fn furnish(&self, home: &Path, index: usize, ports: &Ports) -> Result<(), HarnessError> {
        let data = home.join("data");
        fs::create_dir_all(&data).map_err(HarnessError::io("create a data folder"))?;
        let client = ports.client(index);
        let min = self.min_session_timeout.unwrap_or(self.tick * 2);
        let mut settings = BTreeMap::from([
            ("tickTime".to_owned(), self.tick.as_millis().to_string()),
            ("minSessionTimeout".to_owned(), min.as_millis().to_string()),
            ("maxSessionTimeout".to_owned(), self.max_session_timeout.as_millis().to_string()),
            ("dataDir".to_owned(), data.display().to_string()),
            ("clientPort".to_owned(), client.port().to_string()),
            ("clientPortAddress".to_owned(), client.ip().to_string()),
            ("maxClientCnxns".to_owned(), "0".to_owned()),
            ("4lw.commands.whitelist".to_owned(), "*".to_owned()),
            ("admin.enableServer".to_owned(), "false".to_owned()),
        ]);
        if self.servers > 1 {
            fs::write(data.join("myid"), (index + 1).to_string()).map_err(HarnessError::io("write myid"))?;
            settings.insert("initLimit".to_owned(), "40".to_owned());
            // How soon followers miss a paused leader: 4 ticks.
            settings.insert("syncLimit".to_owned(), "4".to_owned());
            for peer in 0..self.servers {
                let (quorum, election) = (ports.quorum(peer), ports.election(peer));
                let address = format!("{}:{}:{}", quorum.ip(), quorum.port(), election.port());
                settings.insert(format!("server.{}", peer + 1), address);
            }
        }
        settings.extend(self.settings.clone());
        let lines: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(home.join("zoo.cfg"), lines).map_err(HarnessError::io("write zoo.cfg"))
    }

    fn arguments(&self, installation: &Installation, home: &Path) -> Vec<String> {
        let mut arguments: Vec<String> = [
            // A server of a test lives for seconds: start quickly, rather than run fast later.
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            "-Xss512k",
            // Or a killed server leaves a file in /tmp/hsperfdata_*.
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            "-Djava.net.preferIPv4Stack=true",
            "-Dzookeeper.jmx.log4j.disable=true",
            "-Dzookeeper.preAllocSize=1024",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
        ]
        .map(str::to_owned)
        .into();
        arguments.push(format!("-Xmx{}m", self.heap_mebibytes));
        arguments.push(format!("-Dzookeeper.forceSync={}", if self.durable { "yes" } else { "no" }));
        arguments.extend(self.properties.iter().map(|(name, value)| format!("-D{name}={value}")));
        arguments.extend(["-cp".to_owned(), installation.class_path.clone()]);
        arguments.push("org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned());
        arguments.push(home.join("zoo.cfg").display().to_string());
        arguments
    }
}

/// A folder for the data of an ensemble, in memory if the machine has such a place.
fn folder() -> Result<TempDir, HarnessError> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("lockkeeper-");
    let folder = if memory.is_dir() {
        builder.tempdir_in(memory).or_else(|_| builder.tempdir())
    } else {
        builder.tempdir()
    };
    folder.map_err(HarnessError::io("create a folder for an ensemble"))
}
