//! The web service, over HTTP: real processes on an embedded server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
mod program;

use std::path::Path;
use std::process::ExitStatus;

use futures::future::{join, join_all};
use lockkeeper::FencingToken;
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::timeout;

use self::program::program;

/// The directory of the contenders for the only train.
const QUEUE: &str = "/service/trains/7";
const SALE: &str = "POST /trains/7/seats";
/// Longer than any test: the request ends by what the test does.
const FOR_EVER: &str = "86400000";

/// A process of the service.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    async fn start(server: &TestServer, store: &Path, flags: &[&str]) -> Self {
        let mut command = program("service");
        command.args(["--connect", &server.connect_string(), "--store"]).arg(store);
        let mut child = command.args(flags).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(Timing::settle(), lines.next_line()).await.unwrap().unwrap().unwrap();
        let address = line.strip_prefix("serving http://").unwrap().to_owned();
        Self { child, address }
    }

    /// The status and the body of an answer; nothing if the process ends before it answers.
    async fn ask(&self, request: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).await.ok()?;
        let text = format!("{request} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).await.ok()?;
        let mut answer = String::new();
        timeout(Timing::settle(), stream.read_to_string(&mut answer)).await.expect("an answer").ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    async fn sell(&self) -> (u32, FencingToken) {
        let (mut status, mut body) = self.ask(SALE).await.expect("an answer");
        // On a busy machine it does not get the lock in time.
        while status == 503 {
            (status, body) = self.ask(SALE).await.expect("an answer");
        }
        assert_eq!(status, 200, "{body}");
        let sale: Value = serde_json::from_str(&body).unwrap();
        let token = serde_json::from_value(sale["token"].clone()).unwrap();
        (sale["seat"].as_u64().unwrap().try_into().unwrap(), token)
    }

    async fn is_ready(&self) -> bool {
        let (status, health) = self.ask("GET /ready").await.expect("an answer");
        assert!([200, 503].contains(&status), "{health}");
        status == 200
    }

    async fn becomes_ready(&self, expected: bool) {
        let seen = async || (self.is_ready().await == expected).then_some(());
        eventually("the probe follows the session", Timing::settle(), seen).await.unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.try_into().unwrap())).unwrap();
        kill_process(pid, signal).unwrap();
    }

    async fn ended(mut self) -> ExitStatus {
        timeout(Timing::settle(), self.child.wait()).await.expect("it ends").unwrap()
    }
}

/// Waits until this number of requests holds the lock or waits for it.
async fn contenders(server: &TestServer, count: usize) {
    let queued = server
        .wait_until(|machine| machine.tree().node(QUEUE).is_some_and(|node| node.children.len() == count));
    timeout(Timing::settle(), queued).await.expect("all are in the queue");
}

async fn fixture() -> (TestServer, TempDir) {
    (TestServer::start().await.unwrap(), tempfile::tempdir().unwrap())
}

#[tokio::test]
async fn two_processes_sell_each_seat_once_and_later_sales_have_greater_tokens() {
    let (server, store) = fixture().await;
    let start = || Service::start(&server, store.path(), &["--work", "1"]);
    let (one, other) = join(start(), start()).await;
    assert!(one.is_ready().await && other.is_ready().await);
    let mut sales = join_all((0..20).flat_map(|_| [one.sell(), other.sell()])).await;
    sales.sort_unstable();
    let seats: Vec<u32> = sales.iter().map(|(seat, _)| *seat).collect();
    assert_eq!(seats, (1..=40).collect::<Vec<u32>>());
    assert!(sales.is_sorted_by(|(_, earlier), (_, later)| earlier < later), "{sales:?}");

    let (status, metrics) = one.ask("GET /metrics").await.unwrap();
    let waits = "lockkeeper_wait_seconds_count{recipe=\"mutex\",outcome=\"granted\"} 20";
    assert!(status == 200 && metrics.contains(waits), "{metrics}");
    let (status, _) = one.ask("POST /trains/..%2F7/seats").await.unwrap();
    assert_eq!(status, 404, "a name that is no path element");
}

#[tokio::test]
async fn a_killed_process_sells_nothing_and_the_next_one_gets_its_lock() {
    let (server, store) = fixture().await;
    let killed = Service::start(&server, store.path(), &["--work", FOR_EVER]).await;
    let session = server.sessions();
    let other = Service::start(&server, store.path(), &["--work", "1"]).await;
    let attack = async {
        contenders(&server, 1).await;
        killed.signal(Signal::KILL);
    };
    let (unanswered, ()) = join(killed.ask(SALE), attack).await;
    assert_eq!(unanswered, None);
    let next = async {
        contenders(&server, 2).await;
        // What the server does by itself after the session timeout.
        assert!(session.iter().all(|session| server.expire(*session)));
    };
    let ((seat, _), ()) = join(other.sell(), next).await;
    assert_eq!(seat, 1);
    assert!(!killed.ended().await.success());
}

#[tokio::test]
async fn a_process_that_loses_its_session_sells_nothing_and_is_not_ready_until_the_next_session() {
    let (server, store) = fixture().await;
    let flags = ["--work", FOR_EVER, "--session-timeout", "4"];
    let service = Service::start(&server, store.path(), &flags).await;
    assert!(service.is_ready().await);
    let loss = async {
        contenders(&server, 1).await;
        server.refuse_connections();
        assert!(server.sessions().iter().all(|session| server.expire(*session)));
    };
    let (answer, ()) = join(service.ask(SALE), loss).await;
    let (status, reason) = answer.unwrap();
    assert_eq!(status, 503, "{reason}");
    assert!(!service.is_ready().await);
    assert_eq!(service.ask("GET /live").await.unwrap().0, 200, "a restart would not help");
    server.accept_connections();
    service.becomes_ready(true).await;
    assert_eq!(std::fs::read_dir(store.path()).unwrap().count(), 0, "nothing was sold");
}

#[tokio::test]
async fn a_process_that_shuts_down_is_not_ready_finishes_its_requests_and_leaves_no_node() {
    let (server, store) = fixture().await;
    let service = Service::start(&server, store.path(), &["--drain", FOR_EVER]).await;
    service.signal(Signal::TERM);
    service.becomes_ready(false).await;
    assert_eq!(service.sell().await.0, 1, "requests that still come are served");
    service.signal(Signal::KILL);

    let service = Service::start(&server, store.path(), &["--work", "300", "--drain", "0"]).await;
    let shutdown = async {
        contenders(&server, 1).await;
        service.signal(Signal::TERM);
    };
    let ((seat, _), ()) = join(service.sell(), shutdown).await;
    assert_eq!(seat, 2, "a running request is finished");
    assert!(service.ended().await.success());
    assert_eq!(server.inspect(|machine| machine.tree().node(QUEUE).map(|node| node.children.len())), Some(0));
}
