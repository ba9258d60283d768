//! The settings of an ensemble, and its start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::Ensemble;
use super::archive::Archive;
use super::between::Between;
use super::install::Installation;
use super::ports::Ports;
use super::secure::{self, ServerTls};
use super::server::{Launch, Server};
use super::watchdog::Watchdog;
use crate::error::HarnessError;

/// A start is tried anew this often, on other ports, if a server ends at once: most likely a port was taken
/// meanwhile.
const TRIES: usize = 3;

/// How to start an [`Ensemble`].
#[derive(Clone, Debug, PartialEq)]
#[must_use = "nothing starts before `start()`"]
pub struct EnsembleBuilder {
    pub(super) servers: usize,
    pub(super) tick: Duration,
    pub(super) min_session_timeout: Option<Duration>,
    pub(super) max_session_timeout: Duration,
    pub(super) durable: bool,
    pub(super) heap_mebibytes: u32,
    pub(super) enduring: bool,
    pub(super) folder: Option<PathBuf>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) counter: Option<(String, i32)>,
    pub(super) apart: bool,
    pub(super) tls: Option<ServerTls>,
    pub(super) sasl_users: Vec<(String, String)>,
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
            enduring: false,
            folder: None,
            properties: BTreeMap::from([("zookeeper.extendedTypesEnabled".to_owned(), "true".to_owned())]),
            settings: BTreeMap::new(),
            counter: None,
            apart: false,
            tls: None,
            sasl_users: Vec::new(),
        }
    }
}

impl EnsembleBuilder {
    /// The number of servers: one, which is standalone, or three. Default 1.
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

    /// Whether a commit waits until it is on the disk (`forceSync`). Default false: it survives a killed
    /// server, not a power cut.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// The heap of each server, in MiB. Default 192.
    pub fn heap_mebibytes(mut self, mebibytes: u32) -> Self {
        self.heap_mebibytes = mebibytes;
        self
    }

    /// Whether the servers run as fast as Java can after a while, as for a measurement, rather than start
    /// quickly. Default false.
    pub fn enduring(mut self, enduring: bool) -> Self {
        self.enduring = enduring;
        self
    }

    /// The parent of the ensemble's own folder. Default: a folder in memory, if the machine has one.
    pub fn folder_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
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

    /// Starts with a node at `path` whose next sequential child gets the number `next`. The data folder is
    /// made by ZooKeeper's own classes, for which a Java compiler is needed. Default: an empty folder.
    pub fn counter(mut self, path: impl Into<String>, next: i32) -> Self {
        self.counter = Some((path.into(), next));
        self
    }

    /// Whether there are relays between the servers, so that they can be cut off from each other:
    /// [`Ensemble::between`]. Default false.
    pub fn apart(mut self, apart: bool) -> Self {
        self.apart = apart;
        self
    }

    /// A single server also takes clients over TLS, at [`Ensemble::secure_connect_string`]. Default: not.
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The users that may authenticate by SASL DIGEST-MD5. Default: none.
    pub fn sasl_user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.sasl_users.push((user.into(), password.into()));
        self
    }

    /// Starts the servers, and waits until they have agreed on a leader.
    ///
    /// # Errors
    ///
    /// [`HarnessError::NotInstalled`] without Java and ZooKeeper, [`HarnessError::Servers`] for a wrong
    /// number; otherwise what kept a server from serving.
    pub async fn start(self) -> Result<Ensemble, HarnessError> {
        if !matches!(self.servers, 1 | 3) {
            return Err(HarnessError::Servers { asked: self.servers });
        }
        let installation = Installation::find()?;
        // One that is to run fast for long need not start quickly.
        let archive = if self.enduring { Archive::Without } else { Archive::of(&installation).await };
        let mut tries = 1;
        loop {
            match self.attempt(&installation, &archive).await {
                Err(HarnessError::EndedAtStart { .. }) if tries < TRIES => tries += 1,
                outcome => return outcome,
            }
        }
    }

    pub(super) async fn attempt(
        &self,
        installation: &Installation,
        archive: &Archive,
    ) -> Result<Ensemble, HarnessError> {
        let ports = Ports::reserve()?;
        let between = if self.apart { Some(Between::start(self.servers, &ports).await?) } else { None };
        let folder = folder(self.folder.as_deref())?;
        let watchdog = Arc::new(Watchdog::over(folder.path())?);
        let mut servers = Vec::new();
        for index in 0..self.servers {
            let home = folder.path().join(format!("server-{index}"));
            self.furnish(&home, index, &ports, between.as_ref())?;
            secure::furnish(&home, self.tls.as_ref(), &self.sasl_users)?;
            if let Some((path, next)) = &self.counter {
                super::counter::prepare(installation, &home.join("data"), path, *next).await?;
            }
            let launch = Launch {
                java: installation.java.clone(),
                arguments: self.arguments(installation, archive, &home),
                home,
                watchdog: Arc::clone(&watchdog),
            };
            servers.push(Server::new(index, ports.client(index), launch));
        }
        let ensemble = Ensemble { servers, between, _folder: folder, ports };
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
}

/// A folder for the data of an ensemble. Default: in memory, if the machine has such a folder.
fn folder(asked: Option<&Path>) -> Result<TempDir, HarnessError> {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("lockkeeper-");
    let folder = if let Some(asked) = asked {
        builder.tempdir_in(asked)
    } else if memory.is_dir() {
        builder.tempdir_in(memory).or_else(|_| builder.tempdir())
    } else {
        builder.tempdir()
    };
    folder.map_err(HarnessError::io("create a folder for an ensemble"))
}
