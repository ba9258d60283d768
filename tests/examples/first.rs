//! The first program of the README, as it is written there, on an empty server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
mod program;

use lockkeeper_testserver::TestServer;

use self::program::{output, program};

#[test]
fn the_first_program_of_the_readme_is_the_one_that_is_run_here() {
    let readme = include_str!("../../README.md");
    let (_, block) = readme.split_once("```rust,no_run\n").expect("a program");
    let (block, _) = block.split_once("```\n").expect("its end");
    let (_title, first) = include_str!("../../examples/first.rs").split_once("\n\n").expect("a title");
    assert_eq!(block, first);
}

#[tokio::test]
async fn the_first_program_runs_against_an_empty_ensemble_and_again() {
    let server = TestServer::start().await.unwrap();
    for sales in 1..=2 {
        let mut first = program("first");
        first.arg(format!("{}/shop", server.connect_string()));
        let output = output(first).await;
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.starts_with("seat 42, sold under "), "{said}{errors}");
        let children =
            |path: &str| server.inspect(|machine| machine.tree().node(path).map(|node| node.children.len()));
        // The sales, and the directory of the locks.
        assert_eq!(children("/shop"), Some(sales + 1));
        assert_eq!(children("/shop/locks/train-7"), Some(0), "a node is left behind");
    }
}
