//! A `Mutex`: of all processes of a fleet, one at a time sells a seat, and no seat is sold twice.
//!
//! Copy this file, and add the crates `lockkeeper`, `lockkeeper-testserver` and `tokio`.

use std::time::Duration;

use lockkeeper::znodes::Version;
use lockkeeper::{ConnectionManager, Error, Mutex};
use lockkeeper_testserver::TestServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A server for this run. With servers of your own: `cargo run --example mutex zk1:2181,zk2:2181/shop`.
    let server = TestServer::start().await?;
    let servers = std::env::args().nth(1).unwrap_or_else(|| server.connect_string());
    let manager = ConnectionManager::connect(&servers).await?; // once for the process
    manager.znodes().create_or_write("/trains/7", "3 seats").await?;

    let sellers: Vec<_> = (1..=4).map(|seller| tokio::spawn(sell(manager.clone(), seller))).collect();
    for seller in sellers {
        seller.await??;
    }
    manager.shutdown().await?; // before main returns: nothing works in the background after that
    Ok(())
}

async fn sell(manager: ConnectionManager, seller: u32) -> Result<(), Error> {
    let mutex = Mutex::new(&manager, "/locks/train-7")?;
    let guard = mutex.acquire_timeout(Duration::from_secs(10)).await?;
    let left = guard.run(seats_left(&manager)).await??; // dropped as soon as the lock is lost
    if left > 0 {
        // Committed only if the guard still holds the lock.
        let fewer = format!("{} seats", left - 1);
        guard.txn().set("/trains/7", fewer, Version::Any).commit().await?;
        println!("seller {seller}: seat {left}, sold under {}", guard.fencing_token());
    } else {
        println!("seller {seller}: sold out");
    }
    guard.release().await?;
    Ok(())
}

async fn seats_left(manager: &ConnectionManager) -> Result<u32, Error> {
    let read = manager.znodes().read("/trains/7").await?;
    let text = read.map(|(data, _)| String::from_utf8_lossy(&data).into_owned()).unwrap_or_default();
    Ok(text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0))
}
