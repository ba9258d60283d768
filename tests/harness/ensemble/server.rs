//! One server, and the faults of its process.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::process::{Process, ProcessState};
use super::watchdog::Watchdog;
use crate::error::HarnessError;
use crate::timing::{Timing, eventually};

/// One ZooKeeper server of an [`Ensemble`](super::Ensemble). Every verb returns when its effect has been
/// seen.
#[derive(Debug)]
pub struct Server {
    index: usize,
    address: SocketAddr,
    launch: Launch,
    process: Mutex<Option<Process>>,
    /// Its process was sent a signal.
    was_struck: AtomicBool,
    /// The operations on one server exclude each other.
    turn: tokio::sync::Mutex<()>,
}

/// How to start a server's process.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) java: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) home: PathBuf,
    pub(crate) watchdog: Arc<Watchdog>,
}

impl Server {
    pub(crate) fn new(index: usize, address: SocketAddr, launch: Launch) -> Self {
        Self {
            index,
            address,
            launch,
            process: Mutex::new(None),
            was_struck: AtomicBool::new(false),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// Its index in the ensemble, from 0. (ZooKeeper's own `myid` is one more.)
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The address that clients connect to. It stays the same over restarts.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of its process, `None` while it is down.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.lock().as_ref().map(Process::pid)
    }

    /// Whether its process is there and not paused.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state() == ProcessState::Running
    }

    /// Where it writes its log, over all its restarts.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.launch.home.join("server.log")
    }

    /// Kills the process (SIGKILL) and waits for its end. Killing a paused server works, and one that is down
    /// is left so.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if the process does not end.
    pub async fn kill(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        self.end(Signal::KILL).await
    }

    /// Ends the process in an orderly way (SIGTERM) and waits for its end. A paused one is resumed for it.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Timeout`] if the process does not end.
    pub async fn stop(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        self.end(Signal::TERM).await
    }

    /// Stops the process in its tracks (SIGSTOP), connections open, and waits until the system says so.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Down`] without a process.
    pub async fn pause(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        self.signal(Signal::STOP)?;
        self.reaches(ProcessState::Paused).await
    }

    /// Lets a paused process continue (SIGCONT), and waits until it answers.
    ///
    /// It may still believe that it leads: wait with [`Ensemble::settled`](super::Ensemble::settled) for its
    /// peers to set it right.
    ///
    /// # Errors
    ///
    /// [`HarnessError::Down`] without a process, [`HarnessError::Timeout`] if it does not answer.
    pub async fn resume(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        self.signal(Signal::CONT)?;
        self.reaches(ProcessState::Running).await?;
        self.answers().await
    }

    /// Starts a server that is down, without waiting for a quorum: returns when it answers `ruok`.
    ///
    /// # Errors
    ///
    /// [`HarnessError::EndedAtStart`] with its log, or [`HarnessError::Timeout`].
    pub async fn start(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        if self.pid().is_none() {
            self.launch()?;
        }
        self.answers().await
    }

    /// Starts the server anew on its data and its ports (SIGTERM first if it is up), and waits until it
    /// leads, follows or is standalone.
    ///
    /// Where the others are too few for a quorum, use [`Server::start`] and then
    /// [`Ensemble::settled`](super::Ensemble::settled).
    ///
    /// # Errors
    ///
    /// [`HarnessError::EndedAtStart`] with its log, or [`HarnessError::Timeout`].
    pub async fn restart(&self) -> Result<(), HarnessError> {
        let _turn = self.turn.lock().await;
        self.end(Signal::TERM).await?;
        self.launch()?;
        self.serves().await
    }

    /// Starts the process and waits for nothing.
    pub(crate) fn launch(&self) -> Result<(), HarnessError> {
        let Launch { java, arguments, home, watchdog } = &self.launch;
        *self.process.lock() = Some(Process::start(java, arguments, home, &self.log_file(), watchdog)?);
        Ok(())
    }

    /// Waits until it answers and knows its part.
    pub(crate) async fn serves(&self) -> Result<(), HarnessError> {
        let what = format!("server {} serves (its log: {})", self.index, self.log_file().display());
        eventually(what, Timing::settle(), async || match self.role().await {
            Ok(_) if self.answers_itself().await => Some(Ok(())),
            _ if self.state() == ProcessState::Ended => Some(Err(self.ended_at_start())),
            _ => None,
        })
        .await?
    }

    /// Whether its own process answers at its address, and no other server that was faster to take the port.
    async fn answers_itself(&self) -> bool {
        let folder = self.launch.home.to_string_lossy();
        self.word("conf").await.is_ok_and(|settings| settings.contains(&*folder))
    }

    async fn answers(&self) -> Result<(), HarnessError> {
        let what = format!("server {} answers (its log: {})", self.index, self.log_file().display());
        eventually(what, Timing::settle(), async || match self.word("ruok").await {
            Ok(answer) if answer == "imok" => Some(Ok(())),
            _ if self.state() == ProcessState::Ended => Some(Err(self.ended_at_start())),
            _ => None,
        })
        .await?
    }

    fn state(&self) -> ProcessState {
        self.process.lock().as_ref().map_or(ProcessState::Ended, Process::state)
    }

    pub(crate) fn was_struck(&self) -> bool {
        self.was_struck.load(Ordering::Relaxed)
    }

    fn signal(&self, signal: Signal) -> Result<(), HarnessError> {
        self.was_struck.store(true, Ordering::Relaxed);
        let process = self.process.lock();
        process.as_ref().ok_or(HarnessError::Down { server: self.index })?.signal(signal)
    }

    async fn reaches(&self, state: ProcessState) -> Result<(), HarnessError> {
        let what = format!("the process of server {} is {state:?}", self.index);
        eventually(what, Timing::signal(), async || (self.state() == state).then_some(())).await
    }

    async fn end(&self, signal: Signal) -> Result<(), HarnessError> {
        if self.pid().is_none() {
            return Ok(());
        }
        self.signal(signal)?;
        if signal != Signal::KILL {
            // A paused process acts on no other signal before this one.
            self.signal(Signal::CONT)?;
        }
        self.reaches(ProcessState::Ended).await?;
        let process = self.process.lock().take();
        process.map(Process::reap);
        Ok(())
    }

    fn ended_at_start(&self) -> HarnessError {
        let status = self.process.lock().take().and_then(Process::reap);
        let log = fs::read_to_string(self.log_file()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(30)..).unwrap_or_default();
        HarnessError::EndedAtStart {
            server: self.index,
            status: status.map_or_else(|| "no status".to_owned(), |status| status.to_string()),
            log: tail.join("\n"),
        }
    }
}
