//! Job control: the program can use the terminal, and the user can stop and resume it as any other job.
//!
//! The program is in a process group of its own, so the terminal does not count it to the foreground job: a
//! read would stop it (SIGTTIN), and so would a change of the terminal's modes (SIGTTOU). The supervisor sees
//! that stop, makes the program's group the foreground group, and resumes it: the terminal is handed over at
//! its first use, and not before. So a pipeline such as `lockkeeper lock … -- make | less` keeps the terminal
//! for `less` as long as the program does not read it.
//!
//! When the program ends, or is stopped by Ctrl-Z, the terminal is given back to the job of the command.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::process::{Pid, Signal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The controlling terminal of the session.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: File,
    /// The process group of the command.
    job: Pid,
    /// The modes of the terminal when the program got it.
    modes: Option<Termios>,
}

/// What follows from a stop of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnStop {
    /// Hand the terminal over, and resume the program.
    HandOver,
    /// Stop the command as well, so that the shell sees its job stopped.
    Suspend,
    /// Leave the program stopped: another process stopped it, and will resume it.
    Leave,
}

impl Terminal {
    /// `None` without a controlling terminal.
    pub(crate) fn open(job: Pid) -> Option<Self> {
        let device = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { device, job, modes: None })
    }

    /// What follows from a stop by the signal of this number.
    pub(crate) fn on_stop(&self, signal: i32) -> OnStop {
        decide(signal, tcgetpgrp(self.device.as_fd()).is_ok_and(|foreground| foreground == self.job))
    }

    /// Makes `group` the foreground group.
    pub(crate) fn hand_over(&mut self, group: Pid) {
        self.modes = tcgetattr(self.device.as_fd()).ok();
        // Without success the program is stopped again, at its next use of the terminal.
        let _ = tcsetpgrp(self.device.as_fd(), group);
    }

    /// Makes the job of the command the foreground group again, if `group` is. The modes are restored if the
    /// program was killed before it could restore them itself.
    pub(crate) fn take_back(&mut self, group: Pid, restore_modes: bool) {
        if tcgetpgrp(self.device.as_fd()).is_ok_and(|foreground| foreground == group) {
            let _ = tcsetpgrp(self.device.as_fd(), self.job);
            if let (true, Some(modes)) = (restore_modes, self.modes.take()) {
                let _ = tcsetattr(self.device.as_fd(), OptionalActions::Now, &modes);
            }
        }
    }
}

fn decide(signal: i32, job_is_in_foreground: bool) -> OnStop {
    let is = |of: Signal| signal == of.as_raw();
    if is(Signal::TTIN) || is(Signal::TTOU) {
        if job_is_in_foreground { OnStop::HandOver } else { OnStop::Suspend }
    } else if is(Signal::TSTP) {
        OnStop::Suspend
    } else {
        OnStop::Leave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_of_the_terminal_hands_it_over_only_in_the_foreground() {
        for signal in [Signal::TTIN, Signal::TTOU] {
            assert_eq!(decide(signal.as_raw(), true), OnStop::HandOver);
            assert_eq!(decide(signal.as_raw(), false), OnStop::Suspend);
        }
        for is_in_foreground in [true, false] {
            assert_eq!(decide(Signal::TSTP.as_raw(), is_in_foreground), OnStop::Suspend);
            assert_eq!(decide(Signal::STOP.as_raw(), is_in_foreground), OnStop::Leave);
        }
    }
}
