//! The program for people who just want something on a port.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::raw::{Body, Conn, op};

#[tokio::test]
async fn program_tells_its_address_and_serves_there() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_lockkeeper-testserver"))
        .args(["--port", "0", "--servers", "3", "--tick", "100"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let connect_string = lines.next_line().await.unwrap().unwrap();
    let addresses: Vec<_> = connect_string.split(',').collect();
    assert_eq!(addresses.len(), 3);
    Conn::new(addresses[0], 4000).await.ok(op::CREATE, &Body::create("/a", 0)).await;
    Conn::new(addresses[2], 4000).await.ok(op::EXISTS, &Body::watch("/a", false)).await;
    program.kill().await.unwrap();
}
