//! What each way out of a program leaves on the servers, as `docs/cookbook.md` says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

use std::process::Stdio;

use lockkeeper_tests::Timing;
use lockkeeper_testserver::TestServer;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A program that holds the lock, and its first line.
async fn left(server: &TestServer, side: &str, way: &str, said: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ways-out"));
    command.args([&server.connect_string(), side, way]).kill_on_drop(true);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in said {
        let line = timeout(Timing::settle(), lines.next_line()).await.expect("it says something").unwrap();
        assert_eq!(line.as_deref(), Some(*expected), "{side}, {way}");
    }
    child
}

async fn ended(mut child: Child) {
    timeout(Timing::settle(), child.wait()).await.expect("it ends").unwrap();
}

fn contenders(server: &TestServer) -> usize {
    server.inspect(|machine| machine.tree().node("/lock").map_or(0, |node| node.children.len()))
}

#[tokio::test]
async fn a_shutdown_leaves_neither_the_session_nor_the_lock() {
    for side in ["async", "blocking"] {
        let server = TestServer::start().await.unwrap();
        ended(left(&server, side, "shutdown", &["held"]).await).await;
        assert_eq!((server.sessions().len(), contenders(&server)), (0, 0), "{side}");
    }
}

#[tokio::test]
async fn an_exit_leaves_the_lock_until_the_session_times_out() {
    for side in ["async", "blocking"] {
        let server = TestServer::start().await.unwrap();
        ended(left(&server, side, "exit", &["held"]).await).await;
        let sessions = server.sessions();
        assert_eq!((sessions.len(), contenders(&server)), (1, 1), "{side}");
        assert!(server.expire(sessions[0]));
        assert_eq!(contenders(&server), 0, "{side}");
    }
}

#[tokio::test]
async fn a_kill_leaves_the_lock_until_the_session_times_out() {
    for side in ["async", "blocking"] {
        let server = TestServer::start().await.unwrap();
        let mut child = left(&server, side, "wait", &["held", "goes on"]).await;
        child.kill().await.unwrap();
        assert_eq!((server.sessions().len(), contenders(&server)), (1, 1), "{side}");
    }
}

#[tokio::test]
async fn a_panic_in_a_task_or_a_thread_releases_its_lock_and_the_process_goes_on() {
    for side in ["async", "blocking"] {
        let server = TestServer::start().await.unwrap();
        let child = left(&server, side, "panic", &["held", "goes on"]).await;
        let released = server
            .wait_until(|machine| machine.tree().node("/lock").is_none_or(|node| node.children.is_empty()));
        timeout(Timing::settle(), released).await.expect("the guard is dropped, and released");
        assert_eq!(server.sessions().len(), 1, "{side}: the process has its session");
        drop(child);
    }
}

#[tokio::test]
async fn a_forgotten_guard_holds_as_long_as_the_session() {
    let server = TestServer::start().await.unwrap();
    let _child = left(&server, "async", "forget", &["held", "goes on"]).await;
    assert_eq!((server.sessions().len(), contenders(&server)), (1, 1));
}
