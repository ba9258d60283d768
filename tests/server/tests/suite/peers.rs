//! Clients and recipes of other projects work against this server.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lockkeeper_testserver::TestServer;
use tokio::process::Command;
use tokio::time::timeout;

use crate::real_server::left_out;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// Runs a peer to its end and returns the checks that it passed.
async fn run(command: &mut Command, patience: Duration) -> Vec<String> {
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).output();
    let output = timeout(patience, running).await.expect("the peer hangs").unwrap();
    let (passed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{passed}\n{errors}");
    passed.lines().filter_map(|line| line.strip_prefix("ok: ")).map(str::to_owned).collect()
}

/// Python with kazoo: the one that `LOCKKEEPER_KAZOO_PYTHON` names, or the machine's with kazoo in a folder.
async fn python(folder: &Path) -> Command {
    if let Ok(python) = std::env::var("LOCKKEEPER_KAZOO_PYTHON") {
        return Command::new(python);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(folder).arg("kazoo==2.11.0");
    run(&mut pip, Duration::from_secs(180)).await;
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder);
    python
}

#[tokio::test]
async fn kazoo_recipes_work() {
    if std::env::var("LOCKKEEPER_WITHOUT_KAZOO").is_ok_and(|value| value == "1") {
        eprintln!("LEFT OUT: kazoo was not tried, as LOCKKEEPER_WITHOUT_KAZOO says");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = python(dir.path()).await;
    let server = TestServer::start().await.unwrap();
    command.arg(source("kazoo_peer.py")).arg(server.connect_string());
    assert_eq!(run(&mut command, Duration::from_secs(120)).await.len(), 10);
}

#[tokio::test]
async fn curator_recipes_work() {
    if left_out() {
        return;
    }
    let recipes = "/usr/share/java/curator-recipes.jar";
    assert!(Path::new(recipes).exists(), "install Curator: apt-get install libcurator-recipes-java");
    let server = TestServer::start().await.unwrap();
    let mut command = Command::new("java");
    command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", recipes]);
    command.arg(source("CuratorPeer.java")).arg(server.connect_string());
    assert_eq!(run(&mut command, Duration::from_secs(120)).await.len(), 7);
}
