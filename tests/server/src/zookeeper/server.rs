use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::process::{Process, Watchdog};
use super::{ZooKeeperBuilder, ZooKeeperError};

/// Between two looks at the process.
const LOOK: Duration = Duration::from_millis(20);

/// How long a server may take to start, to answer, or to end: a busy machine starts Java slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(1);

/// A process of Apache ZooKeeper on a loopback port, with data of its own. A method returns when its effect
/// is there.
///
/// It does not depend on the clock of tokio: a test may pause that. Dropping it ends the process, waits for
/// its end, and removes its folder.
#[derive(Debug)]
pub struct ZooKeeper(Arc<Inner>);

/// How to start the process.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) java: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) port: u16,
}

#[derive(Debug)]
struct Inner {
    launch: Launch,
    state: Mutex<State>,
    folder: TempDir,
}

/// Dropped in this order: the watchdog last, which removes the folder as well.
#[derive(Debug)]
struct State {
    process: Option<Process>,
    watchdog: Watchdog,
}

impl ZooKeeper {
    /// Starts a server with default options.
    ///
    /// # Errors
    ///
    /// As [`ZooKeeperBuilder::start`].
    pub async fn start() -> Result<Self, ZooKeeperError> {
        ZooKeeperBuilder::default().start().await
    }

    /// Options for a server.
    pub fn builder() -> ZooKeeperBuilder {
        ZooKeeperBuilder::default()
    }

    pub(super) async fn launched(launch: Launch, folder: TempDir) -> Result<Self, ZooKeeperError> {
        let watchdog = Watchdog::over(folder.path())?;
        let state = Mutex::new(State { process: None, watchdog });
        let server = Self(Arc::new(Inner { launch, state, folder }));
        server.blocking(Inner::begin).await?;
        Ok(server)
    }

    /// `127.0.0.1:port`, as clients take it. It stays the same over restarts.
    #[must_use]
    pub fn connect_string(&self) -> String {
        self.0.address().to_string()
    }

    /// The number of its process; `None` while there is none.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.state.lock().process.as_ref().map(Process::pid)
    }

    /// Where the server writes its log, over all its restarts.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.0.log_file()
    }

    /// Kills the process (SIGKILL), and waits for its end.
    ///
    /// # Errors
    ///
    /// [`ZooKeeperError::Down`] without a process.
    pub async fn kill(&self) -> Result<(), ZooKeeperError> {
        self.blocking(|inner| inner.end(Signal::KILL)).await
    }

    /// Ends the process in order (SIGTERM), and waits for its end. A paused one continues for it.
    ///
    /// # Errors
    ///
    /// [`ZooKeeperError::Down`] without a process.
    pub async fn stop(&self) -> Result<(), ZooKeeperError> {
        self.blocking(|inner| inner.end(Signal::TERM)).await
    }

    /// Stops the process where it is (SIGSTOP), with its connections.
    ///
    /// # Errors
    ///
    /// [`ZooKeeperError::Down`] without a process.
    pub async fn pause(&self) -> Result<(), ZooKeeperError> {
        self.blocking(|inner| {
            inner.signal(Signal::STOP)?;
            inner.until(|process| process.is_paused().then_some(()))
        })
        .await
    }

    /// Lets a paused process continue (SIGCONT), and waits until it serves.
    ///
    /// # Errors
    ///
    /// [`ZooKeeperError::Down`] without a process, [`ZooKeeperError::Silent`] if it does not serve.
    pub async fn resume(&self) -> Result<(), ZooKeeperError> {
        self.blocking(|inner| {
            inner.signal(Signal::CONT)?;
            inner.serves()
        })
        .await
    }

    /// Starts the server anew, on its data and its port, and waits until it serves. One that runs is stopped
    /// before.
    ///
    /// # Errors
    ///
    /// As [`ZooKeeperBuilder::start`].
    pub async fn restart(&self) -> Result<(), ZooKeeperError> {
        self.blocking(|inner| match inner.end(Signal::TERM) {
            Ok(()) | Err(ZooKeeperError::Down) => inner.begin(),
            Err(error) => Err(error),
        })
        .await
    }

    /// On a thread of its own: neither the runtime waits nor its clock.
    async fn blocking(
        &self,
        work: impl FnOnce(&Inner) -> Result<(), ZooKeeperError> + Send + 'static,
    ) -> Result<(), ZooKeeperError> {
        let inner = Arc::clone(&self.0);
        let joined = spawn_blocking(move || work(&inner)).await;
        joined.map_err(|error| ZooKeeperError::io("wait for the server")(error.into()))?
    }
}

impl Inner {
    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.launch.port))
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn begin(&self) -> Result<(), ZooKeeperError> {
        let mut state = self.state.lock();
        let State { process, watchdog } = &mut *state;
        let Launch { java, arguments, .. } = &self.launch;
        *process = Some(Process::start(java, arguments, &self.log_file(), watchdog)?);
        drop(state);
        self.serves()
    }

    fn signal(&self, signal: Signal) -> Result<(), ZooKeeperError> {
        self.state.lock().process.as_mut().ok_or(ZooKeeperError::Down)?.signal(signal)
    }

    fn end(&self, signal: Signal) -> Result<(), ZooKeeperError> {
        self.signal(signal)?;
        if signal != Signal::KILL {
            // A paused process acts on no other signal before this one.
            self.signal(Signal::CONT)?;
        }
        self.until(|process| process.ended().map(drop))?;
        self.state.lock().process = None;
        Ok(())
    }

    /// Waits until the server answers and knows its own folder: another one may have taken the port.
    fn serves(&self) -> Result<(), ZooKeeperError> {
        let folder = self.folder.path().to_string_lossy().into_owned();
        let served = self.until(|process| match process.ended() {
            Some(status) => Some(Err(status.to_string())),
            None => self.word("conf").is_some_and(|answer| answer.contains(&folder)).then_some(Ok(())),
        })?;
        served.map_err(|status| {
            self.state.lock().process = None;
            let log = fs::read_to_string(self.log_file()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(30)..).unwrap_or_default();
            ZooKeeperError::Ended { status, log: tail.join("\n") }
        })
    }

    /// Looks at the process again and again.
    fn until<T>(&self, seen: impl Fn(&mut Process) -> Option<T>) -> Result<T, ZooKeeperError> {
        for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
            let found = seen(self.state.lock().process.as_mut().ok_or(ZooKeeperError::Down)?);
            if let Some(found) = found {
                return Ok(found);
            }
            #[expect(clippy::disallowed_methods, reason = "on a thread that may block")]
            thread::sleep(LOOK);
        }
        Err(ZooKeeperError::Silent { waited: PATIENCE, log: self.log_file() })
    }

    /// The answer to a four-letter word, if there is one.
    fn word(&self, word: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), ANSWER).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        stream.write_all(word.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}
