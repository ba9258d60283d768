use std::path::{Path, PathBuf};
use std::{env, fs};

use super::ZooKeeperError;

/// Names a folder of jars.
const VARIABLE: &str = "ZOOKEEPER_JARS";

/// Debian's jar; its manifest names every jar that it needs.
const DEBIAN_JAR: &str = "/usr/share/java/zookeeper.jar";

/// Debian has no logging back end on ZooKeeper's class path, so it would log nothing.
const DEBIAN_LOGGER: &str = "/usr/share/java/slf4j-simple.jar";

/// Java, and the jars of a server.
#[derive(Clone, Debug)]
pub(super) struct Installation {
    pub(super) java: PathBuf,
    pub(super) class_path: String,
}

impl Installation {
    /// Looks for both. `jars` comes before the environment.
    pub(super) fn find(jars: Option<&Path>) -> Result<Self, ZooKeeperError> {
        let missing = |missing: String| ZooKeeperError::NotInstalled { missing };
        let java = java().ok_or_else(|| missing("the command `java`".to_owned()))?;
        let named = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let class_path = match jars.map(Path::to_owned).or(named) {
            Some(folder) => of_folder(&folder)
                .ok_or_else(|| missing(format!("zookeeper-….jar in the folder {}", folder.display())))?,
            None if Path::new(DEBIAN_JAR).is_file() => of_debian(),
            None => return Err(missing(DEBIAN_JAR.to_owned())),
        };
        Ok(Self { java, class_path })
    }
}

/// All jars of a folder that has ZooKeeper's.
fn of_folder(folder: &Path) -> Option<String> {
    let mut jars: Vec<String> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.path().to_str().map(str::to_owned))
        .filter(|path| path.ends_with(".jar"))
        .collect();
    // The order of a class path must not depend on that of a folder.
    jars.sort();
    let is_server = |path: &String| {
        let name = path.rsplit('/').next().and_then(|name| name.strip_prefix("zookeeper"));
        name.is_some_and(|rest| {
            rest == ".jar"
                || rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    jars.iter().any(is_server).then(|| jars.join(":"))
}

fn of_debian() -> String {
    let logger = Path::new(DEBIAN_LOGGER).is_file().then_some(DEBIAN_LOGGER);
    [DEBIAN_JAR].into_iter().chain(logger).collect::<Vec<_>>().join(":")
}

fn java() -> Option<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = home.into_iter().chain(env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join("java")).filter(|java| java.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_server_is_an_error_that_says_what_to_install() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("zookeeper-jute-3.9.5.jar"), "").unwrap();
        assert!(of_folder(folder.path()).is_none());
        assert!(of_folder(Path::new("/nowhere")).is_none());
        let error = ZooKeeperError::NotInstalled { missing: "zookeeper-….jar".to_owned() }.to_string();
        assert!(error.contains("apt-get install zookeeper") && error.contains("ZOOKEEPER_JARS"), "{error}");

        fs::write(folder.path().join("zookeeper-3.9.5.jar"), "").unwrap();
        let class_path = of_folder(folder.path()).unwrap();
        let names: Vec<&str> = class_path.split(':').filter_map(|path| path.rsplit('/').next()).collect();
        assert_eq!(names, ["zookeeper-3.9.5.jar", "zookeeper-jute-3.9.5.jar"]);
    }
}
