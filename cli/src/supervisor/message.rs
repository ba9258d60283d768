//! What the command and the supervisor tell each other: one packet of JSON for each message.

use serde::{Deserialize, Serialize};

use super::boot_time::BootTime;
use super::policy::Policy;

/// The first argument of the command when it is started as a guard.
pub(crate) const GUARD: &str = "__guard";

/// The first argument of the command when it is started as a supervisor.
pub(crate) const SUPERVISE: &str = "__supervise";

/// The first argument of the command when it is started to become the program.
pub(crate) const EXEC: &str = "__exec";

/// The greatest size of a message. The environment that is passed on has the paths of all locks. The kernel
/// carries about 200 KiB in a packet.
pub(crate) const SIZE_MAX: usize = 192 * 1024;

/// From the command to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// What the program is. The packet carries a file with its words, behind each of them a NUL character:
    /// they may be larger than any packet.
    Program,
    /// The lock is held: start the program. The packet carries the command's standard input.
    Start { environment: Vec<(String, String)>, policy: Policy, lease_end: BootTime },
    /// The servers have confirmed the session.
    Extend { lease_end: BootTime },
    /// The lock is lost.
    Lost,
    /// Pass this signal on to the program.
    Signal { number: i32 },
    /// The terminal's user resumed the job.
    Resume,
}

/// From the supervisor to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs, in the process group of this number.
    Started { group: i32 },
    /// The program was asked to end, because the lease is about to end or the lock is lost.
    Asked,
    /// The program was stopped from the terminal.
    Suspended,
    /// The program and all its processes are gone.
    Ended { how: Ended, interfered: bool },
    /// The lease was over before the program could start. No process was started.
    TooLate,
    /// The operating system started no process.
    NotStarted { errno: i32 },
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Exited(u8),
    /// By the signal of this number.
    Signalled(i32),
}
