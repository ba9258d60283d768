//! The examples of one file each: as they are, on a server of their own, and on one that was used before.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
mod program;

use lockkeeper_tests::{Ensemble, Timing, left_out};
use lockkeeper_testserver::TestServer;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use uuid::Uuid;

use self::program::{output, program};

/// Each example, and what it says at least once.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("mutex", &["seat 3, sold under ", "seat 1, sold under ", ": sold out"]),
    ("reentrant_mutex", &["order 4711 is charged under "]),
    ("rw_lock", &["an adult pays "]),
    ("semaphore", &["build 6 has 2 licences", "4 licences are free"]),
    ("multi_lock", &["alice has 80, bob has 120"]),
    ("election", &["planner-1 leads and has planned", "planner-2 leads and has planned"]),
    ("schedule", &["process 1 reports 42 orders", "process 2 reports 42 orders"]),
    ("work_queue", &["sold: 2 tickets for alice", "sold: 1 ticket for dave"]),
    ("counter", &["30 visits more", "the next orders have the ids "]),
    ("table", &["written: Some(Quota { calls: 1", "seen: Some(Quota { calls: 1"]),
    ("partition", &["indexer-1 works on shard ", "indexer-2 works on shard "]),
    ("node_view", &["running with Some(4) workers", "now with 16 workers"]),
    ("discovery", &["call 10.0.0.7:8080", "call 10.0.0.8:8080"]),
    ("rate_limiter", &["call 7 starts", "request 2 of alice: 429, Retry-After: "]),
    ("group", &["the cluster is c-4711", "members: [\"indexer-1\"]", "members: []"]),
    ("barriers", &["all is loaded", "left computes", "right computes"]),
    ("threads", &["seller 1: sale ", "seller 2: sale ", "seller 3: sale "]),
];

/// The example has ended well, and has said what it says.
async fn assert_said(command: Command, name: &str, expected: &[&str]) {
    let output = output(command).await;
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {said}{errors}");
    for expected in expected {
        assert!(said.contains(expected), "{name} does not say {expected:?}: {said}");
    }
}

#[tokio::test]
async fn each_example_runs_as_it_is() {
    for (name, expected) in EXAMPLES {
        assert_said(program(name), name, expected).await;
    }
}

#[tokio::test]
async fn each_example_runs_on_servers_that_it_has_used_before_and_leaves_no_session() {
    let server = TestServer::start().await.unwrap();
    for (name, expected) in EXAMPLES {
        let servers = format!("{}/{name}", server.connect_string());
        for run in 1..=2 {
            let mut command = program(name);
            command.arg(&servers);
            // What a limit has admitted is admitted for both runs.
            assert_said(command, name, if run == 1 { expected } else { &expected[..1] }).await;
            assert_eq!(server.sessions(), [0_i64; 0], "{name} has not shut down");
        }
    }
}

#[tokio::test]
async fn each_example_runs_on_a_real_server() {
    if left_out() {
        return;
    }
    let ensemble = Ensemble::shared().await.unwrap();
    for (name, expected) in EXAMPLES {
        let mut command = program(name);
        command.arg(format!("{}/copied-{name}-{}", ensemble.connect_string(), Uuid::new_v4()));
        assert_said(command, name, expected).await;
    }
}

#[tokio::test]
async fn the_frame_of_a_service_hands_its_lock_over_at_sigterm() {
    let server = TestServer::start().await.unwrap();
    let mut command = program("shutdown");
    let mut child = command.arg(server.connect_string()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || timeout(Timing::settle(), lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(next().await.starts_with("working under "));
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let mut said = [next().await, next().await];
    said.sort();
    assert_eq!(said, ["SIGTERM", "the work is saved"]);
    assert_eq!(next().await, "0 locks were still held");
    assert!(timeout(Timing::settle(), child.wait()).await.expect("it ends").unwrap().success());
    assert_eq!(server.sessions(), [0_i64; 0]);
}
