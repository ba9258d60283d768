#![doc = "The claims of the example, end to end: real processes, on the embedded server."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation is a failed test"
)]

#[path = "../sql/postgres.rs"]
mod postgres;

use std::path::PathBuf;
use std::process::Stdio;

use lockkeeper_tests::Timing;
use tokio::process::Command;
use tokio::time::timeout;

/// The exit code, and the number of each name in the last line.
async fn played(arguments: &[&str]) -> (Option<i32>, impl Fn(&str) -> Option<i64> + use<>) {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.ancestors().nth(2).unwrap().to_owned();
    let example = profile.join("examples/orders_sql");
    assert!(
        example.is_file(),
        "no {}; build it: cargo build -p lockkeeper-fence --examples",
        example.display()
    );
    let mut command = Command::new(example);
    // A busy machine ends a session of a second.
    command.args(["--session-timeout", "4"]).args(arguments);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(Timing::settle() * 4, command.output()).await.expect("it ends").unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    println!("{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    let last = text.lines().last().unwrap_or_default().to_owned();
    let number = move |name: &str| {
        let mut words = last.split(' ').filter_map(|word| word.split_once('='));
        words.find(|(key, _)| *key == name).and_then(|(_, number)| number.parse().ok())
    };
    (output.status.code(), number)
}

#[tokio::test]
async fn no_seat_is_sold_twice_although_sellers_are_stopped_and_killed() {
    let (code, number) = played(&[]).await;
    assert_eq!((code, number("orders"), number("oversold")), (Some(0), Some(30), Some(0)));
    assert!(number("stale_refused").unwrap() >= 2);
}

#[tokio::test]
async fn on_postgresql_no_seat_is_sold_twice_and_without_the_fence_some_are() {
    let Some(socket) = postgres::socket() else { return };
    let url = format!("postgres://lockkeeper@localhost/postgres?host={socket}");
    let (code, number) = played(&["--postgres", &url]).await;
    assert_eq!((code, number("orders"), number("oversold")), (Some(0), Some(30), Some(0)));
    assert!(number("stale_refused").unwrap() >= 2);
    let (code, number) = played(&["--postgres", &url, "--no-fence"]).await;
    assert_eq!(code, Some(1));
    assert!(number("oversold").unwrap() > 0);
}

#[tokio::test]
async fn without_the_fence_seats_are_sold_twice() {
    let (code, number) = played(&["--no-fence"]).await;
    assert_eq!((code, number("stale_refused")), (Some(1), Some(0)));
    assert!(number("oversold").unwrap() > 0);
}

#[tokio::test]
async fn by_versions_no_seat_is_sold_twice_and_sellers_try_again() {
    let (code, number) = played(&["--versions"]).await;
    assert_eq!((code, number("orders"), number("oversold")), (Some(0), Some(30), Some(0)));
    assert!(number("retries").unwrap() > 0);
}
