//! The first program of README.md.

use std::time::Duration;

use lockkeeper::{ConnectionManager, FencingToken, Mutex};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers = std::env::args().nth(1).unwrap_or_else(|| "localhost:2181/shop".to_owned());
    let manager = ConnectionManager::connect(&servers).await?; // zk1:2181,zk2:2181,zk3:2181/shop
    let mutex = Mutex::new(&manager, "/locks/train-7")?;
    let guard = mutex.acquire_timeout(Duration::from_secs(10)).await?;

    // The future is dropped as soon as the lock is lost. Its writes elsewhere should carry the token.
    guard.run(print_ticket(guard.fencing_token())).await?;

    // ZooKeeper commits this transaction only if the guard still holds the lock. No clock is involved.
    guard.txn().create_sequential("/sale-", "train 7, seat 42").commit().await?;

    guard.release().await?; // or drop the guard: the lock is released in the background
    manager.shutdown().await?; // before main returns: nothing works in the background after that
    Ok(())
}

async fn print_ticket(fence: FencingToken) {
    println!("seat 42, sold under {fence}");
}
