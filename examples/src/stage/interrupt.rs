use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the end of a process may take: what still holds then is cut off.
pub const GRACE: Duration = Duration::from_secs(5);

/// Ctrl-C and SIGTERM: both end an example in order.
#[derive(Debug)]
pub struct Interrupt {
    interrupted: Signal,
    terminated: Signal,
}

/// The example was ended before its time, by the signal of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("interrupted; no process is left at work")]
pub struct Interrupted(pub u8);

impl Interrupt {
    /// From now on these signals no longer end the process by themselves.
    ///
    /// # Errors
    ///
    /// Of the operating system.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    /// Drops `work` when a signal comes before it is done.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] by that signal.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            _ = self.interrupted.recv() => Err(Interrupted(2)),
            _ = self.terminated.recv() => Err(Interrupted(15)),
            output = work => Ok(output),
        }
    }
}

impl Interrupted {
    /// What a shell says of a command that a signal ended.
    #[must_use]
    pub fn code(self) -> u8 {
        128 + self.0
    }
}
