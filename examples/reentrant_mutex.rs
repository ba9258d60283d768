//! A `ReentrantMutex`: a step locks the order that its caller has locked already.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use lockkeeper::{ConnectionManager, Error, Owner, ReentrantMutex};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run; or the servers of the first argument.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?;

    let order = ReentrantMutex::new(&manager, "/locks/order-4711")?;
    // Whatever the future of a scope locks is of one owner.
    Owner::new("checkout").scope(check_out(&order)).await?;
    manager.shutdown().await?;
    Ok(())
}

async fn check_out(order: &ReentrantMutex) -> Result<(), Error> {
    let guard = order.acquire_scoped().await?;
    charge(order).await?;
    guard.release().await?;
    Ok(())
}

/// Locks for itself: it is called by others, too.
async fn charge(order: &ReentrantMutex) -> Result<(), Error> {
    let guard = order.acquire_scoped().await?; // no round trip: the owner holds it
    println!("order 4711 is charged under {}", guard.fencing_token());
    guard.release().await?;
    Ok(())
}
