//! What a wrong or an empty command line is answered with.

use std::process::{Command, Output};

fn lockkeeper(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockkeeper"))
        .args(arguments)
        .env_remove("LOCKKEEPER_CONNECT")
        .output()
        .unwrap()
}

#[test]
fn a_wrong_usage_ends_with_64_and_help_with_0() {
    assert_eq!(lockkeeper(&["--no-such-flag"]).status.code(), Some(64));
    assert_eq!(lockkeeper(&["no-such-command"]).status.code(), Some(64));
    assert_eq!(lockkeeper(&["watch", "/a", "--interval", "0"]).status.code(), Some(64));
    assert_eq!(lockkeeper(&["--help"]).status.code(), Some(0));
    assert_eq!(lockkeeper(&["--version"]).status.code(), Some(0));
}

#[test]
fn completions_and_manual_pages_name_every_subcommand() {
    let bash = lockkeeper(&["completions", "bash"]);
    assert!(String::from_utf8(bash.stdout).unwrap().contains("completions"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(lockkeeper(&["man", folder.path().to_str().unwrap()]).status.code(), Some(0));
    assert!(folder.path().join("lockkeeper.1").exists());
    assert!(folder.path().join("lockkeeper-man.1").exists());
}
