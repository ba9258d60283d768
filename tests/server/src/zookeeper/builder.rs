use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::installation::Installation;
use super::server::Launch;
use super::{ZooKeeper, ZooKeeperError};
use crate::server::free_port;

/// Options of a real server to be started.
#[derive(Clone, Debug)]
#[must_use]
pub struct ZooKeeperBuilder {
    jars: Option<PathBuf>,
    tick: Duration,
    settings: BTreeMap<String, String>,
}

impl Default for ZooKeeperBuilder {
    fn default() -> Self {
        Self { jars: None, tick: Duration::from_millis(500), settings: BTreeMap::new() }
    }
}

impl ZooKeeperBuilder {
    /// The folder of the jars. Default: that of the variable `ZOOKEEPER_JARS`, or Debian's package.
    pub fn jars(mut self, folder: impl Into<PathBuf>) -> Self {
        self.jars = Some(folder.into());
        self
    }

    /// The server's `tickTime`. Sessions may last from 2 to 20 ticks. Default 500 ms, so that a test sees a
    /// session expire soon; a client's own setting must not be shorter.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// A line of `zoo.cfg`, such as `("maxClientCnxns", "10")`.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Starts the server, and waits until it serves.
    ///
    /// # Errors
    ///
    /// [`ZooKeeperError::NotInstalled`] says what to install. [`ZooKeeperError::Ended`] has the end of the
    /// server's log, and [`ZooKeeperError::Silent`] its name.
    pub async fn start(self) -> Result<ZooKeeper, ZooKeeperError> {
        let installation = Installation::find(self.jars.as_deref())?;
        let folder = tempfile::Builder::new().prefix("zookeeper-").tempdir();
        let folder = folder.map_err(ZooKeeperError::io("create a folder for the server"))?;
        let port = free_port().map_err(ZooKeeperError::io("find a free port"))?;
        self.furnish(folder.path(), port).map_err(ZooKeeperError::io("write the configuration"))?;
        let arguments = arguments(&installation, folder.path());
        ZooKeeper::launched(Launch { java: installation.java, arguments, port }, folder).await
    }

    fn furnish(&self, folder: &Path, port: u16) -> std::io::Result<()> {
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let mut settings = BTreeMap::from([
            ("tickTime".to_owned(), self.tick.as_millis().to_string()),
            ("dataDir".to_owned(), data.display().to_string()),
            ("clientPort".to_owned(), port.to_string()),
            ("clientPortAddress".to_owned(), "127.0.0.1".to_owned()),
            ("4lw.commands.whitelist".to_owned(), "*".to_owned()),
            ("admin.enableServer".to_owned(), "false".to_owned()),
        ]);
        settings.extend(self.settings.clone());
        let lines: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        fs::write(folder.join("zoo.cfg"), lines)
    }
}

/// The arguments of `java`: for a server that lives for seconds, and whose data nobody needs after a crash.
fn arguments(installation: &Installation, folder: &Path) -> Vec<String> {
    let fixed = [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xmx256m",
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        "-Dzookeeper.jmx.log4j.disable=true",
        "-Dzookeeper.forceSync=no",
        "-cp",
        &installation.class_path,
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
    ];
    let configuration = folder.join("zoo.cfg").display().to_string();
    fixed.into_iter().map(str::to_owned).chain([configuration]).collect()
}
