//! Every scenario, briefly, against the embedded server.

use std::io;
use std::process::Output;

use lockkeeper_testserver::TestServer;
use tokio::process::Command;

const BRIEFLY: &[&str] = &[
    "uncontended n=5 warmn=1",
    "uncontended n=5 warmn=1 release=drop",
    "handoff w=3 s=2 t=0.2 warm=0 hold=1",
    "handoff w=4 s=2 t=0.2 warm=0 keep=1",
    "elect w=3 s=2 t=0.2 warm=0 hold=1",
    "failover n=1 timeout=4",
    "expire k=20 n=1 timeout=4",
    "rw w=4 s=2 readpct=50 t=0.2 warm=0",
    "semaphore w=4 s=2 leases=2 t=0.2 warm=0",
    "admit w=4 s=2 limit=20 window=200 try=1 t=0.2 warm=0",
    "admit w=4 s=1 limit=20 window=200 by=governor t=0.2 warm=0",
    "keyed k=20 w=4 s=2 window=100",
    "admit w=4 s=2 objects=1 ahead=10 grace=100 t=0.2 warm=0",
    "count w=2 s=2 t=0.2 warm=0",
    "multi k=3 n=3 warmn=1",
    "many w=4 s=2 k=2 t=0.2 warm=0",
    "many w=4 pool=3 k=5 t=0.2 warm=0",
    "herd w=6 s=2",
    "keep k=5",
    "keep k=5 pool=2",
    "table w=4 s=2 k=20 t=0.2 warm=0",
    "queue p=2 w=3 s=2 t=0.2 warm=0",
    "queue p=2 w=2 s=2 batch=5 waiting=150 ahead=10 t=0.2 warm=0",
    "view k=1500 n=5 warmn=1",
    "members w=3 s=2 k=20 t=0.2 warm=0",
    "rebalance w=3 s=2 k=12 n=2 warmn=1",
    "lookup k=20 w=2 n=5 warmn=1",
    "bare w=2 s=2 t=0.2 warm=0 threads=1",
];

async fn bench(servers: &str, words: &str) -> io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper-bench"));
    command.arg(servers).args(words.split_whitespace()).output().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_prints_one_line_and_breaks_nothing() {
    let server = TestServer::start().await.unwrap();
    for words in BRIEFLY {
        let output = bench(&server.connect_string(), words).await.unwrap();
        let (line, errors) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{words}: {errors}{line}");
        let report: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(report["scenario"], words.split(' ').next().unwrap());
        assert_eq!((&report["violations"], &report["stuck_workers"]), (&0.into(), &0.into()), "{line}");
        assert!(report["ops"].as_u64() > Some(0) && report["acq_p50_us"].as_f64() > Some(0.0), "{line}");
        // The embedded server counts packets, and does not distinguish reads and writes.
        // An admission of a batch, or of starts that were taken ahead, has only a part of a request.
        let is_shared = words.contains("keep=1") || words.starts_with("admit");
        let least = if is_shared { 0.0 } else { 1.0 };
        assert!(report["reqs_op"].as_f64() >= Some(least) && report["writes_op"].is_null(), "{line}");
    }
}

#[tokio::test]
async fn a_wrong_command_line_exits_2_and_prints_no_line() {
    let output = bench("127.0.0.1:1", "dance").await.unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}
