//! The test server as a program.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::raw::{Body, Conn, op};
use crate::real_server::four_letters;

/// The program, with a pipe to its standard input.
struct Program {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    addresses: Vec<String>,
}

impl Program {
    async fn start(servers: usize) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_lockkeeper-testserver"))
            .args(["--port", "0", "--servers", &servers.to_string(), "--tick", "100"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut output = BufReader::new(output).lines();
        let addresses = output.next_line().await.unwrap().unwrap();
        let addresses = addresses.split(',').map(str::to_owned).collect();
        Self { process, input, output, addresses }
    }

    async fn command(&mut self, command: &str) -> String {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
        self.output.next_line().await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn program_prints_its_address_and_serves_there_without_commands() {
    let mut program = Program::start(3).await;
    assert_eq!(program.addresses.len(), 3);
    drop(program.input);
    Conn::new(&program.addresses[0], 4000).await.ok(op::CREATE, &Body::create("/a", 0)).await;
    Conn::new(&program.addresses[2], 4000).await.ok(op::EXISTS, &Body::watch("/a", false)).await;
    assert_eq!(program.process.try_wait().unwrap(), None);
}

#[tokio::test]
async fn program_stops_its_server_keeps_the_state_and_starts_it_again() {
    let mut program = Program::start(1).await;
    let at = program.addresses[0].clone();
    let mut client = Conn::new(&at, 2000).await;
    client.ok(op::CREATE, &Body::create("/mine", 1)).await;
    assert_eq!(program.command("status").await, "ok 1=standalone");
    assert_eq!(program.command("stop").await, "ok");
    client.closed().await;
    assert_eq!(four_letters(&at, "ruok").await, None);
    assert_eq!(program.command("status").await, "ok 1=stopped");
    for command in ["start", "start 1", "restart"] {
        assert_eq!(program.command(command).await, "ok");
    }
    let mut again = client.again(&at).await.unwrap();
    assert_eq!(again.session, client.session);
    again.ok(op::EXISTS, &Body::watch("/mine", false)).await;
    assert_eq!(program.command("drop").await, "ok");
    again.closed().await;
    assert_eq!(program.command(&format!("expire {:#x}", client.session)).await, "ok");
    assert_eq!(client.again(&at).await.unwrap().session, 0);
    for wrong in ["", "dance", "stop 2", "stop 0", "stop 1 2", "expire 1", "expire"] {
        let answer = program.command(wrong).await;
        assert!(answer.starts_with("error: "), "{wrong}: {answer}");
    }
    assert!(program.command("help").await.starts_with("ok "));
    program.input.write_all(b"quit\n").await.unwrap();
    assert!(program.process.wait().await.unwrap().success());
}

#[tokio::test]
async fn program_runs_an_ensemble_that_loses_its_majority_and_finds_it_again() {
    let mut program = Program::start(3).await;
    let at = program.addresses.clone();
    let mut client = Conn::new(&at[0], 2000).await;
    assert_eq!(program.command("status").await, "ok 1=leader 2=follower 3=follower");
    assert_eq!(program.command("stop 1").await, "ok");
    client.closed().await;
    assert_eq!(program.command("status").await, "ok 1=stopped 2=follower 3=leader");
    let mut moved = client.again(&at[1]).await.unwrap();
    moved.ok(op::CREATE, &Body::create("/mine", 1)).await;
    assert_eq!(program.command("stop 3").await, "ok");
    moved.closed().await;
    assert_eq!(program.command("status").await, "ok 1=stopped 2=not-serving 3=stopped");
    assert!(moved.again(&at[1]).await.is_err());
    assert_eq!(program.command("start").await, "ok");
    let mut again = moved.again(&at[2]).await.unwrap();
    assert_eq!(again.session, client.session);
    again.ok(op::EXISTS, &Body::watch("/mine", false)).await;
}
