//! The signals that the command takes for the program.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// Those that end the command while it waits, and that the program gets while it runs.
const FORWARDED: &[Signal] =
    &[Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Those of a shell with jobs. Their default is right as long as no program runs.
const OF_JOBS: &[Signal] = &[Signal::TSTP, Signal::CONT];

#[derive(Debug)]
pub(crate) struct Signals {
    listening: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// From now on these signals do not end this process. A signal that was ignored when the command started
    /// stays ignored, for the program as well: `nohup` and the background jobs of a script rely on it.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut signals = Self { listening: Vec::new() };
        signals.add(FORWARDED)?;
        Ok(signals)
    }

    /// From now on the signals of jobs are taken, too.
    pub(crate) fn listen_for_jobs(&mut self) -> io::Result<()> {
        self.add(OF_JOBS)
    }

    fn add(&mut self, signals: &[Signal]) -> io::Result<()> {
        let ignored = ignored_in(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        for signal in signals {
            if !has(ignored, *signal) {
                let kind = SignalKind::from_raw(signal.as_raw());
                self.listening.push((*signal, unix::signal(kind)?));
            }
        }
        Ok(())
    }

    /// The next signal.
    ///
    /// Cancel safe: no signal is lost.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, listening) in &mut self.listening {
                if let Poll::Ready(Some(())) = listening.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The set of ignored signals in the text of `/proc/PID/status`.
fn ignored_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

fn has(set: u64, signal: Signal) -> bool {
    let bit = u32::try_from(signal.as_raw() - 1).unwrap_or(u32::MAX);
    set.checked_shr(bit).is_some_and(|shifted| shifted & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let set = ignored_in("Name:\tcat\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n");
        assert!(has(set, Signal::HUP));
        assert!(has(set, Signal::PIPE));
        assert!(!has(set, Signal::INT));
        assert_eq!(ignored_in(""), 0);
    }
}
