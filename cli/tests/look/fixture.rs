//! Servers, and commands that run.

use std::process::{Output, Stdio};
use std::time::Duration;

use lockkeeper::ConnectionManager;
use lockkeeper_tests::{Ensemble, Timing, left_out};
use lockkeeper_testserver::TestServer;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

pub(crate) struct Fixture {
    pub(crate) servers: String,
    pub(crate) manager: ConnectionManager,
    pub(crate) is_real: bool,
    pub(crate) embedded: Option<TestServer>,
}

impl Fixture {
    /// An embedded server, and Apache ZooKeeper unless it is left out.
    pub(crate) async fn both() -> Vec<Self> {
        let server = TestServer::start().await.unwrap();
        let mut fixtures = vec![Self::at(server.connect_string(), Some(server)).await];
        if !left_out() {
            let servers = Ensemble::shared().await.unwrap().connect_string();
            fixtures.push(Self::at(servers, None).await);
        }
        fixtures
    }

    /// An embedded server that keeps a session as long as a client asks for.
    pub(crate) async fn patient() -> Self {
        let day = Duration::from_secs(86_400);
        let server = TestServer::builder().session_timeouts(Duration::from_secs(1), day);
        let server = server.start().await.unwrap();
        Self::at(server.connect_string(), Some(server)).await
    }

    async fn at(servers: String, embedded: Option<TestServer>) -> Self {
        let manager = ConnectionManager::connect(&servers).await.unwrap();
        Self { servers, manager, is_real: embedded.is_none(), embedded }
    }

    /// A further client, with a session of its own.
    pub(crate) async fn client(&self) -> ConnectionManager {
        ConnectionManager::connect(&self.servers).await.unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
        command.env("LOCKKEEPER_CONNECT", &self.servers).args(arguments);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs the command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let output =
            timeout(Timing::settle(), self.command(arguments).output()).await.expect("an end").unwrap();
        let ended = Ended::of(&output);
        // The pictures in docs/command.md are printed here.
        println!("$ lockkeeper {}\n{}", arguments.join(" "), ended.output);
        ended
    }

    /// Starts a command that continues.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { _child: child, output }
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) messages: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self { code: output.status.code(), output: text(&output.stdout), messages: text(&output.stderr) }
    }

    pub(crate) fn has(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.output.contains(part), "{part:?} in {self:?}");
        }
    }
}

/// A command that runs. Its drop kills it.
pub(crate) struct Running {
    _child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Reads until a line has this text, and returns it.
    pub(crate) async fn until(&mut self, part: &str) -> String {
        let mut read = Vec::new();
        let search = async {
            loop {
                let line = self.output.next_line().await.unwrap().expect("a line, and not the end");
                if line.contains(part) {
                    return line;
                }
                read.push(line);
            }
        };
        let found = timeout(Timing::event(), search).await;
        found.unwrap_or_else(|_| panic!("no line with {part:?}: {read:#?}"))
    }
}
