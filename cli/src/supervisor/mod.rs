//! The supervisor: the parent of the program, in a process of its own.
//!
//! ```text
//! lockkeeper            holds the session and the lock; gets the signals
//!   └─ guard            the same binary; waits for the end of the supervisor
//!        └─ supervisor       the same binary; parent of the program, and of its orphans (subreaper)
//!             └─ program     leader of a process group of its own
//! ```
//!
//! 1. The command starts the supervisor, by the guard, before it connects, and sends it orders over a socket:
//!    start the program, the lease now ends at this instant, pass this signal on. The words of the program
//!    are in an order, too: `pkill -9 -f NAME` must not find the guard and the supervisor.
//! 2. The supervisor ends the program by its own clock ([`plan`]). It needs no order for that: a command that
//!    is stopped, swapped out or hung renews no lease, and the program still ends before the lease does. The
//!    command kills the program at the end of the lease as well, for a supervisor that is stopped.
//! 3. The end of the socket is the end of the command, however it died. The supervisor then kills the program
//!    at once.
//! 4. Every process that the program started, and that outlived its parent, becomes a child of the
//!    supervisor. It ends only when it has no child left, so that no such process is overlooked.
//! 5. If the supervisor dies first, the kernel kills the program (its parent-death signal, see [`exec`]), and
//!    the guard inherits the orphans and kills them, whether the command lives or not. Without the guard, the
//!    command does this. Some process is left to do it unless all three are killed at once.
//!
//! Nothing here is async, and nothing allocates between the deadline and the signal but the list of
//! processes.

pub(crate) mod boot_time;
mod control;
pub(crate) mod exec;
#[cfg(test)]
pub(crate) mod fuzzing;
pub(crate) mod guard;
mod lease_end;
pub(crate) mod message;
pub(crate) mod orphans;
mod plan;
mod policy;
pub(crate) mod process_stat;
mod program;
mod socket;
mod terminal;
#[cfg(test)]
mod thaw;

pub(crate) use self::control::{Supervisor, SupervisorDied};
pub(crate) use self::lease_end::LeaseEnd;
pub(crate) use self::policy::{OnLoss, Policy};
pub(crate) use self::program::main;
