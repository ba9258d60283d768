//! A `Semaphore`: a compiler has four licences, and a fleet runs at most four compilations at a time.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::{ConnectionManager, Error, Semaphore};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let licences = Semaphore::new(&manager, "/licences/compiler", 4)?;
    let builds: Vec<_> = (1..=6).map(|number| tokio::spawn(build(licences.clone(), number))).collect();
    for build in builds {
        build.await??;
    }
    println!("{} licences are free", licences.available().await?);
    manager.shutdown().await?;
    Ok(())
}

async fn build(licences: Semaphore, number: u32) -> Result<(), Error> {
    // Two compilations at a time for this build: both permits, or none.
    let lease = licences.acquire_many_timeout(2, Duration::from_secs(10)).await?;
    lease.run(async { println!("build {number} has {} licences", lease.permits()) }).await?;
    lease.release().await?;
    Ok(())
}
