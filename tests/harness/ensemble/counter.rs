//! A data folder in which a node has had very many children.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::install::Installation;
use crate::error::HarnessError;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/java/CounterAt.java");

/// Makes it by ZooKeeper's own classes: counting there would take weeks.
pub(super) async fn prepare(
    installation: &Installation,
    data: &Path,
    path: &str,
    next: i32,
) -> Result<(), HarnessError> {
    let made = Command::new(&installation.java)
        .args(["-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", &installation.class_path, SOURCE])
        .arg(data)
        .args([path, &next.to_string()])
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(HarnessError::io("start Java to make a data folder"))?;
    if made.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    Err(HarnessError::io("make a data folder with ZooKeeper's classes")(std::io::Error::other(said)))
}
