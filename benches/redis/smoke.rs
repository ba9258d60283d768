//! Every peer and scenario, briefly: the program works. It measures nothing.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use lockkeeper_redis_tests::{RedisServer, left_out};
use tokio::process::Command;

#[tokio::test]
async fn every_peer_prints_one_line() {
    if left_out() {
        return;
    }
    let server = RedisServer::start(&[]).await.unwrap();
    for words in [
        "lockkeeper uncontended n=5 warmn=1",
        "floor uncontended n=5 warmn=1",
        "loop uncontended n=5 warmn=1",
        "lockkeeper handoff w=4 s=2 t=1",
        "loop handoff w=4 s=2 t=1",
        "gcra admit w=4 s=2 limit=50 window=500 t=1 warm=0",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper-redis-bench"));
        let output = command.arg(server.url()).args(words.split(' ')).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert!(report["ops"].as_u64() > Some(0), "{words}: {errors} {report}");
    }
    for wrong in
        ["lockkeeper dance", "nobody uncontended", "lockkeeper uncontended x=1", "floor handoff w=3 t=1"]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper-redis-bench"));
        let output = command.arg(server.url()).args(wrong.split(' ')).output().await.unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong}");
    }
}
