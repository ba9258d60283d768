//! Servers, and commands that run.

use std::ffi::OsStr;
use std::process::Stdio;

use lockkeeper::{ConnectionManager, Mutex};
use lockkeeper_tests::{Ensemble, Timing, eventually, left_out};
use lockkeeper_testserver::TestServer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// What a script does until a signal ends it. A shell that is about to sleep does not wake up for a signal
/// that has just come, so it never sleeps long.
pub(crate) const UNTIL_A_SIGNAL: &str = "while :; do sleep 0.1; done";

/// A server, and how a command reaches it.
pub(crate) struct Fixture {
    pub(crate) servers: String,
    /// So long that a busy machine does not end it, unless a test is [brief](Self::brief).
    pub(crate) session_timeout: &'static str,
    pub(crate) tick_time: &'static str,
    pub(crate) embedded: Option<TestServer>,
}

impl Fixture {
    /// An embedded server of its own.
    pub(crate) async fn embedded() -> Self {
        let server = TestServer::start().await.unwrap();
        let fixture = Self::at(&server.connect_string());
        Self { embedded: Some(server), ..fixture }
    }

    /// The embedded servers that listen there.
    pub(crate) fn at(servers: &str) -> Self {
        Self { servers: servers.to_owned(), session_timeout: "30s", tick_time: "100ms", embedded: None }
    }

    /// Apache ZooKeeper, with a tick of 500 ms.
    pub(crate) fn real(servers: &str) -> Self {
        Self { tick_time: "500ms", ..Self::at(servers) }
    }

    /// With a session of which a test can wait for the end.
    pub(crate) fn brief(self) -> Self {
        Self { session_timeout: "4s", ..self }
    }

    /// An embedded server, and Apache ZooKeeper unless it is left out.
    pub(crate) async fn both() -> Vec<Self> {
        let mut fixtures = vec![Self::embedded().await];
        if !left_out() {
            fixtures.push(Self::real(&Ensemble::shared().await.unwrap().connect_string()));
        }
        fixtures
    }

    /// The command with these arguments.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockkeeper"));
        self.reach(&mut command);
        command.args(arguments);
        command
    }

    /// Lets a command reach the servers.
    pub(crate) fn reach(&self, command: &mut Command) {
        command
            .env("LOCKKEEPER_CONNECT", &self.servers)
            .env("LOCKKEEPER_SESSION_TIMEOUT", self.session_timeout)
            .env("LOCKKEEPER_TICK_TIME", self.tick_time);
    }

    /// Starts the command, and closes its standard input at its end.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// Runs the command to its end.
    pub(crate) async fn ended<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ended {
        self.start(arguments).ended().await
    }

    /// Waits until this many contenders are in the queue of a mutex.
    pub(crate) async fn contenders(&self, path: &str, count: usize) {
        let manager = ConnectionManager::connect(&self.servers).await.unwrap();
        let mutex = Mutex::new(&manager, path).unwrap();
        let look = async || (mutex.inspect().await.unwrap().contenders().len() == count).then_some(());
        eventually(format!("{count} contenders at {path}"), Timing::event(), look).await.unwrap();
    }
}

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    pub(crate) input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    messages: Lines<BufReader<ChildStderr>>,
}

/// A command that has ended, with all processes that had its output.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// What was not read before.
    pub(crate) output: String,
    pub(crate) messages: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let messages = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, messages, child }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().unwrap().cast_signed()
    }

    /// The next line of its output.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(Timing::settle(), self.output.next_line()).await.expect("a line");
        line.unwrap().expect("a line, and not the end")
    }

    /// The next line of its messages.
    pub(crate) async fn message(&mut self) -> String {
        let line = timeout(Timing::settle(), self.messages.next_line()).await.expect("a message");
        line.unwrap().expect("a message, and not the end")
    }

    /// Reads until this line.
    pub(crate) async fn until(&mut self, expected: &str) {
        while self.line().await != expected {}
    }

    pub(crate) async fn write(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a signal to the command alone.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.pid());
    }

    /// Waits until the command has ended, and until no process has its output any more: then every process
    /// that it started is gone.
    pub(crate) async fn ended(mut self) -> Ended {
        drop(self.input.take());
        let mut rest = String::new();
        let work = async {
            while let Some(line) = self.output.next_line().await.unwrap() {
                rest.push_str(&line);
                rest.push('\n');
            }
            let mut messages = String::new();
            while let Some(line) = self.messages.next_line().await.unwrap() {
                messages.push_str(&line);
                messages.push('\n');
            }
            (self.child.wait().await.unwrap(), messages)
        };
        let (status, messages) = timeout(Timing::settle(), work).await.expect("every process ends");
        Ended { code: status.code(), output: rest, messages }
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, pid: i32) {
    assert!(send(name, pid), "SIG{name} to {pid}");
}

/// Sends a signal to a process, and returns whether the process exists.
pub(crate) fn send(name: &str, pid: i32) -> bool {
    let mut kill = std::process::Command::new("kill");
    kill.args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status().unwrap().success()
}

/// The children of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Waits until a process is gone, or a zombie.
pub(crate) async fn gone(pid: i32) {
    let look = async || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z ").then_some(()),
        Err(_) => Some(()),
    };
    eventually(format!("process {pid} is gone"), Timing::event(), look).await.unwrap();
}
