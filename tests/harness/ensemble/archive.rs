//! Java's archive of the classes of a server: most of the time of its start goes into loading them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

use tokio::sync::OnceCell;

use super::builder::EnsembleBuilder;
use super::install::Installation;
use crate::error::HarnessError;

/// What Java does with the archive.
#[derive(Debug)]
pub(super) enum Archive {
    /// It takes the classes from the file, as far as they are in it and its jars are still the same.
    Read(PathBuf),
    /// At its end it writes the classes that it has loaded.
    Write(PathBuf),
    /// It loads each class from its jar.
    Without,
}

impl Archive {
    /// The one of these jars, which the first process that needs it makes. A server starts without it, too.
    pub(super) async fn of(installation: &Installation) -> Self {
        static MADE: OnceCell<PathBuf> = OnceCell::const_new();
        let file = MADE.get_or_try_init(|| Self::made(installation)).await;
        file.map_or(Self::Without, |file| Self::Read(file.clone()))
    }

    /// The argument of `java`.
    pub(super) fn argument(&self) -> Option<String> {
        match self {
            Self::Read(file) => Some(format!("-XX:SharedArchiveFile={}", file.display())),
            Self::Write(file) => Some(format!("-XX:ArchiveClassesAtExit={}", file.display())),
            Self::Without => None,
        }
    }

    /// It lies beside the test's own program, among what the build makes.
    async fn made(installation: &Installation) -> Result<PathBuf, HarnessError> {
        let program = env::current_exe().map_err(HarnessError::io("find the test's own program"))?;
        let beside = program.parent().unwrap_or_else(|| Path::new("."));
        let mut hasher = DefaultHasher::new();
        (&installation.java, &installation.class_path).hash(&mut hasher);
        let file = beside.join(format!("zookeeper-classes-{:016x}.jsa", hasher.finish()));
        if !file.is_file() {
            let folder = tempfile::Builder::new().prefix("zookeeper-classes-").tempdir_in(beside);
            let folder = folder.map_err(HarnessError::io("create a folder for the archive of classes"))?;
            let made = folder.path().join("made.jsa");
            let archive = Self::Write(made.clone());
            let ensemble = EnsembleBuilder::default().attempt(installation, &archive).await?;
            // So that it loads what it needs for sessions and requests.
            ensemble.raw().await?.close().await?;
            ensemble.server(0).stop().await?;
            // Another process may have been quicker, with the same.
            fs::rename(&made, &file).map_err(HarnessError::io("move the archive of classes"))?;
        }
        Ok(file)
    }
}
