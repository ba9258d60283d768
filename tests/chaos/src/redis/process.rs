//! A contending process, as the driver has it.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockkeeper_redis_tests::Proxy;
use lockkeeper_tests::Timing;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::RedisOptions;
use crate::Failure;
use crate::history::{Event, What};

/// A client: one process after the other, and its link to the server.
#[derive(Debug)]
pub(super) struct Contender {
    number: usize,
    program: PathBuf,
    folder: PathBuf,
    lease: u64,
    seed: u64,
    fenced: SocketAddr,
    pub(super) proxy: Proxy,
    before: AtomicUsize,
    running: Mutex<Option<Child>>,
}

impl Contender {
    pub(super) async fn start(
        number: usize,
        program: &Path,
        folder: &Path,
        options: &RedisOptions,
        server: u16,
        fenced: SocketAddr,
    ) -> Result<Self, Failure> {
        let contender = Self {
            number,
            program: program.to_owned(),
            folder: folder.to_owned(),
            lease: options.lease,
            seed: options.seed.wrapping_mul(100).wrapping_add(number as u64),
            fenced,
            proxy: Proxy::start(server).await?,
            before: AtomicUsize::new(0),
            running: Mutex::default(),
        };
        contender.launch().await?;
        Ok(contender)
    }

    pub(super) fn name(&self) -> String {
        format!("c{}", self.number)
    }

    fn file(&self, extension: &str) -> PathBuf {
        let before = self.before.load(Ordering::SeqCst);
        self.folder.join(format!("{}.{before}.{extension}", self.name()))
    }

    async fn launch(&self) -> Result<(), Failure> {
        let mut command = Command::new(&self.program);
        command.args(["redis-client", "--url", &self.proxy.url(), "--lease", &self.lease.to_string()]);
        command.args(["--seed", &self.seed.to_string(), "--fenced", &self.fenced.to_string()]);
        command.arg("--history").arg(self.file("jsonl"));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(self.file("err"))?);
        *self.running.lock().await = Some(command.kill_on_drop(true).spawn()?);
        Ok(())
    }

    pub(super) async fn kill(&self) -> Result<(), Failure> {
        match self.running.lock().await.take() {
            Some(mut child) => Ok(child.kill().await?),
            None => Ok(()),
        }
    }

    pub(super) async fn revive(&self) -> Result<(), Failure> {
        self.before.fetch_add(1, Ordering::SeqCst);
        self.launch().await
    }

    pub(super) async fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let running = self.running.lock().await;
        // Not reaped before the child is waited for, so the number is its own.
        let pid = running.as_ref().and_then(Child::id).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(kill_process(pid.ok_or("no process to signal")?, signal)?)
    }

    /// The instant of the last grant, or admission, of the present process.
    pub(super) fn last_grant(&self, name: &str) -> Result<u64, Failure> {
        let text = fs::read_to_string(self.file("jsonl"))?;
        let events = text.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let grants = events.filter(|event| match &event.what {
            What::Granted { lock, .. } | What::Started { lock, .. } => lock == name,
            _ => false,
        });
        Ok(grants.map(|event| event.at).next_back().unwrap_or_default())
    }

    /// Lets it end. Returns how it failed, if it did.
    pub(super) async fn stop(&self) -> Result<Option<String>, Failure> {
        let Some(mut child) = self.running.lock().await.take() else { return Ok(None) };
        drop(child.stdin.take());
        match tokio::time::timeout(Timing::event(), child.wait()).await {
            Ok(status) => {
                let status = status?;
                Ok((!status.success()).then(|| format!("{} ended ({status})", self.name())))
            }
            Err(_) => {
                child.kill().await?;
                Ok(Some(format!("{} did not end", self.name())))
            }
        }
    }
}
