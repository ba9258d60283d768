//! Where this machine keeps Java and ZooKeeper, unless the environment names another ZooKeeper.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::error::HarnessError;
use crate::jars::JarFolder;

/// Debian's package `zookeeper` (through `libzookeeper-java`) puts the jar here; its manifest names every jar
/// it needs.
const ZOOKEEPER_JAR: &str = "/usr/share/java/zookeeper.jar";

/// Debian ships no logging back end on ZooKeeper's class path, so it would log nothing. Comes with
/// `libslf4j-java`.
const LOGGER_JAR: &str = "/usr/share/java/slf4j-simple.jar";

/// What a server needs to take clients over TLS, and what the manifest of Debian's jar leaves out. Comes with
/// `libnetty-java`, on which the package depends.
const CODEC_JAR: &str = "/usr/share/java/netty-codec.jar";

/// The files that a server needs.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    /// The Java launcher.
    pub(crate) java: PathBuf,
    /// The class path of a server.
    pub(crate) class_path: String,
}

impl Installation {
    /// Looks for Java (`JAVA_HOME`, then `PATH`) and for ZooKeeper's jars.
    pub(crate) fn find() -> Result<Self, HarnessError> {
        let java =
            java().ok_or_else(|| HarnessError::NotInstalled { missing: "the command `java`".into() })?;
        if let Some(jars) = JarFolder::chosen()? {
            return Ok(Self { java, class_path: jars.class_path() });
        }
        if !is_file(Path::new(ZOOKEEPER_JAR)) {
            return Err(HarnessError::NotInstalled { missing: ZOOKEEPER_JAR.into() });
        }
        let optional = [LOGGER_JAR, CODEC_JAR].into_iter().filter(|jar| is_file(Path::new(jar)));
        let class_path = [ZOOKEEPER_JAR].into_iter().chain(optional).collect::<Vec<_>>().join(":");
        Ok(Self { java, class_path })
    }
}

fn java() -> Option<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join("java"))
        .find(|java| is_file(java))
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file())
}
