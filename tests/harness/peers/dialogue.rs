//! A process that is asked by lines and answers by lines, in any order.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::timeout;

use super::driver::not_installed;
use super::error::PeerError;
use crate::timing::Timing;

const LAST_WORDS_MAX: usize = 30;

/// The process, and what it has been asked.
///
/// It ends when its input does, and so with this process, however that dies. Dropping this kills it.
#[derive(Debug)]
pub(super) struct Dialogue {
    child: AsyncMutex<Child>,
    input: AsyncMutex<ChildStdin>,
    asked: Arc<Mutex<Asked>>,
    error_output: ErrorOutput,
}

/// The questions without an answer yet, by their tag. There is no table once the process has ended.
#[derive(Debug)]
struct Asked {
    next: u64,
    waiting: Option<HashMap<u64, oneshot::Sender<Answer>>>,
}

type Answer = Result<String, String>;

/// The last lines of the standard error.
#[derive(Clone, Debug, Default)]
struct ErrorOutput(Arc<Mutex<VecDeque<String>>>);

impl Dialogue {
    /// Starts the process; yields what it says behind `ready`.
    pub(super) async fn start(mut command: Command) -> Result<(Self, String), PeerError> {
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => not_installed("its program (`java`, `python3`)"),
            _ => PeerError::io("start a peer")(error),
        })?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(PeerError::malformed("nothing: its pipes are missing"));
        };
        let error_output = ErrorOutput::default();
        let reader = tokio::spawn(error_output.clone().keep(errors));
        let mut lines = BufReader::new(output).lines();
        let greeting = timeout(Timing::settle(), lines.next_line()).await;
        let greeting = greeting.map_err(|_| error_output.timeout("connect", Timing::settle()))?;
        let Ok(Some(greeting)) = greeting else {
            // Its last output may still be in the pipe.
            let _ = timeout(Timing::signal(), reader).await;
            return Err(error_output.ended("connect"));
        };
        let ready = greeting.strip_prefix("ready ").ok_or_else(|| PeerError::malformed(&greeting))?;
        let asked = Arc::new(Mutex::new(Asked { next: 0, waiting: Some(HashMap::new()) }));
        tokio::spawn(hear(lines, Arc::clone(&asked)));
        let (child, input) = (AsyncMutex::new(child), AsyncMutex::new(input));
        Ok((Self { child, input, asked, error_output }, ready.to_owned()))
    }

    /// The number of the process; `None` once it has ended.
    pub(super) async fn pid(&self) -> Option<u32> {
        self.child.lock().await.id()
    }

    /// Asks, and waits for the answer for at most `limit`. Dropping the future does not take the question
    /// back.
    pub(super) async fn ask(&self, request: &str, limit: Duration) -> Result<String, PeerError> {
        let (tag, answer) = self.asked.lock().enter().ok_or_else(|| self.error_output.ended(request))?;
        let line = format!("{tag} {request}\n");
        // The pipe of a process that has ended is broken, which the missing answer reports better.
        let _ = self.input.lock().await.write_all(line.as_bytes()).await;
        match timeout(limit, answer).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(exception))) => Err(PeerError::Failed { request: request.to_owned(), exception }),
            Ok(Err(_)) => Err(self.error_output.ended(request)),
            Err(_) => Err(self.error_output.timeout(request, limit)),
        }
    }

    /// Kills the process (SIGKILL) and waits for its end.
    pub(super) async fn kill(&self) -> Result<(), PeerError> {
        self.child.lock().await.kill().await.map_err(PeerError::io("kill a peer"))
    }

    /// Waits until the process has ended by itself.
    pub(super) async fn ended(&self) -> Result<(), PeerError> {
        let mut child = self.child.lock().await;
        let status = timeout(Timing::signal(), child.wait()).await;
        let status = status.map_err(|_| self.error_output.timeout("end", Timing::signal()))?;
        status.map(|_| ()).map_err(PeerError::io("wait for the end of a peer"))
    }
}

impl Asked {
    fn enter(&mut self) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let (sender, receiver) = oneshot::channel();
        self.next += 1;
        self.waiting.as_mut()?.insert(self.next, sender);
        Some((self.next, receiver))
    }

    fn answered(&mut self, line: &str) -> Option<()> {
        let (tag, rest) = line.split_once(' ')?;
        let (verdict, text) = rest.split_once(' ')?;
        let answer = if verdict == "ok" { Ok(text.to_owned()) } else { Err(text.to_owned()) };
        // The caller may have stopped waiting for it.
        let _ = self.waiting.as_mut()?.remove(&tag.parse().ok()?)?.send(answer);
        Some(())
    }
}

/// Hands out the answers; at their end, all remaining callers get an error.
async fn hear(mut lines: Lines<BufReader<ChildStdout>>, asked: Arc<Mutex<Asked>>) {
    while let Ok(Some(line)) = lines.next_line().await {
        asked.lock().answered(&line);
    }
    asked.lock().waiting = None;
}

impl ErrorOutput {
    async fn keep(self, errors: ChildStderr) {
        let mut lines = BufReader::new(errors).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = self.0.lock();
            kept.push_back(line);
            if kept.len() > LAST_WORDS_MAX {
                kept.pop_front();
            }
        }
    }

    fn shown(&self) -> String {
        self.0.lock().iter().cloned().collect::<Vec<_>>().join("\n")
    }

    fn ended(&self, request: &str) -> PeerError {
        PeerError::Ended { request: request.to_owned(), error_output: self.shown() }
    }

    fn timeout(&self, request: &str, limit: Duration) -> PeerError {
        PeerError::Timeout { request: request.to_owned(), limit, error_output: self.shown() }
    }
}
