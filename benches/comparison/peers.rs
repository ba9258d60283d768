//! The compared clients, and how each is started.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::Outcome;
use crate::machine;

/// Debian's package `libcurator-recipes-java` puts the jar here; its manifest names every jar it needs.
const CURATOR_JAR: &str = "/usr/share/java/curator-recipes.jar";

/// That of `libcurator-discovery-java`.
const DISCOVERY_JAR: &str = "/usr/share/java/curator-x-discovery.jar";

/// So that Curator's complaints are seen.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// Debian's package `redis-server` puts the program here.
const REDIS_SERVER: &str = "/usr/bin/redis-server";

/// The same kazoo for all runs.
const KAZOO: &str =
    "kazoo==2.11.0 --hash=sha256:aa6be17159540dae4087661b8d4e24c7b58d4dc26170a2d5b8468b06712d84a9\n";

/// The client under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Lockkeeper,
    Curator,
    Kazoo,
    /// A crate that limits one process, without servers.
    Governor,
    /// A script on Redis.
    Redis,
}

impl Peer {
    pub(crate) const ALL: [Self; 5] =
        [Self::Lockkeeper, Self::Curator, Self::Kazoo, Self::Governor, Self::Redis];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lockkeeper => "lockkeeper",
            Self::Curator => "curator",
            Self::Kazoo => "kazoo",
            Self::Governor => "governor",
            Self::Redis => "redis",
        }
    }

    /// Builds what has to be built.
    pub(crate) async fn prepare(self) -> Outcome<()> {
        let folder = folder();
        match self {
            Self::Lockkeeper | Self::Governor | Self::Redis => Ok(()),
            Self::Curator => {
                let source = sources().join("CuratorBench.java");
                let mut compiler = Command::new("javac");
                compiler.args(["--release", "11", "-encoding", "UTF-8", "-cp"]);
                compiler.arg(format!("{CURATOR_JAR}:{DISCOVERY_JAR}")).arg("-d");
                succeed(compiler.arg(folder.join("classes")).arg(source)).await
            }
            Self::Kazoo => {
                std::fs::write(folder.join("requirements.txt"), KAZOO)?;
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--upgrade"]);
                pip.arg("--target").arg(folder.join("kazoo"));
                succeed(pip.arg("--requirement").arg(folder.join("requirements.txt"))).await
            }
        }
    }

    /// The program that runs a load, still without its arguments.
    pub(crate) fn command(self) -> Command {
        match self {
            Self::Lockkeeper | Self::Governor => {
                Command::new(machine::built().join("release/lockkeeper-bench"))
            }
            Self::Redis => Command::new(machine::built().join("release/lockkeeper-redis-bench")),
            Self::Curator => {
                let mut command = Command::new("java");
                command
                    .args(["-Xmx1g", "-Djava.net.preferIPv4Stack=true", "-XX:-UsePerfData"])
                    // The names of a long queue do not fit into the answer that Java's client accepts.
                    .arg("-Djute.maxbuffer=8388608")
                    .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
                    .arg("-cp")
                    .arg(format!(
                        "{}:{CURATOR_JAR}:{DISCOVERY_JAR}:{LOGGER_JAR}",
                        folder().join("classes").display()
                    ))
                    .arg("CuratorBench");
                command
            }
            Self::Kazoo => {
                let mut command = Command::new("python3");
                command.env("PYTHONPATH", folder().join("kazoo"));
                command.arg(sources().join("kazoo_bench.py"));
                command
            }
        }
    }
}

fn sources() -> PathBuf {
    machine::repository().join("benches/peers")
}

fn folder() -> PathBuf {
    machine::built().join("peers")
}

async fn succeed(command: &mut Command) -> Outcome<()> {
    let described = format!("{:?}", command.as_std().get_program());
    let output = command.output().await.map_err(|error| format!("{described}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{described} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Whether everything that the peers need besides is there; what is not is named.
pub(crate) fn missing(peers: &[Peer]) -> Option<&'static str> {
    let jars = [
        (CURATOR_JAR, "the package libcurator-recipes-java"),
        (DISCOVERY_JAR, "the package libcurator-discovery-java"),
    ];
    let missing = jars.into_iter().find(|(jar, _)| !Path::new(jar).exists());
    let of_curator = missing.filter(|_| peers.contains(&Peer::Curator)).map(|(_, package)| package);
    let lacks_redis = peers.contains(&Peer::Redis) && !Path::new(REDIS_SERVER).exists();
    of_curator.or_else(|| lacks_redis.then_some("the package redis-server"))
}
