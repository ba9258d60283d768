//! Job control, from the side of the command.

use std::fs;

use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getsid, kill_current_process_group};

use crate::supervisor::orphans::parent_in;

/// Stops this process and its group, as Ctrl-Z does, if a shell is there to resume them.
pub(crate) fn stop() {
    if is_under_a_shell() {
        // Continues behind this line when the shell resumes the job.
        let _ = kill_current_process_group(Signal::STOP);
    }
}

/// Whether a process of the same session, in another group, has this job: the nearest ancestor outside of the
/// group. Nobody would resume a job without one.
fn is_under_a_shell() -> bool {
    let (group, session) = (getpgrp(), getsid(None));
    let mut pid = getpid();
    while let Some(parent) = parent_of(pid) {
        match getpgid(Some(parent)) {
            Ok(of) if of == group => pid = parent,
            Ok(_) => return session.is_ok_and(|own| getsid(Some(parent)).is_ok_and(|of| of == own)),
            Err(_) => return false,
        }
    }
    false
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    Pid::from_raw(parent_in(&stat)?)
}
