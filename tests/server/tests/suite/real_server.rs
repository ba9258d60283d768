//! ZooKeeper on a loopback port, for as long as a test runs.

use std::fs::{File, write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Debian's ZooKeeper and, through its manifest, everything it needs.
pub(crate) const JAR: &str = "/usr/share/java/zookeeper.jar";

/// With a logger, which comes with Debian's package.
const CLASS_PATH: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

/// Longer than servers take to start, and to elect a leader, on a busy machine. A vote that is lost is sent
/// again after up to a minute (`FastLeaderElection.maxNotificationInterval`).
const PATIENCE: Duration = Duration::from_secs(150);

pub(crate) struct RealServer {
    process: Option<Child>,
    /// Of `java`.
    arguments: Vec<String>,
    pub(crate) address: String,
    dir: TempDir,
}

/// Whether tests against the real server are left out, because it is not there and that was said to be fine.
///
/// Fails when it is missing, unless its tests are left out on purpose.
pub(crate) fn left_out() -> bool {
    let java = Command::new("java").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if java.is_ok_and(|status| status.success()) && Path::new(JAR).exists() {
        return false;
    }
    let excused = std::env::var("LOCKKEEPER_WITHOUT_ZOOKEEPER").is_ok_and(|value| value == "1");
    assert!(
        excused,
        "this test compares with the real server: install it (apt-get install zookeeper), or set \
         LOCKKEEPER_WITHOUT_ZOOKEEPER=1 to leave the comparison out"
    );
    eprintln!("LEFT OUT: no ZooKeeper here, so nothing was compared with the real server");
    true
}

impl RealServer {
    /// Starts Debian's server with that tick in milliseconds and waits until it serves.
    pub(crate) async fn start(tick: u32, properties: &[&str]) -> Self {
        Self::start_with(tempfile::tempdir().unwrap(), tick, properties).await
    }

    /// The same on a directory that already holds a snapshot.
    pub(crate) async fn start_with(dir: TempDir, tick: u32, properties: &[&str]) -> Self {
        let mut server = Self::prepare(dir, tick, properties, "server.ZooKeeperServerMain", free_port(), "");
        server.launch();
        server.serving().await;
        server
    }

    /// The same of the ZooKeeper whose jars are in the folder that `LOCKKEEPER_ZOOKEEPER` names, if it names
    /// one.
    pub(crate) async fn start_chosen(tick: u32, properties: &[&str]) -> Self {
        let main = "server.ZooKeeperServerMain";
        let mut server = Self::prepare(tempfile::tempdir().unwrap(), tick, properties, main, free_port(), "");
        if let Some(folder) = std::env::var_os("LOCKKEEPER_ZOOKEEPER") {
            // A relative path counts from the root of the repository.
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
            let jars = format!("{}/*", folder.display());
            server
                .arguments
                .iter_mut()
                .filter(|argument| *argument == CLASS_PATH)
                .for_each(|path| path.clone_from(&jars));
        }
        server.launch();
        server.serving().await;
        server
    }

    /// The first two numbers of its version.
    pub(crate) async fn version(&self) -> (u32, u32) {
        let report = four_letters(&self.address, "srvr").await.unwrap();
        let numbers = report.strip_prefix("Zookeeper version: ").unwrap();
        let mut numbers = numbers.split(['.', '-']).map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// Three servers of one ensemble.
    pub(crate) async fn start_three(tick: u32, properties: &[&str]) -> Vec<Self> {
        let ports = [free_port(), free_port(), free_port()];
        let member =
            |(id, port)| format!("server.{id}=127.0.0.1:{}:{};127.0.0.1:{port}\n", free_port(), free_port());
        let members: String = (1..=3).zip(ports).map(member).collect();
        // A busy machine is no reason for an election; that a leader was killed is seen by its connections.
        // And a session may be silent while a server starts.
        let config = format!("initLimit=100\nsyncLimit=100\nmaxSessionTimeout=60000\n{members}");
        let one = |(id, port): (usize, u16)| {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path().join("myid"), id.to_string()).unwrap();
            Self::prepare(dir, tick, properties, "server.quorum.QuorumPeerMain", port, &config)
        };
        let mut servers: Vec<Self> = (1..=3).zip(ports).map(one).collect();
        // All together: none of three serves before another is there.
        servers.iter_mut().for_each(Self::launch);
        for server in &servers {
            server.serving().await;
        }
        servers
    }

    fn prepare(dir: TempDir, tick: u32, properties: &[&str], main: &str, port: u16, more: &str) -> Self {
        let config = format!(
            "tickTime={tick}\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
             admin.enableServer=false\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n{more}",
            dir.path().display()
        );
        let config_path = dir.path().join("zoo.cfg");
        write(&config_path, config).unwrap();
        let java = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no"];
        let properties = properties.iter().map(|property| format!("-D{property}"));
        let program = ["-cp".to_owned(), CLASS_PATH.to_owned(), format!("org.apache.zookeeper.{main}")];
        let arguments = java.map(str::to_owned).into_iter().chain(properties).chain(program);
        let arguments = arguments.chain([config_path.display().to_string()]).collect();
        Self { process: None, arguments, address: format!("127.0.0.1:{port}"), dir }
    }

    pub(crate) fn launch(&mut self) {
        let log = File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let mut java = Command::new("java");
        java.args(&self.arguments).stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(java.spawn().unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// The mode of the server once it serves: `standalone`, `leader` or `follower`.
    pub(crate) async fn serving(&self) -> String {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let report = four_letters(&self.address, "srvr").await.unwrap_or_default();
            if let Some(mode) = report.lines().find_map(|line| line.strip_prefix("Mode: ")) {
                return mode.to_owned();
            }
            // No state of ours to wait on: another process is starting.
            sleep(Duration::from_millis(50)).await;
        }
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        panic!("ZooKeeper did not start; its log:\n{log}");
    }

    /// How many requests it has taken and not answered, as it says.
    pub(crate) async fn outstanding(&self) -> Option<u64> {
        let report = four_letters(&self.address, "srvr").await?;
        report.lines().find_map(|line| line.strip_prefix("Outstanding: "))?.parse().ok()
    }
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that no outgoing connection can get: while the server is not yet there, a connection to a port of
/// the ephemeral range may get that very port as its own, connect to itself, and keep the server from
/// listening. Nor does an embedded server take it, or another real one of this process.
fn free_port() -> u16 {
    static TURN: LazyLock<AtomicU16> = LazyLock::new(|| AtomicU16::new(rand::random()));
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1000).map(|_| 26_000 + TURN.fetch_add(1, Ordering::Relaxed) % 1000).find(free).unwrap()
}

/// The answer to a four-letter command, if it comes at once.
pub(crate) async fn four_letters(address: &str, command: &str) -> Option<String> {
    timeout(Duration::from_secs(5), ask(address, command)).await.ok()?
}

async fn ask(address: &str, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(command.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}
