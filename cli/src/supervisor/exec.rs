//! The last step before the program: `lockkeeper __exec PARENT PROGRAM ARGUMENT…`.
//!
//! The process asks the kernel to kill it when its parent, the supervisor, dies, and becomes the program. The
//! kernel keeps this setting, unless the program gains privileges when it starts (set-user-id). No signal is
//! blocked in the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::sys::signal::SigSet;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::output::warn;

/// As a shell, `env` and `timeout` end where the program does not exist.
const NOT_FOUND: u8 = 127;

/// As they end where it cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// Returns only if the program is not started.
pub(crate) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(parent), Some(program)) = (arguments.next(), arguments.next()) else {
        return NOT_EXECUTABLE.into();
    };
    let parent: Option<i32> = parent.to_str().and_then(|text| text.parse().ok());
    // The supervisor has blocked all signals, and a new process inherits that.
    let is_unblocked = SigSet::empty().thread_set_mask().is_ok();
    let is_bound = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    // A parent that died before the line above kills nothing any more.
    if !is_unblocked || !is_bound || getppid().map(|pid| pid.as_raw_pid()) != parent {
        return NOT_EXECUTABLE.into();
    }
    let error = Command::new(&program).args(arguments).exec();
    warn(format_args!("{}: {error}", program.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND.into(),
        _ => NOT_EXECUTABLE.into(),
    }
}
