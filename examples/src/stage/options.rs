use std::time::Duration;

use clap::{Args, value_parser};

/// What every example can be told.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The ensemble to use, as host:port,host:port/chroot [default: an embedded server, for this run]
    #[arg(long, value_name = "SERVERS")]
    pub connect: Option<String>,

    /// How long the ensemble keeps the session of a silent process, in seconds [default: 15 with --connect, else some]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=3_600))]
    session_timeout: Option<u64>,

    /// Be the process with this number: how the first one starts the others
    #[arg(long, value_name = "N", hide = true)]
    pub process: Option<u32>,
}

impl Common {
    /// As asked for.
    #[must_use]
    pub fn session_timeout(&self) -> Option<Duration> {
        self.session_timeout.map(Duration::from_secs)
    }
}
