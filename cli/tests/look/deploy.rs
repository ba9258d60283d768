//! The files of `docs/deploy/`: what they run is what the command takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/deploy")
}

fn file(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

/// The words of a line behind the name of the command.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// The commands of all files.
fn commands() -> Vec<Vec<String>> {
    let unit = file("nightly-report.service");
    let started = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).map(words);
    let crontab = file("crontab");
    let cron =
        crontab.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit() || first == '*'));
    let cron = cron.map(|line| words(&line[line.find("lockkeeper").unwrap()..]));
    let pods = ["cronjob.yaml", "leader.yaml"].map(file).join("\n");
    let arrays = pods.lines().filter_map(|line| line.trim().strip_prefix("command: "));
    let pods = arrays.map(|array| serde_json::from_str::<Vec<String>>(array).unwrap()[1..].to_vec());
    started.chain(cron).chain(pods).collect()
}

#[test]
fn each_command_of_the_files_is_a_right_usage() {
    let commands = commands();
    assert_eq!(commands.len(), 5, "{commands:?}");
    for arguments in commands {
        let run = |arguments: &[String]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
            // Nobody listens there.
            command.env("LOCKKEEPER_CONNECT", "127.0.0.1:1").args(["--connect-timeout", "10ms"]);
            command.args(arguments).stdin(Stdio::null()).output().unwrap()
        };
        let ended = run(&arguments);
        assert_eq!(ended.status.code(), Some(69), "{arguments:?}: {ended:?}");
        let wrong = [&["--none".to_owned()], &arguments[..]].concat();
        assert_eq!(run(&wrong).status.code(), Some(64), "{arguments:?}");
    }
}

#[test]
fn systemd_takes_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("LEFT OUT: the unit for systemd, which is not installed here");
        return;
    }
    let folder = std::env::temp_dir().join(format!("lockkeeper-unit-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let verify = |text: &str| {
        let path = folder.join("nightly-report.service");
        fs::write(&path, text.replace("/usr/bin/lockkeeper", env!("CARGO_BIN_EXE_lockkeeper"))).unwrap();
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().unwrap()
    };
    let unit = file("nightly-report.service");
    let (taken, refused) = (verify(&unit), verify(&unit.replace("KillMode=mixed", "KillMode=some")));
    fs::remove_dir_all(&folder).unwrap();
    assert!(taken.status.success() && taken.stderr.is_empty(), "{taken:?}");
    assert!(!refused.stderr.is_empty(), "{refused:?}");
}
