//! The folder of jars that a run takes its servers from, instead of Debian's package.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::version::{self, Version};

/// Names the folder. A relative path counts from the root of the repository.
const VARIABLE: &str = "LOCKKEEPER_ZOOKEEPER";

/// Without these no server starts.
const SERVER: [&str; 3] = ["zookeeper", "zookeeper-jute", "slf4j-api"];

/// What the programs with Curator need besides.
const CURATOR: [&str; 3] = ["curator-recipes", "curator-framework", "curator-client"];

/// A folder with the jars of one ZooKeeper, and perhaps of one Curator.
#[derive(Clone, Debug)]
pub(crate) struct JarFolder {
    jars: Vec<PathBuf>,
}

/// `LOCKKEEPER_ZOOKEEPER` names a folder that has no ZooKeeper in it.
#[derive(Debug, thiserror::Error)]
#[error(
    "{VARIABLE} names `{}`, {problem}. Fetch a folder that fits with `tests/fetch_zookeeper`, or unset the \
     variable to run on Debian's package",
    .folder.display()
)]
pub struct JarFolderError {
    folder: PathBuf,
    /// In words that follow the name of the folder.
    problem: String,
}

impl JarFolder {
    /// The folder that the environment names, if it names one.
    pub(crate) fn chosen() -> Result<Option<Self>, JarFolderError> {
        let Some(named) = env::var_os(VARIABLE) else { return Ok(None) };
        if named.is_empty() {
            // As when the command that was to print the folder failed.
            return Err(JarFolderError { folder: named.into(), problem: "which is no folder".into() });
        }
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        Self::read(repository.join(named)).map(Some)
    }

    /// Debian's folder, which has the jars of all packages.
    pub(crate) fn debian(folder: &Path) -> io::Result<Self> {
        Ok(Self::of(fs::read_dir(folder)?))
    }

    fn of(entries: fs::ReadDir) -> Self {
        let mut jars: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        jars.retain(|file| file.extension().is_some_and(|extension| extension == "jar"));
        // The order of a class path must not depend on that of a folder.
        jars.sort();
        Self { jars }
    }

    fn read(folder: PathBuf) -> Result<Self, JarFolderError> {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                return Err(JarFolderError { folder, problem: format!("which cannot be listed: {error}") });
            }
        };
        let read = Self::of(entries);
        for artifact in SERVER {
            let found: Vec<&str> = read.named(artifact).collect();
            match found[..] {
                [_] => {}
                [] => {
                    let problem = format!("which has no {artifact}-….jar");
                    return Err(JarFolderError { folder, problem });
                }
                _ => {
                    let problem = format!("which has several versions: {}", found.join(", "));
                    return Err(JarFolderError { folder, problem });
                }
            }
        }
        Ok(read)
    }

    /// Whether the folder has Curator too.
    pub(crate) fn has_curator(&self) -> bool {
        CURATOR.into_iter().all(|artifact| self.named(artifact).next().is_some())
    }

    /// Whether the folder has Curator's discovery, which is an artifact of its own.
    pub(crate) fn has_discovery(&self) -> bool {
        self.named("curator-x-discovery").next().is_some()
    }

    /// All jars, as `java -cp` takes them.
    pub(crate) fn class_path(&self) -> String {
        let jars: Vec<String> = self.jars.iter().map(|jar| jar.display().to_string()).collect();
        jars.join(":")
    }

    /// The version of Curator, by the name of its file.
    pub(crate) fn curator_version(&self) -> Option<Version> {
        let prefix = format!("{}-", CURATOR[0]);
        self.named(CURATOR[0]).find_map(|name| version::parse(name.strip_prefix(&prefix)?))
    }

    /// The file names of `artifact`, with a version or without.
    fn named(&self, artifact: &str) -> impl Iterator<Item = &str> {
        let is_number = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
        let is_version = move |rest: &str| rest == ".jar" || rest.strip_prefix('-').is_some_and(is_number);
        self.jars
            .iter()
            .filter_map(|jar| jar.file_name()?.to_str())
            .filter(move |name| name.strip_prefix(artifact).is_some_and(is_version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    fn problem(names: &[&str]) -> String {
        let folder = folder(names);
        JarFolder::read(folder.path().into()).unwrap_err().problem
    }

    #[test]
    fn a_folder_of_a_release_is_a_class_path() {
        let names = ["zookeeper-jute-3.9.5.jar", "zookeeper-3.9.5.jar", "slf4j-api-2.0.17.jar", "NOTICE.txt"];
        let folder = folder(&names);
        let read = JarFolder::read(folder.path().into()).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let expected =
            [at("slf4j-api-2.0.17.jar"), at("zookeeper-3.9.5.jar"), at("zookeeper-jute-3.9.5.jar")];
        assert_eq!(read.class_path(), expected.join(":"));
        assert!(!read.has_curator());
    }

    #[test]
    fn curator_is_found_if_all_of_it_is_there() {
        let mut names =
            vec!["zookeeper.jar", "zookeeper-jute.jar", "slf4j-api.jar", "curator-recipes-5.9.0.jar"];
        names.push("curator-framework-5.9.0.jar");
        assert!(!JarFolder::read(folder(&names).path().into()).unwrap().has_curator());
        names.push("curator-client-5.9.0.jar");
        let read = JarFolder::read(folder(&names).path().into()).unwrap();
        assert!(read.has_curator());
        assert_eq!(read.curator_version(), Some((5, 9, 0)));
    }

    #[test]
    fn a_wrong_folder_is_an_error_that_names_it() {
        let error = JarFolder::read("/nowhere/jars".into()).unwrap_err().to_string();
        assert!(
            error.starts_with("LOCKKEEPER_ZOOKEEPER names `/nowhere/jars`, which cannot be listed: "),
            "{error}"
        );
        assert!(error.contains("tests/fetch_zookeeper"), "{error}");
        assert_eq!(problem(&["zookeeper-prometheus-metrics-3.9.5.jar"]), "which has no zookeeper-….jar");
        assert_eq!(problem(&["zookeeper-3.9.5.jar"]), "which has no zookeeper-jute-….jar");
        let two = ["zookeeper-3.8.4.jar", "zookeeper-3.9.5.jar", "zookeeper-jute-3.9.5.jar"];
        assert_eq!(problem(&two), "which has several versions: zookeeper-3.8.4.jar, zookeeper-3.9.5.jar");
    }
}
