//! The examples as programs. `cargo test` builds them; `cargo test --test NAME` alone does not.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use lockkeeper_tests::{Timing, eventually};
use tokio::process::Command;
use tokio::time::timeout;

/// The example of this name, which dies with its command.
pub(crate) fn program(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.ancestors().nth(2).unwrap().to_owned();
    let example = profile.join("examples").join(name);
    assert!(example.is_file(), "no {}; build it: cargo build --workspace --examples", example.display());
    let mut command = Command::new(example);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// The result, once it has ended.
pub(crate) async fn output(mut command: Command) -> Output {
    let limit = Timing::settle() * 4;
    timeout(limit, command.output()).await.expect("it ends").unwrap()
}

/// The processes it has started, from the instant in which there are `count`.
pub(crate) async fn children(pid: u32, count: usize) -> Vec<String> {
    let all = async || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let children: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        (children.len() >= count).then_some(children)
    };
    eventually("all processes are there", Timing::event(), all).await.unwrap()
}
