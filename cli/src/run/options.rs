//! The options of the subcommands that run a program.

use std::convert::Infallible;
use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lockkeeper::BootInstant;

use crate::escape::is_printable;
use crate::span;
use crate::supervisor::OnLoss;

/// The greatest number of characters of a note.
const NOTE_CHARS_MAX: usize = 60;

/// A lock at one path.
#[derive(Debug, Args)]
pub(crate) struct LockOptions {
    /// The path of the lock, below the chroot of the connect string
    pub(super) path: String,

    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// Permits of a semaphore.
#[derive(Debug, Args)]
pub(crate) struct SemaphoreOptions {
    /// The path of the semaphore, below the chroot of the connect string
    pub(super) path: String,

    /// The number of permits of the semaphore: all its users must give the same
    #[arg(short = 'n', long, value_name = "K")]
    pub(super) permits: u32,

    /// The number of permits to take
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) take: u32,

    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// Several locks at once.
#[derive(Debug, Args)]
pub(crate) struct MultiOptions {
    /// The paths of the locks, in any order
    #[arg(required = true)]
    pub(super) paths: Vec<String>,

    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// The leadership of an election.
#[derive(Debug, Args)]
pub(crate) struct ElectOptions {
    /// The path of the election, below the chroot of the connect string
    pub(super) path: String,

    /// The name of this candidate, for people; it takes the place of a note [default: the host and the
    /// process id]
    #[arg(long, value_name = "NAME", conflicts_with = "note")]
    pub(super) id: Option<String>,

    #[command(flatten)]
    pub(super) run: RunOptions,
}

/// How to wait, and what to run.
#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// Wait at most this long for a server and the lock [default: without a limit]
    #[arg(long, value_name = "TIME", value_parser = span::parse, conflicts_with = "attempt")]
    pub(super) timeout: Option<Duration>,

    /// Do not wait: run the program only if the lock is free now
    #[arg(long = "try")]
    pub(super) attempt: bool,

    /// Print no message if the lock is not got in time, and none if the servers grant another session timeout
    /// that is safe
    #[arg(short, long)]
    pub(super) quiet: bool,

    /// What to say of this holder, for people who look: a ticket, a reason, a person to call
    #[arg(long, value_name = "TEXT", value_parser = note)]
    pub(super) note: Option<String>,

    /// When the command began
    #[arg(skip = BootInstant::now())]
    pub(super) began: BootInstant,

    /// The exit code if the lock is not got in time
    #[arg(short = 'E', long, value_name = "N", default_value_t = 75)]
    pub(super) conflict_exit_code: u8,

    /// How long before the end of the lease the program is asked to end; at most a third of the session
    /// timeout [default: a quarter of it]
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    pub(super) grace: Option<Duration>,

    /// What happens to the program when the lock is about to be lost: term, kill, ignore, or a command for
    /// the shell, which finds the process group in LOCKKEEPER_GROUP, and the lock in the same variables as
    /// the program. SIGKILL follows in time, except after "ignore"
    #[arg(long, value_name = "term|kill|ignore|COMMAND", default_value = "term", value_parser = on_loss)]
    pub(super) on_loss: OnLoss,

    /// What happens when another client asks for the lock ("lockkeeper revoke")
    #[arg(long, value_name = "ACTION", default_value = "term")]
    pub(super) on_revoke: OnRevoke,

    /// The program and its arguments, behind "--": all that follows it is the program's, also what looks
    /// like a flag. It is run directly, without a shell
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(super) program: Vec<OsString>,
}

/// What the program gets when another client asks for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnRevoke {
    /// SIGTERM; the program may continue
    Term,
    /// Nothing
    Ignore,
}

impl RunOptions {
    /// The data of a process with the note behind it.
    pub(super) fn with_note(&self, process: &[u8]) -> Vec<u8> {
        let note = self.note.as_ref().map_or_else(String::new, |note| format!(" {note}"));
        [process, note.as_bytes()].concat()
    }

    /// What is left of the time to wait. `None` without a limit.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(BootInstant::now().since(self.began)))
    }
}

/// A note is a part of a node's data, whose other parts have `=` in them.
fn note(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_plain = text.chars().all(|c| is_printable(c) && c != '=');
    if text.is_empty() || !is_plain || text.chars().count() > NOTE_CHARS_MAX {
        return Err(format!(
            "give a text of at most {NOTE_CHARS_MAX} characters, without control characters and ="
        ));
    }
    Ok(text.to_owned())
}

fn on_loss(text: &str) -> Result<OnLoss, Infallible> {
    Ok(match text {
        "term" => OnLoss::Term,
        "kill" => OnLoss::Kill,
        "ignore" => OnLoss::Ignore,
        command => OnLoss::Run(command.to_owned()),
    })
}
