//! The Python program that drives kazoo, and kazoo itself.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::driver::not_installed;
use super::error::PeerError;

const SOURCE: &str = include_str!("../../peers/python/kazoo_peer.py");
/// Which version, and the checksum of what pip is to take.
const REQUIREMENTS: &str = include_str!("../../peers/python/requirements.txt");
const PROGRAM: &str = "kazoo_peer.py";

/// A folder with kazoo and its driver in it.
#[derive(Debug)]
pub(super) struct Kazoo {
    folder: PathBuf,
}

impl Kazoo {
    /// Fetches kazoo, unless this process or an earlier one has.
    pub(super) async fn fetched() -> Result<&'static Self, PeerError> {
        static KAZOO: OnceCell<Kazoo> = OnceCell::const_new();
        KAZOO.get_or_try_init(Self::fetch).await
    }

    /// Starts the driver, which connects to `servers` at once.
    pub(super) fn command(&self, servers: &str, session_timeout: Duration) -> Command {
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", &self.folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(self.folder.join(PROGRAM))
            .arg(servers)
            .arg(session_timeout.as_millis().to_string());
        command
    }

    /// It lies beside the test's own program, among what the build makes, and is made anew when the source or
    /// the version changes.
    async fn fetch() -> Result<Self, PeerError> {
        let program = env::current_exe().map_err(PeerError::io("find the test's own program"))?;
        let beside = program.parent().unwrap_or_else(|| Path::new("."));
        let mut hasher = DefaultHasher::new();
        (SOURCE, REQUIREMENTS).hash(&mut hasher);
        let folder = beside.join(format!("kazoo-peer-{:016x}", hasher.finish()));
        if !folder.is_dir() {
            Self::fetch_into(&folder, beside).await?;
        }
        Ok(Self { folder })
    }

    async fn fetch_into(folder: &Path, beside: &Path) -> Result<(), PeerError> {
        let scratch = tempfile::Builder::new().prefix("kazoo-peer-").tempdir_in(beside);
        let scratch = scratch.map_err(PeerError::io("create a folder for kazoo"))?;
        let made = scratch.path().join("made");
        let requirements = scratch.path().join("requirements.txt");
        fs::write(&requirements, REQUIREMENTS).map_err(PeerError::io("write what pip is to fetch"))?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--only-binary", ":all:", "--require-hashes", "--target"]);
        run(pip.arg(&made).arg("--requirement").arg(&requirements)).await?;
        fs::write(made.join(PROGRAM), SOURCE).map_err(PeerError::io("write the Python driver"))?;
        match fs::rename(&made, folder) {
            // Another process was quicker, with the same.
            Err(_) if folder.is_dir() => Ok(()),
            renamed => renamed.map_err(PeerError::io("move kazoo to its folder")),
        }
    }
}

async fn run(command: &mut Command) -> Result<(), PeerError> {
    let output = command.kill_on_drop(true).output().await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => not_installed("the command `python3`"),
        _ => PeerError::io("run Python")(error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(PeerError::NotFetched { output: String::from_utf8_lossy(&said).into_owned() })
}
