use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

use crate::Failure;

/// Which version, and the checksum of what pip is to take.
const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// Starts a Python program with redis-py. It ends with its handle.
///
/// # Errors
///
/// There is no Python, or redis-py cannot be fetched.
pub async fn python(program: &str, arguments: &[&str]) -> Result<Child, Failure> {
    static FOLDER: OnceCell<PathBuf> = OnceCell::const_new();
    let folder = FOLDER.get_or_try_init(fetch).await?;
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", folder).env("PYTHONDONTWRITEBYTECODE", "1");
    command.args(["-c", program]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Fetches redis-py into a folder beside the test's own program, unless an earlier run has.
async fn fetch() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?;
    let beside = program.parent().ok_or("the test has no folder")?;
    let version = REQUIREMENTS.split_whitespace().next().unwrap_or_default().replace("==", "-");
    let folder = beside.join(version);
    if folder.is_dir() {
        return Ok(folder);
    }
    let scratch = tempfile::Builder::new().prefix("redis-py-").tempdir_in(beside)?;
    let made = scratch.path().join("made");
    let requirements = scratch.path().join("requirements.txt");
    std::fs::write(&requirements, REQUIREMENTS)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--require-hashes", "--target"]);
    run(pip.arg(&made).arg("--requirement").arg(&requirements)).await?;
    match std::fs::rename(&made, &folder) {
        // Another process was quicker, with the same.
        Err(_) if folder.is_dir() => {}
        renamed => renamed?,
    }
    Ok(folder)
}

async fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command.kill_on_drop(true).output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("cannot fetch redis-py, for which `apt-get install python3-pip` is needed:\n{said}").into())
}
