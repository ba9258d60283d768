//! A `CountDownLatch` opens when two loaders are done, and the members of a `DoubleBarrier` begin together.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, CountDownLatch, DoubleBarrier, Error};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let loaded = CountDownLatch::new(&manager, "/latches/loaded", 2)?;
    let (opened, first, second) = tokio::join!(loaded.wait(), loaded.count_down(), loaded.count_down());
    opened?;
    println!("all is loaded; {} and {} were left", first?, second?);
    loaded.reset(loaded.state().await?.generation).await?; // another round

    tokio::try_join!(step(&manager, "left"), step(&manager, "right"))?;
    manager.shutdown().await?;
    Ok(())
}

async fn step(manager: &ConnectionManager, id: &str) -> Result<(), Error> {
    let barrier = DoubleBarrier::new(manager, "/barriers/step", 2)?.with_id(id)?;
    let inside = barrier.enter().await?; // as soon as both are there
    inside.run(async { println!("{id} computes") }).await?;
    inside.leave().await?; // as soon as both have ended
    Ok(())
}
