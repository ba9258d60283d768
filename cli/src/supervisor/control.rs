//! The command's side of the supervisor.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, getpid, set_child_subreaper};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::message::{GUARD, Order, Report};
use super::orphans::{Reaped, children, kill_below, reap, signal_group};
use super::process_stat::ProcessStat;
use super::program::THIS_BINARY;
use super::socket::{self, Received};
use crate::log;

/// The pause between two looks for processes that are left.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The process that starts, watches and ends the program.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// Sockets of packets have no type in tokio. This one waits until the socket is readable.
    link: UnixStream,
    group: Option<Pid>,
    /// The parent of the supervisor. It is not waited for, so its number stays its own.
    guard: Option<Pid>,
}

/// The supervisor is gone without a report: another process killed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the supervisor died; the program was killed")]
pub(crate) struct SupervisorDied;

impl Supervisor {
    /// Starts the process. The program follows with [`start_program`](Self::start_program).
    pub(crate) fn start(program: &[OsString]) -> io::Result<Self> {
        // A caller may have had the signal ignored. Then no process sees how its children end, and waits for
        // ever. What is caught here is no longer ignored in the processes below.
        let _caught = signal(SignalKind::child())?;
        let (ours, theirs) = socket::pair()?;
        socket::send(&ours, &Order::Program, Some(words(program)?.as_fd()))?;
        // If the guard and the supervisor are killed, their children become children of this process.
        set_child_subreaper(Some(getpid()))?;
        let guard = Command::new(THIS_BINARY)
            .arg(GUARD)
            .arg(ProcessStat::of_this().and_then(|own| own.group).map_or(0, Pid::as_raw_pid).to_string())
            .env(log::ENVIRONMENT, log::format())
            .stdin(Stdio::from(theirs))
            .process_group(0)
            .spawn()?;
        let guard = Pid::from_raw(guard.id().cast_signed());
        Ok(Self { link: UnixStream::from_std(net::UnixStream::from(ours))?, group: None, guard })
    }

    /// Sends [`Order::Start`], with the standard input. Without success no program is started.
    pub(crate) fn start_program(&self, order: &Order) -> io::Result<()> {
        socket::send(&self.link, order, Some(io::stdin().as_fd()))
    }

    /// Sends another order. A supervisor that does not receive it is gone, which the next report shows, or
    /// has a full queue of orders. Then only extensions are lost, and the program ends too early.
    pub(crate) fn send(&self, order: &Order) {
        let _ = socket::send(&self.link, order, None);
    }

    /// The next report.
    ///
    /// Cancel safe: a report is received or not.
    pub(crate) async fn report(&mut self) -> Result<Report, SupervisorDied> {
        loop {
            let received = match self.link.readable().await {
                Ok(()) => self.link.try_io(Interest::READABLE, || receive(&self.link)),
                Err(error) => Err(error),
            };
            match received {
                Ok(Some(report)) => {
                    if let Report::Started { group } = report {
                        self.group = Pid::from_raw(group);
                    }
                    return Ok(report);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return Err(SupervisorDied),
            }
        }
    }

    /// Kills every process of the program, for a supervisor that does not: it is stopped, or continues later
    /// than this process.
    pub(crate) fn kill_program(&self) {
        if let Some(guard) = self.guard {
            kill_below_supervisor(guard, getpid());
        }
    }

    /// Kills what a dead supervisor left.
    pub(crate) async fn kill_orphans(self) {
        loop {
            if let Some(group) = self.group {
                signal_group(getpid(), group, Signal::KILL);
            }
            kill_below(getpid());
            loop {
                match reap() {
                    Reaped::Child(..) => {}
                    Reaped::Nothing => break,
                    Reaped::NoChild => return,
                }
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Kills every process below the supervisor: the child of `guard`, or of `command` if the guard has ended. It
/// waits for these processes, so none of their numbers names another one. It is not remembered by its own
/// number, which another process may get if the supervisor ends while the command is stopped.
fn kill_below_supervisor(guard: Pid, command: Pid) {
    let mut supervisors = children(guard);
    if supervisors.is_empty() {
        supervisors = children(command).into_iter().filter(|child| *child != guard).collect();
    }
    supervisors.into_iter().for_each(kill_below);
}

/// A file in memory with the words of a program.
fn words(program: &[OsString]) -> io::Result<File> {
    let mut file = File::from(memfd_create("program", MemfdFlags::CLOEXEC)?);
    for word in program {
        file.write_all(word.as_bytes())?;
        file.write_all(b"\0")?;
    }
    file.rewind()?;
    Ok(file)
}

/// `None` at the end.
fn receive(link: &UnixStream) -> io::Result<Option<Report>> {
    match socket::receive(link)? {
        Received::Message(report, _) => Ok(Some(report)),
        Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        Received::End => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper_tests::Timing;
    use rustix::process::kill_process;
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::process::Child;
    use tokio::time::timeout;

    use super::*;

    /// A guard, a supervisor and a program, whose number it says.
    async fn tree() -> (Child, Pid) {
        let script = "sh -c 'sleep 1000 & echo $!; wait' & wait";
        let mut guard = tokio::process::Command::new("sh");
        let mut guard = guard.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
        let program = lines.next_line().await.unwrap().unwrap();
        (guard, Pid::from_raw(program.parse().unwrap()).unwrap())
    }

    /// Its parent waits for the program, and ends then, as does the parent of that.
    async fn assert_killed(mut tree: Child, program: Pid) {
        let ended = timeout(Timing::event(), tree.wait()).await;
        // Nobody else ends it.
        let _ = kill_process(program, Signal::KILL);
        assert!(ended.expect("the program was killed").unwrap().success());
    }

    fn number(child: &Child) -> Pid {
        child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).unwrap()
    }

    /// A supervisor that is stopped between the start of the program and its report.
    #[tokio::test]
    async fn a_program_is_killed_although_nobody_has_reported_that_it_runs() {
        let (guard, program) = tree().await;
        let link = UnixStream::pair().unwrap().0;
        Supervisor { link, group: None, guard: Some(number(&guard)) }.kill_program();
        assert_killed(guard, program).await;
    }

    /// The supervisor became a child of the command.
    #[tokio::test]
    async fn a_program_is_killed_although_the_guard_has_ended() {
        let (command, program) = tree().await;
        let guard = tokio::process::Command::new("true").spawn().unwrap();
        kill_below_supervisor(number(&guard), number(&command));
        assert_killed(command, program).await;
    }
}
