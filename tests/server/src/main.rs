//! A ZooKeeper look-alike on a port, for tests and demos. Never for production data.

mod control;

use std::io;
use std::time::Duration;

use clap::Parser;
use lockkeeper_testserver::TestServer;

use crate::control::obey;

/// A ZooKeeper look-alike for tests and demos. Never for production data: everything is kept in memory.
///
/// The first printed line has the addresses. Then the program reads commands from standard input, one a
/// line, and answers each with one line: "ok", or "error:" and the reason. "help" lists them.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Port to listen on, on the loopback address; 0 for any free one
    #[arg(long, default_value_t = 2181)]
    port: u16,
    /// Number of servers in front of one tree, on ports that follow one another
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Serve while any of the servers runs, and not only while more than half of them do
    #[arg(long)]
    without_quorum: bool,
    /// Length of a tick in milliseconds; session timeouts are between 2 and 20 ticks
    #[arg(long, default_value_t = 2000)]
    tick: u64,
    /// Time between two searches for containers to remove, in milliseconds
    #[arg(long, default_value_t = 60_000)]
    container_interval: u64,
    /// Allow nodes with a time to live
    #[arg(long)]
    ttl: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let builder = TestServer::builder()
        .port(options.port)
        .tick(Duration::from_millis(options.tick))
        .container_interval(Duration::from_millis(options.container_interval))
        .quorum(!options.without_quorum)
        .ttl_nodes(options.ttl);
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
        let ensemble = builder.start_ensemble(options.servers).await?;
        println!("{}", ensemble.connect_string());
        // The servers run on a thread of their own, so this one may block.
        for line in io::stdin().lines() {
            match obey(&ensemble, &line?).await {
                Ok(Some(answer)) => println!("{answer}"),
                Ok(None) => return Ok(()),
                Err(reason) => println!("error: {reason}"),
            }
        }
        // Without commands the servers continue to serve.
        std::future::pending().await
    })
}
