//! A ZooKeeper look-alike on a port, for tests and demos. Never for production data.

use std::future::pending;
use std::time::Duration;

use clap::Parser;
use lockkeeper_testserver::TestServer;

/// A ZooKeeper look-alike for tests and demos. Never for production data: everything is kept in memory.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Port to listen on, on the loopback address; 0 for any free one
    #[arg(long, default_value_t = 2181)]
    port: u16,
    /// Number of servers in front of one tree, on ports that follow one another
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Length of a tick in milliseconds; session timeouts are between 2 and 20 ticks
    #[arg(long, default_value_t = 2000)]
    tick: u64,
    /// Allow nodes with a time to live
    #[arg(long)]
    ttl: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let builder = TestServer::builder().port(options.port).tick(Duration::from_millis(options.tick));
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let ensemble = builder.ttl_nodes(options.ttl).start_ensemble(options.servers).await?;
        println!("{}", ensemble.connect_string());
        pending::<()>().await;
        Ok(())
    })
}
