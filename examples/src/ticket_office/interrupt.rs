use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM: both end the sale in order.
#[derive(Debug)]
pub(crate) struct Interrupt {
    interrupted: Signal,
    terminated: Signal,
}

/// The sale was ended before its time, by the signal of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted(pub(crate) u8);

impl Interrupt {
    /// From now on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupted: signal(SignalKind::interrupt())?,
            terminated: signal(SignalKind::terminate())?,
        })
    }

    /// Drops `work` when a signal comes before it is done.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            _ = self.interrupted.recv() => Err(Interrupted(2)),
            _ = self.terminated.recv() => Err(Interrupted(15)),
            output = work => Ok(output),
        }
    }
}
