//! One server's process, ended by its own number.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};

use super::watchdog::Watchdog;
use crate::error::HarnessError;

/// Waits for one line, then becomes the server: so the watchdog knows the process before it acts.
const GATE: &str = r#"IFS= read -r go && exec "$@" </dev/null"#;

/// A running, paused or ended process. It is not reaped before [`Process::reap`], so its number stays its
/// own.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    watchdog: Arc<Watchdog>,
}

/// The state of a process in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Running,
    Paused,
    Ended,
}

impl Process {
    /// Starts `program` with `arguments`, its output in `log`.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        folder: &Path,
        log: &Path,
        watchdog: &Arc<Watchdog>,
    ) -> Result<Self, HarnessError> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(HarnessError::io(format!("open {}", log.display())))?;
        let errors = output.try_clone().map_err(HarnessError::io("share a log file"))?;
        let child = Command::new("sh")
            .args(["-c", GATE, "sh"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .current_dir(folder)
            .process_group(0)
            .spawn()
            .map_err(HarnessError::io("start a server"))?;
        let mut process = Self { child, watchdog: Arc::clone(watchdog) };
        watchdog.watch(process.child.id())?;
        if let Some(mut gate) = process.child.stdin.take() {
            gate.write_all(b"go\n").map_err(HarnessError::io("let a server start"))?;
        }
        Ok(process)
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal; one to an ended process is lost.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), HarnessError> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| HarnessError::malformed("a process number"))?;
        kill_process(pid, signal).map_err(|error| HarnessError::io("signal a server")(error.into()))
    }

    /// The current state of the process in the system.
    pub(crate) fn state(&self) -> ProcessState {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // The state follows the name, which is in parentheses and may hold any character.
        match stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
            Some('T' | 't') => ProcessState::Paused,
            Some('Z' | 'X') | None => ProcessState::Ended,
            Some(_) => ProcessState::Running,
        }
    }

    /// Waits for the end, at once if [`Process::state`] says so already.
    pub(crate) fn reap(mut self) -> Option<ExitStatus> {
        self.watchdog.forget(self.child.id());
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Sends no signal after the end of the process, as its id may belong to another process by now.
        let _ = self.child.kill();
        self.watchdog.forget(self.child.id());
        let _ = self.child.wait();
    }
}
