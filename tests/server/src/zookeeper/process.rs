use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::ZooKeeperError;

/// Ends a server whose test process cannot do so any more, and removes its folder.
///
/// It reads from a pipe whose other end only the test process has: at the end of the pipe that process is
/// dead, or does not need the server any more. A number may be another process's by then, so only one whose
/// command line names the folder is killed.
const WATCHDOG: &str = r#"
trap '' INT TERM HUP
pid=
while IFS= read -r line; do pid=$line; done
[ -n "$pid" ] && grep -qsF -- "$1" "/proc/$pid/cmdline" && kill -KILL "$pid"
while [ -n "$pid" ] && grep -qsF -- "$1" "/proc/$pid/cmdline"; do sleep 0.02; done
rm -rf -- "$1"
"#;

/// Waits for one line, then becomes the server: so the watchdog knows the process before it acts.
const GATE: &str = r#"IFS= read -r go && exec "$@" </dev/null"#;

/// A process of the server, until it is reaped.
#[derive(Debug)]
pub(super) struct Process(Child);

/// The shell that outlives the test process.
#[derive(Debug)]
pub(super) struct Watchdog(Child);

impl Process {
    pub(super) fn start(
        java: &Path,
        arguments: &[String],
        log: &Path,
        watchdog: &mut Watchdog,
    ) -> Result<Self, ZooKeeperError> {
        let output = File::options().create(true).append(true).open(log);
        let output = output.map_err(ZooKeeperError::io("open the log of the server"))?;
        let errors = output.try_clone().map_err(ZooKeeperError::io("open the log of the server"))?;
        let mut command = Command::new("sh");
        command.args(["-c", GATE, "sh"]).arg(java).args(arguments);
        command.stdin(Stdio::piped()).stdout(output).stderr(errors);
        let child = spawn(&mut command, "start the server")?;
        let mut process = Self(child);
        watchdog.watch(process.0.id())?;
        if let Some(mut gate) = process.0.stdin.take() {
            tell(&mut gate, "go").map_err(ZooKeeperError::io("start the server"))?;
        }
        Ok(process)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its status, once it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten()
    }

    /// Whether the system says that it is paused.
    pub(super) fn is_paused(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        // The state follows the name, which is in parentheses.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
    }

    /// Sends a signal; one to an ended process is lost.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), ZooKeeperError> {
        if self.ended().is_some() {
            // Its number may be another process's by now.
            return Ok(());
        }
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).ok_or(ZooKeeperError::Down)?;
        kill_process(pid, signal).map_err(|error| ZooKeeperError::io("signal the server")(error.into()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Sends no signal to a process that was reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Watchdog {
    /// It will remove `folder`, which the command line of the server names.
    pub(super) fn over(folder: &Path) -> Result<Self, ZooKeeperError> {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHDOG, "lockkeeper-watchdog"]).arg(folder).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        spawn(&mut command, "start a watchdog of the server").map(Self)
    }

    fn watch(&mut self, pid: u32) -> Result<(), ZooKeeperError> {
        let pipe = self.0.stdin.as_mut().ok_or(ZooKeeperError::Down)?;
        tell(pipe, &pid.to_string()).map_err(ZooKeeperError::io("tell the watchdog of the server"))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Out of the terminal's group, so that Ctrl-C is for the test process alone.
fn spawn(command: &mut Command, attempt: &'static str) -> Result<Child, ZooKeeperError> {
    use std::os::unix::process::CommandExt;

    command.process_group(0).spawn().map_err(ZooKeeperError::io(attempt))
}

fn tell(pipe: &mut impl std::io::Write, line: &str) -> std::io::Result<()> {
    pipe.write_all(format!("{line}\n").as_bytes())
}
