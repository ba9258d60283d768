//! The ticket office, end to end: real processes on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod program;

use std::fmt::Write;
use std::path::PathBuf;

use lockkeeper_redis_tests::RedisServer;
use lockkeeper_tests::{Ensemble, Timing, left_out};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use self::program::{children, output, program};

/// 40 orders for 2 seats on each of 3 trains, one after the other.
const ORDERS: usize = 120;
const SEATS_ASKED: u64 = 240;

/// Fewer than are asked for.
const SEATS: &str = "30";

struct Office {
    folder: TempDir,
    ensemble: &'static Ensemble,
}

impl Office {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut orders = String::from("user,train,seats\n");
        for number in 0..ORDERS {
            writeln!(orders, "user {number},train {},2", number % 3).unwrap();
        }
        std::fs::write(folder.path().join("orders.csv"), orders).unwrap();
        Self { folder, ensemble: Ensemble::shared().await.unwrap() }
    }

    /// A sale of the small file on the shared server, below `chroot`. The server grants sessions this short.
    fn sale(&self, chroot: &str, flags: &[&str]) -> Command {
        let servers = format!("{}{chroot}", self.ensemble.connect_string());
        let mut command = ticket_office();
        command
            .args(["--seats", SEATS, "--connect", &servers, "--session-timeout", "4"])
            .arg("--orders")
            .arg(self.folder.path().join("orders.csv"))
            .args(flags);
        command
    }

    /// The nodes below `chroot` that ended runs have left.
    async fn left_behind(&self, chroot: &str) -> Vec<String> {
        let (mut oracle, runs) = (self.ensemble.raw().await.unwrap(), format!("{chroot}/ticket-office"));
        match oracle.exists(&runs).await.unwrap() {
            Some(_) => oracle.children(&runs).await.unwrap(),
            None => Vec::new(),
        }
    }
}

fn ticket_office() -> Command {
    program("ticket_office")
}

/// The exit code, and the last line as JSON.
async fn json(command: Command) -> (Option<i32>, Value) {
    let output = output(command).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_else(|| panic!("no output; it said: {errors}"));
    (output.status.code(), serde_json::from_str(last).unwrap())
}

/// Every train is full, and all other orders were refused.
fn assert_sound(code: Option<i32>, report: &Value) {
    assert_eq!(code, Some(0), "{report}");
    assert_eq!((&report["sold"], &report["refused"]), (&90.into(), &(SEATS_ASKED - 90).into()), "{report}");
    assert_eq!((&report["oversold"], &report["orders"]), (&0.into(), &ORDERS.into()), "{report}");
    assert_eq!((&report["lost"], &report["unbalanced"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    for train in report["trains"].as_array().unwrap() {
        assert_eq!((&train["sold"], &train["left"]), (&30.into(), &0.into()), "{train}");
    }
}

#[tokio::test]
async fn every_order_is_done_once_and_no_seat_is_sold_twice() {
    if left_out() {
        return;
    }
    let office = Office::open().await;
    let (code, report) = json(office.sale("/normal", &["--json"])).await;
    assert_sound(code, &report);
    assert_eq!(report["killed"], Value::Null);
    assert!(office.left_behind("/normal").await.is_empty());
}

#[tokio::test]
async fn a_killed_seller_loses_no_order_and_sells_no_seat_twice() {
    if left_out() {
        return;
    }
    for processes in ["1", "3"] {
        let office = Office::open().await;
        let (code, report) =
            json(office.sale("/killed", &["--json", "--kill", "--processes", processes])).await;
        assert_sound(code, &report);
        let killed = &report["killed"];
        assert!(killed["in_hand"].as_u64().unwrap() > 0, "{killed}");
        let (done, taken_up) = (&killed["found_done"], &killed["taken_up"]);
        assert_eq!(done.as_u64().unwrap() + taken_up.as_u64().unwrap(), killed["in_hand"].as_u64().unwrap());
    }
}

#[tokio::test]
async fn without_the_locks_seats_are_oversold_and_said_to_be() {
    if left_out() {
        return;
    }
    let office = Office::open().await;
    let (code, report) = json(office.sale("", &["--json", "--no-lock"])).await;
    assert_eq!(code, Some(1));
    assert!(report["oversold"].as_u64().unwrap() > 0, "{report}");
    assert!(report["verdict"].as_str().unwrap().starts_with("OVERSOLD"), "{report}");
}

#[tokio::test]
async fn without_an_ensemble_it_starts_its_own() {
    if left_out() {
        return;
    }
    let office = Office::open().await;
    let mut command = ticket_office();
    command.args(["--seats", SEATS, "--orders"]).arg(office.folder.path().join("orders.csv"));
    let output = output(command).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.lines().last().unwrap().starts_with("sold=90 refused=150 oversold=0 orders=120 seconds="));
}

#[tokio::test]
async fn an_interrupt_ends_the_sellers_and_takes_the_nodes_away() {
    if left_out() {
        return;
    }
    let office = Office::open().await;
    // Slow enough that it cannot be done before the signal.
    let mut sale = office.sale("/interrupted", &["--think", "5000"]).spawn().unwrap();
    let pid = sale.id().unwrap();
    let sellers = children(pid, 4).await;
    assert_eq!(office.left_behind("/interrupted").await.len(), 1, "the run is in progress");

    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::INT).unwrap();
    let status = timeout(Timing::event(), sale.wait()).await.expect("it ends").unwrap();
    assert_eq!(status.code(), Some(130));
    for seller in sellers {
        assert!(!PathBuf::from(format!("/proc/{seller}")).exists(), "seller {seller} is still there");
    }
    assert!(office.left_behind("/interrupted").await.is_empty());
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    std::fs::write(&file, "user,train,seats\nAda,ICE-1,2\nBob,ICE-1,two\n").unwrap();
    let mut command = ticket_office();
    // No server is there: it must not even be asked.
    command.args(["--connect", "127.0.0.1:1", "--orders"]).arg(&file);
    let output = output(command).await;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("line 3: \"two\" is not a number of seats"), "{said}");
}

#[tokio::test]
async fn locks_on_redis_sell_no_seat_twice_also_when_a_seller_is_killed() {
    if left_out() || lockkeeper_redis_tests::left_out() {
        return;
    }
    let (office, redis) = (Office::open().await, RedisServer::start(&[]).await.unwrap());
    let url = redis.url();
    for kill in [&[][..], &["--kill"]] {
        let flags = [&["--json", "--engine", "redis", "--redis", &url][..], kill].concat();
        let (code, report) = json(office.sale("/on-redis", &flags)).await;
        assert_sound(code, &report);
        assert_eq!(report["killed"].is_null(), kill.is_empty());
    }
}
