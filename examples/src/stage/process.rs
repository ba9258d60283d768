use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long a process may take to close its session.
const GRACE: Duration = Duration::from_secs(5);

/// A process of this same program, as the one that started it has it.
///
/// It ends when its standard input does: when this is closed or dropped, and when the first process itself dies.
#[derive(Debug)]
pub struct Process {
    /// As it was given.
    pub number: u32,
    /// The operating system's.
    pub pid: u32,
    child: Child,
    input: ChildStdin,
    is_paused: bool,
}

/// What is heard of a process. Each line it writes is an object in JSON.
#[derive(Debug)]
pub enum News<T> {
    /// It has written this.
    Said {
        /// Which process.
        by: u32,
        /// The object.
        what: T,
    },
    /// It has ended, or will say nothing any more.
    Left {
        /// Which process.
        who: u32,
    },
}

impl Process {
    /// Starts it with these arguments and `--process <number>`, and says `briefing` first.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub async fn start<T: DeserializeOwned + Send + 'static>(
        number: u32,
        arguments: impl IntoIterator<Item = OsString>,
        briefing: &impl Serialize,
        news: mpsc::UnboundedSender<News<T>>,
    ) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .args(["--process", &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for the first process alone, which then closes in order.
            .process_group(0)
            .spawn()?;
        let (Some(pid), Some(input), Some(output)) = (child.id(), child.stdin.take(), child.stdout.take())
        else {
            return Err(io::Error::other("a process has no pipes"));
        };
        tokio::spawn(listen(number, output, news));
        let mut process = Self { number, pid, child, input, is_paused: false };
        process.say(briefing).await;
        Ok(process)
    }

    /// Writes a line to it.
    pub async fn say(&mut self, message: &impl Serialize) {
        let message = serde_json::json!(message);
        // One that does not listen any more has left, and that comes as news.
        let _ = self.input.write_all(format!("{message}\n").as_bytes()).await;
    }

    /// Kills it with SIGKILL, without a chance to do anything about it.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.start_kill()
    }

    /// Stops it where it stands, with SIGSTOP: it does not know.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn pause(&mut self) -> io::Result<()> {
        self.is_paused = true;
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn resume(&mut self) -> io::Result<()> {
        self.is_paused = false;
        self.signal(Signal::CONT)
    }

    /// Waits for its end; whether it was a good one.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub async fn ended_well(&mut self) -> io::Result<bool> {
        Ok(self.child.wait().await?.success())
    }

    /// Ends its input, and waits until it has gone.
    pub async fn close(self) {
        let Self { mut child, input, is_paused, .. } = self;
        drop(input);
        if is_paused || timeout(GRACE, child.wait()).await.is_err() {
            // It may have ended a moment ago; nothing else can go wrong.
            let _ = child.kill().await;
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Not yet waited for, so the number is still its own.
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        pid.map_or(Ok(()), |pid| kill_process(pid, signal).map_err(io::Error::from))
    }
}

async fn listen<T: DeserializeOwned>(number: u32, output: ChildStdout, news: mpsc::UnboundedSender<News<T>>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // Half a line is what a killed process leaves.
        let Ok(what) = serde_json::from_str(&line) else { break };
        if news.send(News::Said { by: number, what }).is_err() {
            return;
        }
    }
    let _ = news.send(News::Left { who: number });
}
