//! The guard: the process between the command and the supervisor, `lockkeeper __guard JOB`.
//!
//! It starts the supervisor and waits for its end, and does nothing else. If the command and the supervisor
//! are killed at once, every process of the program becomes a child of the guard, which kills it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use rustix::stdio::dup2_stdin;

use super::message::SUPERVISE;
use super::orphans::kill_below;
use super::program::THIS_BINARY;
use crate::exit::Exit;
use crate::output::warn;

pub(crate) fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match guard(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            warn(format_args!("guard: {error}"));
            Exit::INTERNAL.into()
        }
    }
}

fn guard(arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    // A signal that all processes get must not end the guard.
    SigSet::all().thread_block()?;
    set_child_subreaper(Some(getpid()))?;
    // `ps` would show the name of the link otherwise.
    let _ = rustix::thread::set_name(c"lockkeeper-grd");
    // It inherits the standard input, which is the socket.
    let supervisor = Command::new(THIS_BINARY).arg(SUPERVISE).args(arguments).process_group(0).spawn()?.id();
    // The command sees the end of the supervisor only if no other process has the socket.
    dup2_stdin(File::open("/dev/null")?)?;
    let mut is_over = false;
    loop {
        if is_over {
            // Each end of a process may have left a process that the look before did not see.
            kill_below(getpid());
        }
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, _))) => is_over |= pid.as_raw_pid().cast_unsigned() == supervisor,
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return Ok(()),
        }
    }
}
