//! `serve`: the embedded server, for development.

use std::time::Duration;

use clap::Args;
use lockkeeper_testserver::TestServer;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure};
use crate::output::{say, warn};
use crate::span;

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// The port on the loopback address; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 2181)]
    port: u16,

    /// The number of servers in front of one tree, on ports that follow one another
    #[arg(long, value_name = "N", default_value_t = 1)]
    servers: usize,

    /// The length of a tick; session timeouts are between 2 and 20 ticks
    #[arg(long, value_name = "TIME", value_parser = span::parse, default_value = "2s")]
    tick: Duration,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn serve(options: &ServeOptions) -> Result<Exit, Failure> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let started = TestServer::builder()
        .port(options.port)
        .tick(options.tick)
        .quorum(true)
        .start_ensemble(options.servers)
        .await;
    let ensemble = started.map_err(|error| Failure::new(Exit::UNAVAILABLE, error.to_string()))?;
    warn(
        "NOT FOR PRODUCTION. This server keeps everything in memory, has no quorum and no access control to \
         rely on, and forgets all locks and data when it ends.",
    );
    say(&ensemble.connect_string())?;
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(Exit::SUCCESS)
}
