//! A client's process, as the driver has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use lockkeeper_tests::{Ensemble, Proxies, Timing};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::Failure;
use crate::fixture::{COUNTING, ENDING, FOLLOWING, MEETING, PUTTING, STARTING, UPDATING, item_of, job_of};
use crate::history::{Event, What};

/// How to start the processes of a client.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) seed: u64,
    pub(crate) fenced: SocketAddr,
    pub(crate) session: Duration,
    pub(crate) tick: Duration,
}

/// A client: one process after the other, and the proxies between it and the servers.
#[derive(Debug)]
pub(crate) struct Client {
    /// Such as `c1`.
    pub(crate) name: String,
    pub(crate) proxies: Proxies,
    cheats: bool,
    /// How many its processes have at a time.
    sessions: usize,
    launch: Launch,
    running: tokio::sync::Mutex<Option<Child>>,
    tail: Mutex<Tail>,
    died: Mutex<Vec<String>>,
}

/// The history of the present process, as far as it was read.
#[derive(Debug, Default)]
struct Tail {
    /// How many processes there were before.
    before: usize,
    offset: u64,
    seen: Seen,
}

/// The progress of a client by its history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// When each lock was granted last, and when each work beside them succeeded.
    pub(crate) grants: BTreeMap<String, u64>,
    pub(crate) quiet: bool,
    /// The items that it holds, by the number of the hold.
    items: BTreeMap<u64, String>,
    /// The members of the group and their processes, as its view shows them.
    pub(crate) members: BTreeMap<String, String>,
    /// The instances of the service and their processes, as its balancer knows them.
    pub(crate) instances: BTreeMap<String, String>,
}

impl Seen {
    /// The items that it holds.
    pub(crate) fn items(&self) -> BTreeSet<&str> {
        self.items.values().map(String::as_str).collect()
    }

    fn take(&mut self, Event { at, what, .. }: Event) {
        if let Some(work) = beside(&what) {
            self.grants.insert(work.to_owned(), at);
        }
        match what {
            What::Granted { lock, hold, .. } => {
                self.items.extend(item_of(&lock).map(|item| (hold, item.to_owned())));
                if job_of(&lock).is_none() {
                    self.grants.insert(lock, at);
                }
            }
            What::Ended { hold } | What::Invalid { hold, .. } => _ = self.items.remove(&hold),
            What::Sees { members } => self.members = members,
            What::Finds { instances } => self.instances = instances,
            What::Quiet => self.quiet = true,
            _ => {}
        }
    }
}

impl Client {
    pub(crate) async fn start(
        number: usize,
        cheats: bool,
        ensemble: &Ensemble,
        launch: Launch,
    ) -> Result<Self, Failure> {
        let client = Self {
            name: format!("c{number}"),
            proxies: Proxies::start(ensemble).await?,
            cheats,
            // One client acquires its locks through a pool.
            sessions: if number == 1 { 2 } else { 1 },
            launch,
            running: tokio::sync::Mutex::default(),
            tail: Mutex::default(),
            died: Mutex::default(),
        };
        client.launch().await?;
        Ok(client)
    }

    async fn launch(&self) -> Result<(), Failure> {
        let process = self.process();
        let Launch { program, folder, seed, fenced, session, tick } = &self.launch;
        let errors = File::create(folder.join(format!("{process}.err")))?;
        let mut command = Command::new(program);
        command.arg("client");
        command.args(["--connect", &self.proxies.connect_string()]);
        command.arg("--history").arg(self.history());
        command.args(["--seed", &seed.to_string(), "--fenced", &fenced.to_string()]);
        command.args([
            "--session",
            &session.as_millis().to_string(),
            "--tick",
            &tick.as_millis().to_string(),
        ]);
        command.args(["--sessions", &self.sessions.to_string()]);
        if self.cheats {
            command.arg("--cheat");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(errors).kill_on_drop(true);
        *self.running.lock().await = Some(command.spawn()?);
        Ok(())
    }

    /// The name of its present process, such as `c1.0`.
    pub(crate) fn process(&self) -> String {
        format!("{}.{}", self.name, self.tail.lock().before)
    }

    fn history(&self) -> PathBuf {
        self.launch.folder.join(format!("{}.jsonl", self.process()))
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub(crate) async fn kill(&self) -> Result<(), Failure> {
        if let Some(mut child) = self.running.lock().await.take() {
            if let Some(status) = child.try_wait()? {
                self.note(status);
            }
            child.kill().await?;
        }
        Ok(())
    }

    /// Starts a new process that replaces a killed one.
    pub(crate) async fn revive(&self) -> Result<(), Failure> {
        {
            let mut tail = self.tail.lock();
            *tail = Tail { before: tail.before + 1, ..Tail::default() };
        }
        self.launch().await
    }

    pub(crate) async fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let running = self.running.lock().await;
        // Not reaped before the child is waited for, so the number is its own.
        let pid = running.as_ref().and_then(Child::id).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(kill_process(pid.ok_or("no process to signal")?, signal)?)
    }

    /// Writes a line to its standard input.
    pub(crate) async fn command(&self, line: &str) -> Result<(), Failure> {
        let mut running = self.running.lock().await;
        let input = running.as_mut().and_then(|child| child.stdin.as_mut()).ok_or("no process to command")?;
        // One that has ended is noted when it is waited for.
        let _ = input.write_all(format!("{line}\n").as_bytes()).await;
        Ok(())
    }

    /// Lets it close its session and end.
    pub(crate) async fn stop(&self) -> Result<(), Failure> {
        let Some(mut child) = self.running.lock().await.take() else { return Ok(()) };
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(b"stop\n").await;
        }
        match tokio::time::timeout(Timing::event(), child.wait()).await {
            Ok(status) => self.note(status?),
            Err(_) => {
                self.died.lock().push(format!("{} did not end", self.name));
                child.kill().await?;
            }
        }
        Ok(())
    }

    fn note(&self, status: ExitStatus) {
        if !status.success() {
            let process = self.process();
            self.died.lock().push(format!("{process} ended by itself ({status}): see {process}.err"));
        }
    }

    /// Processes that ended by themselves, and how.
    pub(crate) fn died(&self) -> Vec<String> {
        self.died.lock().clone()
    }

    /// Reads on in the history of the present process.
    pub(crate) fn progress(&self) -> Seen {
        let path = self.history();
        let mut tail = self.tail.lock();
        let Tail { offset, seen, .. } = &mut *tail;
        if let Ok(mut file) = File::open(path)
            && file.seek(SeekFrom::Start(*offset)).is_ok()
        {
            let mut lines = BufReader::new(file);
            let mut line = Vec::new();
            // A line that is being written is read when it is complete.
            while lines.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
                *offset += line.len() as u64;
                if let Ok(event) = serde_json::from_slice(&line) {
                    seen.take(event);
                }
                line.clear();
            }
        }
        seen.clone()
    }
}

/// The work beside the locks that this event is a success of.
fn beside(what: &What) -> Option<&'static str> {
    match what {
        What::Added { .. } => Some(COUNTING),
        What::Synced { .. } => Some(FOLLOWING),
        What::Left { .. } => Some(MEETING),
        What::Started { .. } => Some(STARTING),
        What::Put { .. } => Some(PUTTING),
        What::Done { .. } => Some(ENDING),
        What::Updated { .. } => Some(UPDATING),
        _ => None,
    }
}
