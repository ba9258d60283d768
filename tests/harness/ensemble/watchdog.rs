//! Ends the servers when the test process cannot do it itself.
//!
//! A destructor does not run when a process is killed. So a small shell holds the read end of a pipe whose
//! write end only the test process has: however that dies, the shell sees the end of the pipe, kills what is
//! left and removes the folder. (`PR_SET_PDEATHSIG` would not do: it fires when the *thread* that started the
//! child ends, as test threads do.)

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;

use crate::error::HarnessError;

/// Every line read replaces the processes to kill. A process id may belong to another process in the
/// meantime, so only one whose command line names our folder is killed; paused ones die as well. A zombie's
/// command line is empty, which ends the wait.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
while IFS= read -r line; do pids=$line; done
ours() { grep -qsF -- "$1" "/proc/$2/cmdline"; }
for pid in $pids; do ours "$1" "$pid" && kill -KILL "$pid"; done
for pid in $pids; do
    tries=0
    while ours "$1" "$pid" && [ $tries -lt 200 ]; do sleep 0.02; tries=$((tries + 1)); done
done
rm -rf -- "$1"
"#;

/// Watches over the processes of one ensemble.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Mutex<Shell>,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    watched: BTreeSet<u32>,
}

impl Watchdog {
    /// Starts a watchdog that will remove `folder`, which every watched process names on its command line.
    pub(crate) fn over(folder: &Path) -> Result<Self, HarnessError> {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "lockkeeper-watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            // Not the test's own: a reader of the test's output would wait for the watchdog.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Out of the terminal's group, so that Ctrl-C does not end the watchdog before its work.
            .process_group(0)
            .spawn()
            .map_err(HarnessError::io("start the watchdog (`sh`)"))?;
        Ok(Self { shell: Mutex::new(Shell { child, watched: BTreeSet::new() }) })
    }

    /// From now on `pid` dies with this process.
    pub(crate) fn watch(&self, pid: u32) -> Result<(), HarnessError> {
        let mut shell = self.shell.lock();
        shell.watched.insert(pid);
        shell.write().map_err(HarnessError::io("tell the watchdog of a new server"))
    }

    /// `pid` has ended and is about to be reaped.
    pub(crate) fn forget(&self, pid: u32) {
        let mut shell = self.shell.lock();
        shell.watched.remove(&pid);
        // A watchdog that has ended has nothing to forget.
        let _ = shell.write();
    }
}

impl Shell {
    fn write(&mut self) -> io::Result<()> {
        let pids: Vec<String> = self.watched.iter().map(ToString::to_string).collect();
        let pipe = self.child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // One write, so that the shell never acts on half a line.
        pipe.write_all(format!("{}\n", pids.join(" ")).as_bytes())
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let shell = self.shell.get_mut();
        // The end of the pipe makes it do its work, which is harmless by now, and end.
        drop(shell.child.stdin.take());
        let _ = shell.child.wait();
    }
}
