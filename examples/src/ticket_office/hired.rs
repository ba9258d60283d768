use std::collections::BTreeSet;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::messages::{Briefing, Done};
use super::orders::Order;

/// How long a seller may take to close its session.
const GRACE: Duration = Duration::from_secs(5);

/// A seller's process, as the office has it.
///
/// It ends when its standard input does: when this is closed or dropped, and when the office itself dies.
#[derive(Debug)]
pub(crate) struct Hired {
    pub(crate) number: u32,
    pub(crate) pid: u32,
    /// The orders given to it that it has not said to be done.
    pub(crate) in_hand: BTreeSet<u32>,
    child: Child,
    input: ChildStdin,
}

/// What a seller tells the office.
#[derive(Debug)]
pub(crate) enum News {
    /// It has done an order.
    Done { seller: u32, done: Done },
    /// Its process has ended, or will say nothing any more.
    Left { seller: u32 },
}

impl Hired {
    /// Starts a process of this same program.
    pub(crate) async fn start(briefing: &Briefing, news: mpsc::UnboundedSender<News>) -> io::Result<Self> {
        let number = briefing.seller;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--seller", &number.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for the office alone, which then closes in order.
            .process_group(0)
            .spawn()?;
        let (Some(pid), Some(input), Some(output)) = (child.id(), child.stdin.take(), child.stdout.take())
        else {
            return Err(io::Error::other("a seller's process has no pipes"));
        };
        tokio::spawn(listen(number, output, news));
        let mut hired = Self { number, pid, in_hand: BTreeSet::new(), child, input };
        hired.say(serde_json::json!(briefing)).await;
        Ok(hired)
    }

    /// Gives it an order.
    pub(crate) async fn hand(&mut self, order: &Order) {
        self.in_hand.insert(order.number);
        self.say(serde_json::json!(order)).await;
    }

    /// Kills it with SIGKILL, without a chance to do anything about it.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.start_kill()
    }

    /// Lets it go home, and waits until it has.
    pub(crate) async fn close(self) {
        let Self { mut child, input, .. } = self;
        drop(input);
        if timeout(GRACE, child.wait()).await.is_err() {
            // It may have ended a moment ago; nothing else can go wrong.
            let _ = child.kill().await;
        }
    }

    async fn say(&mut self, message: serde_json::Value) {
        // A seller that does not listen any more has left, and that comes as news.
        let _ = self.input.write_all(format!("{message}\n").as_bytes()).await;
    }
}

async fn listen(seller: u32, output: ChildStdout, news: mpsc::UnboundedSender<News>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // Half a line is what a killed seller leaves: the ledger knows about that order.
        let Ok(done) = serde_json::from_str(&line) else { break };
        if news.send(News::Done { seller, done }).is_err() {
            return;
        }
    }
    let _ = news.send(News::Left { seller });
}
