//! The Java program that drives Curator, compiled on the machine it runs on.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::error::PeerError;

const SOURCE: &str = include_str!("../../peers/java/CuratorPeer.java");
const CLASS: &str = "CuratorPeer";

/// Debian's package `libcurator-recipes-java` puts the jar here; its manifest names every jar it needs.
const CURATOR_JAR: &str = "/usr/share/java/curator-recipes.jar";

/// So that Curator's complaints are seen. Comes with `libslf4j-java`, which Curator's package asks for.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// The compiled driver.
#[derive(Debug)]
pub(super) struct Driver {
    classes: PathBuf,
}

impl Driver {
    /// Compiles the driver, unless this process or an earlier one has.
    pub(super) async fn compiled() -> Result<&'static Self, PeerError> {
        static DRIVER: OnceCell<Driver> = OnceCell::const_new();
        DRIVER.get_or_try_init(Self::compile).await
    }

    /// Starts the driver, which connects to `servers` at once.
    pub(super) fn command(&self, servers: &str, session_timeout: Duration) -> Command {
        let mut command = Command::new(tool("java"));
        command
            // It lives for seconds: start quickly, rather than run fast later.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xss512k", "-Xmx96m"])
            // Or a killed one leaves a file in /tmp/hsperfdata_*.
            .args(["-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .arg("-cp")
            .arg(format!("{}:{CURATOR_JAR}:{LOGGER_JAR}", self.classes.display()))
            .arg(CLASS)
            .arg(servers)
            .arg(session_timeout.as_millis().to_string());
        command
    }

    /// The classes lie beside the test's own program, among what the build makes, and are made anew when the source
    /// or Curator changes. So there is nothing to clean up, and many test processes compile once.
    async fn compile() -> Result<Self, PeerError> {
        let jar = fs::canonicalize(CURATOR_JAR).map_err(|_| not_installed(CURATOR_JAR))?;
        let program = env::current_exe().map_err(PeerError::io("find the test's own program"))?;
        let beside = program.parent().unwrap_or_else(|| Path::new("."));
        let mut hasher = DefaultHasher::new();
        (SOURCE, jar).hash(&mut hasher);
        let classes = beside.join(format!("curator-peer-{:016x}", hasher.finish()));
        if !classes.is_dir() {
            Self::compile_into(&classes, beside).await?;
        }
        Ok(Self { classes })
    }

    async fn compile_into(classes: &Path, beside: &Path) -> Result<(), PeerError> {
        let folder = tempfile::Builder::new().prefix("curator-peer-").tempdir_in(beside);
        let folder = folder.map_err(PeerError::io("create a folder for the Java driver"))?;
        let source = folder.path().join(CLASS).with_extension("java");
        fs::write(&source, SOURCE).map_err(PeerError::io("write the Java driver"))?;
        let made = folder.path().join("classes");
        let compiler = Command::new(tool("javac"))
            // For whichever Java is the machine's default: it may be older than the compiler.
            .args(["--release", "11", "-encoding", "UTF-8", "-cp", CURATOR_JAR, "-d"])
            .args([&made, &source])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let compiler = compiler.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_installed("the command `javac`"),
            _ => PeerError::io("run javac")(error),
        })?;
        if !compiler.status.success() {
            let output = String::from_utf8_lossy(&compiler.stderr).into_owned();
            return Err(PeerError::NotCompiled { output });
        }
        match fs::rename(&made, classes) {
            // Another process was quicker, with the same.
            Err(_) if classes.is_dir() => Ok(()),
            renamed => renamed.map_err(PeerError::io("move the Java driver to its folder")),
        }
    }
}

pub(super) fn not_installed(missing: &str) -> PeerError {
    PeerError::NotInstalled { missing: missing.to_owned() }
}

/// A program of the JDK: that of `JAVA_HOME`, or else the one on the `PATH`.
fn tool(name: &str) -> PathBuf {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin").join(name));
    home.filter(|program| program.is_file()).unwrap_or_else(|| name.into())
}
