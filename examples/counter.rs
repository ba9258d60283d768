//! A `Counter` that loses no addition, and `IdBlocks`: unique ids, one request for a thousand of them.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, Counter, Error, IdBlocks};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let visits = Counter::new(&manager, "/counters/visits")?;
    let before = visits.get().await?;
    tokio::try_join!(count(&visits), count(&visits), count(&visits))?;
    println!("{} visits more", visits.get().await? - before);

    // One for the process: each process has blocks of its own.
    let ids = IdBlocks::new(&manager, "/ids/orders", 1_000)?;
    let (first, second) = (ids.next().await?, ids.next().await?);
    println!("the next orders have the ids {first} and {second}");
    manager.shutdown().await?;
    Ok(())
}

async fn count(visits: &Counter) -> Result<(), Error> {
    for _ in 0..10 {
        visits.increment().await?; // counts once, although an answer is lost
    }
    Ok(())
}
