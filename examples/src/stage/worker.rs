use std::io::{self, Write};
use std::time::Duration;

use lockkeeper::{ConnectionManager, PathError, ZnodePath, Znodes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin, stdin};
use tokio::sync::{Mutex, mpsc};

use super::connection::Connection;
use super::failure::Failure;

/// How long closing the session may take.
const GRACE: Duration = Duration::from_secs(1);

/// A process that works, with a session of its own.
#[derive(Debug)]
pub struct Worker {
    number: u32,
    manager: ConnectionManager,
    root: ZnodePath,
    heard: Mutex<mpsc::UnboundedReceiver<String>>,
}

/// All it has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Briefing {
    pub(super) connection: Connection,
    pub(super) root: String,
}

/// What it says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told<T> {
    /// It has a session, and waits for a line that lets it begin.
    Ready,
    /// Of the example's own.
    News(T),
}

impl Worker {
    /// From 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The one connection of this process.
    #[must_use]
    pub fn manager(&self) -> &ConnectionManager {
        &self.manager
    }

    /// Nodes beside the locks.
    #[must_use]
    pub fn znodes(&self) -> Znodes {
        self.manager.znodes()
    }

    /// The path of this name within this run.
    ///
    /// # Errors
    ///
    /// [`PathError`] when there can be none.
    pub fn path(&self, name: &str) -> Result<ZnodePath, PathError> {
        name.split('/').try_fold(self.root.clone(), |path, name| path.child(name))
    }

    /// Tells the process that leads.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn tell(&self, news: &impl Serialize) -> Result<(), Failure> {
        Ok(say(&Told::News(news))?)
    }

    /// What the process that leads says next.
    ///
    /// # Errors
    ///
    /// When it is nothing that can be understood.
    pub async fn hear<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        match self.heard.lock().await.recv().await {
            Some(line) => Ok(serde_json::from_str(&line)?),
            // Whoever waits for this is about to be dropped.
            None => std::future::pending().await,
        }
    }
}

/// Works until it is done, or until standard input ends, which it also does when the process that leads dies.
pub(super) async fn perform(
    number: u32,
    name: &str,
    work: impl AsyncFnOnce(&Worker) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut lines = BufReader::new(stdin()).lines();
    let Some(first) = lines.next_line().await? else { return Ok(()) };
    let briefing: Briefing = serde_json::from_str(&first)?;
    let (sender, heard) = mpsc::unbounded_channel();
    let mut closed = tokio::spawn(hear(lines, sender));

    let who = format!("{name}, process {number}, pid {}", std::process::id());
    let manager = tokio::select! {
        opened = briefing.connection.open(&who) => opened?,
        _ = &mut closed => return Ok(()),
    };
    let worker =
        Worker { number, manager: manager.clone(), root: briefing.root.parse()?, heard: Mutex::new(heard) };
    say(&Told::<()>::Ready)?;
    let worked = tokio::select! {
        worked = async {
            let _begin: String = worker.hear().await?;
            work(&worker).await
        } => worked,
        // Dropping guards and waits leaves nothing behind.
        _ = &mut closed => Ok(()),
    };
    // A session that cannot be closed in order, since the embedded server died with the process that leads, expires.
    let _ = manager.shutdown_within(GRACE).await;
    worked
}

async fn hear(mut lines: Lines<BufReader<Stdin>>, heard: mpsc::UnboundedSender<String>) {
    while let Ok(Some(line)) = lines.next_line().await {
        if heard.send(line).is_err() {
            return;
        }
    }
}

fn say(told: &impl Serialize) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(told)?)
}
