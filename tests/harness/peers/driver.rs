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
use crate::jars::JarFolder;
use crate::version::Version;

/// The main class, and the others, with their sources.
const SOURCES: [(&str, &str); 6] = [
    (CLASS, include_str!("../../peers/java/CuratorPeer.java")),
    ("Caches", include_str!("../../peers/java/Caches.java")),
    ("Elections", include_str!("../../peers/java/Elections.java")),
    ("Members", include_str!("../../peers/java/Members.java")),
    ("Queues", include_str!("../../peers/java/Queues.java")),
    ("Values", include_str!("../../peers/java/Values.java")),
];
const CLASS: &str = "CuratorPeer";

/// Compiled only where its jar is.
const SERVICES: (&str, &str) = ("Services", include_str!("../../peers/java/Services.java"));

/// Debian's package `libcurator-discovery-java` puts the jar here.
const DISCOVERY_JAR: &str = "/usr/share/java/curator-x-discovery.jar";

/// Debian's package `libcurator-recipes-java` puts the jar here; its manifest names every jar it needs.
const CURATOR_JAR: &str = "/usr/share/java/curator-recipes.jar";

/// So that Curator's complaints are seen. Comes with `libslf4j-java`, which Curator's package asks for.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// The compiled driver.
#[derive(Debug)]
pub(super) struct Driver {
    classes: PathBuf,
    curator: Curator,
}

/// Curator, and all that it needs.
#[derive(Debug)]
struct Curator {
    class_path: String,
    version: Version,
    has_discovery: bool,
}

impl Driver {
    /// Compiles the driver, unless this process or an earlier one has.
    pub(super) async fn compiled() -> Result<&'static Self, PeerError> {
        static DRIVER: OnceCell<Driver> = OnceCell::const_new();
        DRIVER.get_or_try_init(Self::compile).await
    }

    /// The version of Curator.
    pub(super) fn version(&self) -> Version {
        self.curator.version
    }

    /// Whether the class path has `curator-x-discovery`, which is a package of its own.
    pub(super) fn has_discovery(&self) -> bool {
        self.curator.has_discovery
    }

    /// Starts the driver, which connects to `servers` at once.
    pub(super) fn command(&self, servers: &str, session_timeout: Duration) -> Command {
        let mut command = Command::new(tool("java"));
        command
            // It lives for seconds: start quickly, rather than run fast later.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xss512k", "-Xmx96m"])
            // Or a killed one leaves a file in /tmp/hsperfdata_*.
            .args(["-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"])
            .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.apache.logging.log4j.level=WARN"])
            .arg("-cp")
            .arg(format!("{}:{}", self.classes.display(), self.curator.class_path))
            .arg(CLASS)
            .arg(servers)
            .arg(session_timeout.as_millis().to_string());
        command
    }

    /// The classes lie beside the test's own program, among what the build makes, and are made anew when the
    /// source or Curator changes. So there is nothing to clean up, and many test processes compile once.
    async fn compile() -> Result<Self, PeerError> {
        let curator = Curator::find()?;
        let program = env::current_exe().map_err(PeerError::io("find the test's own program"))?;
        let beside = program.parent().unwrap_or_else(|| Path::new("."));
        let mut hasher = DefaultHasher::new();
        let services = curator.has_discovery.then_some(SERVICES);
        (SOURCES, services, &curator.class_path).hash(&mut hasher);
        let classes = beside.join(format!("curator-peer-{:016x}", hasher.finish()));
        if !classes.is_dir() {
            Self::compile_into(&classes, beside, &curator).await?;
        }
        Ok(Self { classes, curator })
    }

    async fn compile_into(classes: &Path, beside: &Path, curator: &Curator) -> Result<(), PeerError> {
        let folder = tempfile::Builder::new().prefix("curator-peer-").tempdir_in(beside);
        let folder = folder.map_err(PeerError::io("create a folder for the Java driver"))?;
        let mut sources = Vec::new();
        let services = curator.has_discovery.then_some(SERVICES);
        for (class, source) in SOURCES.into_iter().chain(services) {
            let file = folder.path().join(class).with_extension("java");
            fs::write(&file, source).map_err(PeerError::io("write the Java driver"))?;
            sources.push(file);
        }
        let made = folder.path().join("classes");
        let compiler = Command::new(tool("javac"))
            // It runs for a second: half of its processor time would go into making it faster.
            .args(["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-XX:-UsePerfData"])
            // For whichever Java is the machine's default: it may be older than the compiler.
            .args(["--release", "11", "-proc:none", "-encoding", "UTF-8", "-cp", &curator.class_path, "-d"])
            .arg(&made)
            .args(&sources)
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

impl Curator {
    /// The one of the folder that the environment names, if it is there, or else Debian's.
    fn find() -> Result<Self, PeerError> {
        let unknown = || PeerError::malformed("the name of Curator's jar");
        if let Some(jars) = JarFolder::chosen()?.filter(JarFolder::has_curator) {
            let version = jars.curator_version().ok_or_else(unknown)?;
            let has_discovery = jars.has_discovery();
            return Ok(Self { class_path: jars.class_path(), version, has_discovery });
        }
        let jar = fs::canonicalize(CURATOR_JAR).map_err(|_| not_installed(CURATOR_JAR))?;
        let folder = jar.parent().unwrap_or(&jar);
        // Beside the jar is a link to it, whose name has the version.
        let version = JarFolder::debian(folder).ok().and_then(|jars| jars.curator_version());
        let has_discovery = Path::new(DISCOVERY_JAR).is_file();
        let discovery = if has_discovery { format!(":{DISCOVERY_JAR}") } else { String::new() };
        let class_path = format!("{}{discovery}:{LOGGER_JAR}", jar.display());
        Ok(Self { class_path, version: version.ok_or_else(unknown)?, has_discovery })
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
