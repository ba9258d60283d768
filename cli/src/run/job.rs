//! Job control, from the side of the command.

use rustix::process::{Signal, getpid, kill_current_process_group};

use crate::supervisor::process_stat::ProcessStat;

/// Stops this process and its group, as Ctrl-Z does, if a shell is there to resume them.
pub(crate) fn stop() {
    if is_under_a_shell().unwrap_or(false) {
        // Continues behind this line when the shell resumes the job.
        let _ = kill_current_process_group(Signal::STOP);
    }
}

/// Whether a process of the same session, in another group, has this job: the nearest ancestor outside of the
/// group. Nobody would resume a job without one. `None` if it is outside of this PID namespace.
fn is_under_a_shell() -> Option<bool> {
    let own = ProcessStat::of(getpid())?;
    let (group, session) = (own.group?, own.session?);
    let mut parent = own.parent?;
    loop {
        let of = ProcessStat::of(parent)?;
        if of.group? != group {
            return Some(of.session? == session);
        }
        parent = of.parent?;
    }
}
